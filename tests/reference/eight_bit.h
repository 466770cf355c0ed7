// The 8-bit number formats by their definitions, in double: the yardstick for codes. Shares no code with the simulator
// or with kernels.
//
// E4M3 (OCP e4m3fn): sign, 4 exponent bits of bias 7, 3 mantissa bits; largest value 448, no infinity, 0x7f and 0xff
// are NaN. A code of a positive value grows by 8 a doubling, which is what Lean probabilities rest on.
#pragma once

#include <cstdint>

namespace zyfa::reference {

inline constexpr double kE4m3Max = 448.0;
inline constexpr std::uint8_t kE4m3MaxCode = 126, kE4m3Nan = 127;
inline constexpr double kInt8Max = 127.0;  // symmetric: -128 is never formed

// Value of a code; NaN for 0x7f and 0xff.
[[nodiscard]] double e4m3_to_double(std::uint8_t code);
// Nearest code, ties to the even one; finite values saturate at +-448. NaN and the infinities give the NaN code with
// their sign, as the quantiser does.
[[nodiscard]] std::uint8_t double_to_e4m3(double value);
// Nearest integer in [-127, 127], ties to even. `value` is not NaN.
[[nodiscard]] std::int8_t double_to_int8(double value);

// Rounding of a byte conversion, as v_cvt_pk_u8_f32: negative values give 0, those above 255 give 255. `value` is not
// NaN.
enum class ByteRounding { kNearestEven, kTruncate };
[[nodiscard]] std::uint8_t double_to_byte(double value, ByteRounding rounding);

}  // namespace zyfa::reference
