// Typed buffer elements: data formats and number formats of the CDNA4 guide (13.5.1) and their conversion to and from
// registers. Pure; memory and descriptors are the caller's (vmem_typed.cpp).
//
// Channels of 32 bits are never converted (guide 9.1.3). Where the guide is silent about a conversion: to normalised,
// scaled and narrower float formats numbers are rounded to nearest even, clamped to the format's range, and NaN becomes
// 0; integers keep their low bits; unsigned floats make negative numbers 0.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace zyfa::sim {

enum class NumberFormat : std::uint8_t { kUnorm, kSnorm, kUscaled, kSscaled, kUint, kSint, kFloat };

struct BufferFormat {
  NumberFormat number = NumberFormat::kUnorm;
  std::uint8_t channels = 0;
  std::uint8_t bytes = 0;              // of an element
  std::array<std::uint8_t, 4> bits{};  // by channel; the first one is the lowest
  std::array<std::uint8_t, 4> shift{};
  bool packed = false;  // channels that are no whole bytes

  [[nodiscard]] bool integer() const { return number == NumberFormat::kUint || number == NumberFormat::kSint; }
};

// Empty, or why the pair of formats cannot be used.
std::string decode_buffer_format(std::uint32_t data_format, std::uint32_t number_format, BufferFormat& format);

// Channel `c` of an element: the bits in memory to a 32-bit register, and back.
std::uint32_t channel_to_register(const BufferFormat& format, unsigned c, std::uint32_t bits);
std::uint32_t register_to_channel(const BufferFormat& format, unsigned c, std::uint32_t value);

// D16 forms: a 32-bit register value to 16 bits (f16, or the low half of an integer), and back.
std::uint32_t register_to_d16(const BufferFormat& format, std::uint32_t value);
std::uint32_t d16_to_register(const BufferFormat& format, std::uint32_t half);

}  // namespace zyfa::sim
