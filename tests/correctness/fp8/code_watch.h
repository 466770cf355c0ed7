// Watches the probabilities of a running kernel: the codes that enter the row-sum products (all of P, on either path),
// and what v_cvt_pk_u8_f32 converts.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "zyfa/device.h"

namespace zyfa::tests {

struct WatchedCodes {
  std::array<std::uint64_t, 256> counts{};  // of the codes that were multiplied
  std::vector<std::uint8_t> codes;          // the same in the order of lanes and registers
  std::vector<float> converted;             // Lean: values before conversion, in the order of execution

  [[nodiscard]] std::uint64_t total() const;
  [[nodiscard]] int largest() const;  // -1 when none was seen
};

enum class WatchValues { kCodes, kCodesAndConverted };

// Watches of workgroup (0, 0, 0) and one wave of it, for SimOptions::watches; `to` outlives the launches.
[[nodiscard]] std::vector<SimWatch> watch_codes(WatchedCodes& to, WatchValues values, std::uint32_t wave = 0);

}  // namespace zyfa::tests
