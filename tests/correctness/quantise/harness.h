// Runs the quantise kernels of one problem on the strict simulated device and compares codes and descales with a
// computation in double: rotation by an explicit matrix, codes by search through the table of all codes.
//
// Inputs are strided views into larger buffers whose other bytes are NaN; padding of the workspace holds a pattern.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/quantise_plan.h"
#include "zyfa/device.h"

namespace zyfa::tests {

enum class Layout { kPacked, kStrided };

// A BF16 [batch, tokens, heads, dim] tensor on the host, as values.
struct HostTensor {
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0;
  std::vector<std::uint16_t> bits;  // dense

  [[nodiscard]] std::uint16_t* row(std::int64_t b, std::int64_t s, std::int64_t h) {
    return bits.data() + ((b * tokens + s) * heads + h) * dim;
  }
  [[nodiscard]] const std::uint16_t* row(std::int64_t b, std::int64_t s, std::int64_t h) const {
    return bits.data() + ((b * tokens + s) * heads + h) * dim;
  }
};

struct Shape {
  std::int64_t batch = 1, queries = 1, keys = 1, heads = 1, key_heads = 1;
};
std::string describe(const AttentionProblem& problem, const Shape& shape);

// Compute::kFp8 on BF16 inputs, other options default.
AttentionProblem fp8_problem(std::uint32_t head_dim_qk = 128, std::uint32_t head_dim_v = 128);

struct Inputs {
  HostTensor q, k, v;
  float softmax_scale = 0.08838835F;
};
// Normally distributed; the size of a head's values depends on the head.
Inputs gaussian_inputs(const AttentionProblem& problem, const Shape& shape, std::uint32_t seed);

struct Quantised {
  std::vector<std::uint8_t> codes;  // dense [B, S, H, D]
  std::vector<float> descales;      // [B, Hk]
};
struct Outputs {
  Quantised q, k, v;
  bool padding_untouched = false;
  std::size_t warnings = 0;  // of strict mode
  std::vector<SimStatistics> launches;
};

// A simulated device and the kernels that were loaded on it.
struct Machine {
  std::shared_ptr<SimDevice> device;
  std::map<std::string, std::shared_ptr<LoadedKernel>> kernels = {};
};
Machine strict_machine();
Expected<Outputs> run(Machine& machine, const AttentionProblem& problem, const Inputs& inputs,
                      Layout layout = Layout::kStrided);
// Every row at the given strides (elements) of buffers that may be far larger than the host's memory.
struct Strides {
  std::int64_t token, head, batch;
};
Expected<Outputs> run_spread(Machine& machine, const AttentionProblem& problem, const Inputs& inputs,
                             const Strides& strides);

// The value of an e4m3 code; NaN for 0x7f and 0xff.
double e4m3_value(std::uint8_t code);

// What is wrong with the outputs, or empty. `near_ties`, if given, counts codes that are not the nearest by the double
// computation but whose value lies within float32 rounding of the tie.
std::string check(const AttentionProblem& problem, const Inputs& inputs, const Outputs& outputs,
                  std::uint64_t* near_ties = nullptr);

}  // namespace zyfa::tests
