// Runs one 8-bit attention kernel, built by the schedules library, on the simulated device and compares it with fp64
// attention on the dequantised inputs, so that what is left is the error of P (and of rounding O).
//
// Every tensor is a strided view into a larger buffer whose unused bytes are NaN codes (inputs) or a pattern (outputs)
// that must survive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "schedules/compile.h"
#include "schedules/select/kernel_spec.h"
#include "tests/reference/compare.h"
#include "zyfa/device.h"

namespace zyfa::tests {

enum class Layout { kPacked, kStrided };
// Random ones about 1 (folded: q's makes the product a power of two), or null pointers, which mean 1.
enum class Descales { kPerHead, kOne, kNone };

// Host data of q, k and v as values on the 8-bit grid (times the descales).
struct Fp8Inputs {
  std::int64_t batch = 1, query_length = 1, key_length = 1, heads = 1, key_heads = 1, dim = 128;
  std::vector<std::uint8_t> q, k, v;                   // packed codes [B, S, H, D]
  std::vector<float> q_descale, k_descale, v_descale;  // [B, Hk], one value, or none (1)

  [[nodiscard]] std::uint8_t* q_row(std::int64_t b, std::int64_t s, std::int64_t h);
  [[nodiscard]] std::uint8_t* k_row(std::int64_t b, std::int64_t s, std::int64_t h);
  [[nodiscard]] std::uint8_t* v_row(std::int64_t b, std::int64_t s, std::int64_t h);
};

struct Fp8Case {
  std::int64_t batch = 1, query_length = 1, key_length = 1, heads = 1, key_heads = 1;
  schedules::KernelSpec spec;  // placement is filled in from `placement`
  std::string placement = {};  // row name or text
  Layout layout = Layout::kStrided;
  double spread = 2.0;  // standard deviation of q and k
  std::uint32_t seed = 1;
  float softmax_scale = 0.08838834764831845F;
  Descales descales = Descales::kPerHead;
  std::function<void(Fp8Inputs&)> change = {};  // the generated inputs, before anything is computed
};

std::string describe(const Fp8Case& c);

struct Fp8Output {
  std::vector<std::uint16_t> o;  // packed [B, Sq, H, 128]
  std::vector<float> lse;        // [B, H, Sq]; empty when the kernel writes none
  bool outside_untouched = false;
};

struct Fp8Outcome : Fp8Output {
  reference::ErrorFigures figures;  // against fp64
};

[[nodiscard]] schedules::KernelSpec fp8_spec();  // e4m3, 128/128, lean, blocks, multiply-add, LSE written
// A kernel under the name of its test.
struct NamedSpec {
  std::string name;
  schedules::KernelSpec spec;
};
// Every variant of a head dim: int8 and exact have no folded form.
[[nodiscard]] std::vector<schedules::KernelSpec> fp8_variants(std::uint32_t head_dim, schedules::MaskKind mask);

Expected<Fp8Outcome> run_fp8_case(const Fp8Case& c, SimDevice& device);

// The steps of run_fp8_case().
[[nodiscard]] Fp8Inputs make_fp8_inputs(const Fp8Case& c);
Expected<const schedules::CompiledKernel*> fp8_kernel(const Fp8Case& c);  // built once a process
Expected<Fp8Output> launch_fp8_case(const Fp8Case& c, const Fp8Inputs& in, SimDevice& device);
// The same with a kernel of one's own making.
struct Fp8Object {
  std::span<const std::byte> object;
  std::string symbol;
  std::uint32_t waves = 0;
  std::uint32_t query_tile = 0;  // queries of a workgroup
};
Expected<Fp8Output> launch_fp8_object(const Fp8Case& c, const Fp8Inputs& in, const Fp8Object& kernel,
                                      SimDevice& device);
Expected<reference::AttentionResult> expected_fp8_attention(const Fp8Case& c, const Fp8Inputs& in);
Expected<reference::ErrorFigures> fp8_error(const Fp8Case& c, const reference::AttentionResult& expected,
                                            const Fp8Output& output);

[[nodiscard]] double fp8_value(std::uint8_t code, schedules::ElementType element);
[[nodiscard]] float descale_at(const std::vector<float>& descales, std::size_t index);
[[nodiscard]] std::vector<std::uint32_t> lse_bits(const Fp8Output& output);

}  // namespace zyfa::tests
