#include "tools/profile_inputs.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "tests/reference/attention.h"
#include "tests/reference/eight_bit.h"

namespace zyfa::tools {
namespace {

constexpr double kCodesPerUnit = 80;

// Counter-based (SplitMix64), so that each tensor has its own stream whatever the others' sizes.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : state_(seed << 40) {}
  // Box-Muller.
  double operator()() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  // In (0, 1].
  double uniform() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return (static_cast<double>((x ^ (x >> 31)) >> 11) + 1) * 0x1p-53;
  }
  std::uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

std::vector<std::byte> tensor(DType type, std::int64_t elements, std::uint64_t seed) {
  Normal normal(seed);
  const auto count = static_cast<std::size_t>(elements);
  const std::size_t size = type == DType::kFp8E4M3 ? 1 : 2;
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = normal();
    if (type == DType::kFp8E4M3) {
      bytes[i] = std::byte{reference::double_to_e4m3(kCodesPerUnit * value)};
    } else {
      const std::uint16_t code = reference::double_to_bf16(value);
      std::memcpy(&bytes[i * size], &code, sizeof code);
    }
  }
  return bytes;
}

}  // namespace

io::AttentionInputs gaussian_inputs(const AttentionProblem& problem, std::int64_t tokens, std::int64_t key_tokens) {
  io::AttentionInputs in;
  in.dtype = problem.dtype;
  in.q_shape = {tokens, 1, problem.head_dim_qk};
  in.k_shape = {key_tokens, 1, problem.head_dim_qk};
  in.v_shape = {key_tokens, 1, problem.head_dim_v};
  in.q = tensor(problem.dtype, tokens * problem.head_dim_qk, 1);
  in.k = tensor(problem.dtype, key_tokens * problem.head_dim_qk, 2);
  in.v = tensor(problem.dtype, key_tokens * problem.head_dim_v, 3);
  if (problem.dtype == DType::kFp8E4M3) {
    for (io::Descale* descale : {&in.q_descale, &in.k_descale, &in.v_descale}) {
      descale->values = {static_cast<float>(1 / kCodesPerUnit)};
    }
  }
  return in;
}

}  // namespace zyfa::tools
