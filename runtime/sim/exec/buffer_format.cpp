// Tables and conversions of typed buffer elements: see buffer_format.h.
#include "runtime/sim/exec/buffer_format.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "runtime/sim/exec/small_float.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;

constexpr u32 kReservedNumber = 6, kFloatNumber = 7;

// Bits of the channels by data format, the lowest first: names list the highest first.
constexpr std::array<std::array<std::uint8_t, 4>, 16> kChannels{{{},
                                                                 {8},
                                                                 {16},
                                                                 {8, 8},
                                                                 {32},
                                                                 {16, 16},
                                                                 {11, 11, 10},
                                                                 {},
                                                                 {2, 10, 10, 10},
                                                                 {10, 10, 10, 2},
                                                                 {8, 8, 8, 8},
                                                                 {32, 32},
                                                                 {16, 16, 16, 16},
                                                                 {32, 32, 32},
                                                                 {32, 32, 32, 32},
                                                                 {}}};

u32 ones(unsigned bits) { return bits == 32 ? ~0u : (1u << bits) - 1; }
i32 sign_extend(u32 x, unsigned bits) { return static_cast<i32>(x << (32 - bits)) >> (32 - bits); }
u32 raw(float x) { return std::bit_cast<u32>(x); }

float float_of(unsigned bits, u32 code) {
  return bits == 16 ? from_half(kF16, code) : from_small(bits == 11 ? kFloat11 : kFloat10, code);
}
u32 code_of(unsigned bits, float x) {
  if (bits == 16) return to_half(kF16, x);
  return x < 0 ? 0 : to_small(bits == 11 ? kFloat11 : kFloat10, x);
}

double clamped(double x, double least, double most) { return x != x ? 0 : x < least ? least : x > most ? most : x; }

}  // namespace

std::string decode_buffer_format(u32 data_format, u32 number_format, BufferFormat& f) {
  const auto& channels = kChannels[data_format & 15];
  if (channels[0] == 0)
    return fmt::format("buffer data format {} is not in the CDNA4 guide (1 to 6 and 8 to 14 are)", data_format & 15);
  if (number_format == kReservedNumber) return "buffer number format 6 is reserved";
  f = BufferFormat{};
  f.number = number_format == kFloatNumber ? NumberFormat::kFloat : static_cast<NumberFormat>(number_format & 7);
  unsigned bits = 0;
  for (unsigned c = 0; c < 4 && channels[c] != 0; ++c) {
    if (f.number == NumberFormat::kFloat && channels[c] != 32 && channels[c] != 16 && data_format != 6) {
      return fmt::format("buffer data format {} has channels of {} bits, for which there is no float format",
                         data_format, channels[c]);
    }
    f.bits[c] = channels[c];
    f.shift[c] = static_cast<std::uint8_t>(bits);
    f.packed |= channels[c] % 8 != 0;
    bits += channels[c];
    ++f.channels;
  }
  f.bytes = static_cast<std::uint8_t>(bits / 8);
  return {};
}

u32 channel_to_register(const BufferFormat& f, unsigned c, u32 x) {
  const unsigned bits = f.bits[c];
  if (bits == 32) return x;
  switch (f.number) {
    case NumberFormat::kUnorm:
      return raw(static_cast<float>(x) / static_cast<float>(ones(bits)));
    case NumberFormat::kSnorm: {
      const float value = static_cast<float>(sign_extend(x, bits)) / static_cast<float>(ones(bits - 1));
      return raw(value < -1.0f ? -1.0f : value);
    }
    case NumberFormat::kUscaled:
      return raw(static_cast<float>(x));
    case NumberFormat::kSscaled:
      return raw(static_cast<float>(sign_extend(x, bits)));
    case NumberFormat::kUint:
      return x;
    case NumberFormat::kSint:
      return static_cast<u32>(sign_extend(x, bits));
    case NumberFormat::kFloat:
      return raw(float_of(bits, x));
  }
  return 0;
}

u32 register_to_channel(const BufferFormat& f, unsigned c, u32 x) {
  const unsigned bits = f.bits[c];
  if (bits == 32) return x;
  const double value = std::bit_cast<float>(x), most = ones(bits), half = ones(bits - 1);
  const auto to_signed = [&](double v) { return static_cast<u32>(static_cast<i32>(std::nearbyint(v))) & ones(bits); };
  switch (f.number) {
    case NumberFormat::kUnorm:
      return static_cast<u32>(std::nearbyint(clamped(value, 0, 1) * most));
    case NumberFormat::kSnorm:
      return to_signed(clamped(value, -1, 1) * half);
    case NumberFormat::kUscaled:
      return static_cast<u32>(std::nearbyint(clamped(value, 0, most)));
    case NumberFormat::kSscaled:
      return to_signed(clamped(value, -half - 1, half));
    case NumberFormat::kUint:
    case NumberFormat::kSint:
      return x & ones(bits);
    case NumberFormat::kFloat:
      return code_of(bits, std::bit_cast<float>(x));
  }
  return 0;
}

u32 register_to_d16(const BufferFormat& f, u32 x) {
  return f.integer() ? x & 0xffff : to_half(kF16, std::bit_cast<float>(x));
}
u32 d16_to_register(const BufferFormat& f, u32 x) {
  x &= 0xffff;
  if (f.number == NumberFormat::kUint) return x;
  return f.number == NumberFormat::kSint ? static_cast<u32>(sign_extend(x, 16)) : raw(from_half(kF16, x));
}

}  // namespace zyfa::sim
