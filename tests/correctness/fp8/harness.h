// Runs one 8-bit attention kernel, built by the schedules library, on the simulated device and compares it with fp64
// attention on the dequantised inputs, so that what is left is the error of P (and of rounding O).
//
// Every tensor is a strided view into a larger buffer whose unused bytes are NaN codes (inputs) or a pattern (outputs)
// that must survive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schedules/select/kernel_spec.h"
#include "tests/reference/compare.h"
#include "zyfa/device.h"

namespace zyfa::tests {

enum class Layout { kPacked, kStrided };

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
  std::string placement;       // row name or text
  Layout layout = Layout::kStrided;
  double spread = 2.0;  // standard deviation of q and k
  std::uint32_t seed = 1;
  float softmax_scale = 0.08838834764831845F;
  // Descales of a random size around these; for folded kernels q's is chosen so that the product is a power of two.
  bool descales_per_head = true;
  std::function<void(Fp8Inputs&)> change = {};  // the generated inputs, before anything is computed
};

std::string describe(const Fp8Case& c);

struct Fp8Outcome {
  reference::ErrorFigures figures;
  std::vector<std::uint16_t> o;  // packed [B, Sq, H, 128]
  std::vector<float> lse;        // [B, H, Sq]
  bool outside_untouched = false;
};

[[nodiscard]] schedules::KernelSpec fp8_spec();  // e4m3, 128/128, lean, blocks, multiply-add, LSE written

Expected<Fp8Outcome> run_fp8_case(const Fp8Case& c, SimDevice& device);

}  // namespace zyfa::tests
