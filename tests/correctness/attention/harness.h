// Runs one attention problem through the public API on the simulated device and compares it with fp64 attention.
//
// Every tensor is a strided view into a larger buffer whose unused bytes are NaN (inputs) or a pattern (output, LSE)
// that must survive: a read of a slot that no query may see, or a write outside the view, shows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/reference/compare.h"
#include "zyfa/attention.h"
#include "zyfa/device.h"

namespace zyfa::tests {

enum class Layout { kPacked, kStrided };

enum class Operand { kQuery, kKey, kValue };

// One element of one token of head 0, batch 0 replaced.
struct Poison {
  Operand operand = Operand::kQuery;
  std::int64_t token = -1;  // -1: nothing is replaced
  double value = 0;
};

struct Case {
  std::int64_t batch = 1, query_length = 1, key_length = 1, heads = 1, key_heads = 1;
  Mask mask = Mask::kFull;
  Layout layout = Layout::kStrided;
  double spread = 1.0;  // standard deviation of q and k
  std::uint32_t seed = 1;
  double softmax_scale = 0.08838834764831845;  // 1/sqrt(128)
  Poison poison = {};
  Lse lse = Lse::kWritten;   // kNone: the kernel without LSE; Outcome::lse is empty
  bool reuse_batch = false;  // every batch element holds the data of the first
};

std::string describe(const Case& c);

struct Outcome {
  reference::ErrorFigures figures;
  std::vector<std::uint16_t> o;    // packed [B, Sq, H, D]
  std::vector<float> lse;          // [B, H, Sq]
  bool outside_untouched = false;  // every byte outside the output views kept its pattern
};

// `schedule`: a placement's text, or empty for the table's choice. Kernels are compiled once per process and schedule.
Expected<Outcome> run_case(const Case& c, const std::shared_ptr<SimDevice>& device, const std::string& schedule);

// The data of `c`, with the rows of q, k, v and out at the given strides (elements) of buffers that may be far larger
// than the host's memory. Returns the packed output.
Expected<std::vector<std::uint16_t>> run_spread(const Case& c, const std::shared_ptr<SimDevice>& device,
                                                const std::string& placement, std::int64_t token_stride,
                                                std::int64_t head_stride, std::int64_t batch_stride);

}  // namespace zyfa::tests
