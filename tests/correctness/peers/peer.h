// Attention kernels published by their vendor as gfx950 code objects, run by the real zyfa-jit from job files. What is
// stated here are launch facts of those objects: symbol, workgroup, tile, arguments (docs/simulator-peers.md).
#pragma once

#include <string>
#include <vector>

#include "tests/correctness/peers/inputs.h"
#include "tests/correctness/tools/command.h"
#include "tests/reference/attention.h"

namespace zyfa::peers {

struct Peer {
  const char* name;
  const char* file;  // below the folder with the code objects
  const char* symbol;
  Formats formats;
  reference::Mask mask;
  std::int64_t dim_qk, dim_v;
  std::uint32_t workgroup;
  std::int64_t query_tile;
  double rms_percent;       // allowed against fp64
  double lse_error = 1e-5;  // allowed, of max(1, |LSE|)
  bool writes_lse = true;
  bool grouped = true;            // several query heads may read one key head
  std::int64_t key_multiple = 1;  // key lengths that it gets right (docs/simulator-peers.md)
  std::int64_t least_keys = 1;
  double trained_percent = 0;  // as rms_percent, on activations of 4096 tokens; 0: the same
};

[[nodiscard]] std::vector<std::string> peer_names();

// By name; the test fails when there is none.
const Peer& peer(const std::string& name);

enum class Lse { kOff, kOn };

// What lies behind K and V. The BF16 kernels read up to 256 keys on, unless the SGPR offset counts in the range check
// of a buffer; finite values must do there.
enum class Behind { kNothing, kFinite };

struct Launch {
  Lse lse = Lse::kOff;
  std::vector<std::string> flags = {};  // of zyfa-jit simulate, beside its defaults
  Behind behind = Behind::kFinite;
};

struct Outcome {
  tools::testing_support::Result run;
  double seconds = 0;          // of simulation
  double rms_percent = 0;      // of the output
  double lse_error = 0;        // largest |lse - ref| / max(1, |ref|)
  std::int64_t wrong_nan = 0;  // NaN where the reference has none
  [[nodiscard]] bool ran() const { return run.exit_code == 0; }
};

// The yardstick: fp64 attention over the very values that the kernel reads.
[[nodiscard]] reference::AttentionResult expected(const Peer& peer, const Inputs& inputs);
[[nodiscard]] Outcome simulate(const Peer& peer, const Inputs& inputs, const reference::AttentionResult& expected,
                               const Launch& launch);

}  // namespace zyfa::peers
