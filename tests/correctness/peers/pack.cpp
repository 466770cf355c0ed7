#include "tests/correctness/peers/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace zyfa::peers {
namespace {

constexpr std::int64_t kTile = 128;   // tokens of a packed tile
constexpr std::int64_t kBlock = 32;   // elements under one E8M0 scale
constexpr std::int64_t kSlack = 256;  // zero bytes behind packed buffers, which the kernels read
// The kernels read the scales of whole tiles: up to 256 tokens, and two tiles of V.
constexpr std::int64_t kScaleRowsBehind = 256, kScaleBytesBehind = 2048;

// A float of `exponent_bits` and `mantissa_bits`; OCP e4m3fn, e2m3 and e2m1 have no infinities.
struct SmallFloat {
  int exponent_bits, mantissa_bits, bias;
  double largest;

  [[nodiscard]] double decode(std::uint32_t code) const {
    const int width = exponent_bits + mantissa_bits, one = 1 << mantissa_bits;
    const int e = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int m = static_cast<int>(code) & (one - 1);
    const double size = std::ldexp(e == 0 ? m : m + one, std::max(e, 1) - bias - mantissa_bits);
    return (code >> width & 1) != 0 ? -size : size;
  }
  // Nearest, ties to even, saturating. The step doubles with every binade; rounding up may carry into the next one,
  // which the sum of the fields takes care of.
  [[nodiscard]] std::uint32_t encode(double value) const {
    const double size = std::min(std::abs(value), largest);
    const int least = 1 - bias;  // exponent of the smallest normal number
    const int binade = size < std::ldexp(1, least) ? least : std::ilogb(size);
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, mantissa_bits - binade)));
    const int code = ((binade - least) << mantissa_bits) + steps;
    return static_cast<std::uint32_t>(code | (std::signbit(value) ? 1 << (exponent_bits + mantissa_bits) : 0));
  }
};
constexpr SmallFloat kE4m3{4, 3, 7, 448}, kE2m3{2, 3, 1, 7.5}, kE2m1{2, 1, 1, 6};

const SmallFloat& element_of(Format format) {
  return format == Format::kMxE2m3 ? kE2m3 : format == Format::kMxE2m1 ? kE2m1 : kE4m3;
}

// Quantised elements in dense order, before they are laid out.
struct Codes {
  std::vector<std::uint8_t> code;
  std::vector<std::uint8_t> scale;  // E8M0, one for kBlock elements; index by block_of()
};

struct Shape4 {
  std::int64_t batch, tokens, heads, dim;
  [[nodiscard]] std::int64_t at(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t d) const {
    return ((b * tokens + t) * heads + h) * dim + d;
  }
  [[nodiscard]] std::int64_t tiles() const { return (tokens + kTile - 1) / kTile; }
  void each(const std::function<void(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& f) const {
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t h = 0; h < heads; ++h)
          for (std::int64_t d = 0; d < dim; ++d) f(b, t, h, d);
  }
};

void append(std::vector<std::uint8_t>& bytes, const void* data, std::size_t size) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  bytes.insert(bytes.end(), from, from + size);
}

void set_dense_strides(Array& a, std::int64_t row_bytes) {
  a.head_stride = row_bytes;
  a.token_stride = a.heads * row_bytes;
  a.batch_stride = a.tokens * a.token_stride;
}
// Tiles of `bytes` for 128 tokens of a head, one after the other, then the next head.
void set_tiled_strides(Array& a, std::int64_t tiles, std::int64_t bytes) {
  a.token_stride = bytes / kTile;
  a.head_stride = tiles * bytes;
  a.batch_stride = a.heads * a.head_stride;
  a.bytes.assign(static_cast<std::size_t>(a.batch * a.batch_stride + kSlack), 0);
}

// Which tokens share a scale with token t in the f8f6 layout of V: its 64 tokens in two sets, by bit 2 of the token.
// kScaleSets of 64 tokens: set and position.
struct Field {
  std::int64_t lane_half, field;
};
Field fp6_field(std::int64_t t64) {
  const std::int64_t byte = 16 * (t64 / 32) + 4 * (t64 % 32 / 8) + t64 % 4, group = t64 % 8 / 4;
  const std::int64_t paired = 32 * group + byte;
  const std::int64_t physical = (paired & 15) | (paired & 16) << 1 | (paired & 32) >> 1;
  return {physical / 32, physical % 32};
}

// Block of the element among those of its tensor.
std::int64_t block_of(const Shape4& s, Format format, Operand operand, std::int64_t b, std::int64_t t, std::int64_t h,
                      std::int64_t d) {
  if (operand != Operand::kV) return s.at(b, t, h, d) / kBlock;
  const std::int64_t quarter = format == Format::kMxE2m3 ? t / 64 * 2 + fp6_field(t % 64).lane_half : t / kBlock;
  return ((b * s.heads + h) * s.dim + d) * s.tiles() * 4 + quarter;
}

Codes quantise_blocks(Array& a, const Shape4& s, const std::vector<double>& exact, Format format, Operand operand) {
  const SmallFloat& element = element_of(format);
  const std::int64_t blocks = operand == Operand::kV ? s.batch * s.heads * s.dim * s.tiles() * 4
                                                     : s.batch * s.tokens * s.heads * s.dim / kBlock;
  std::vector<double> largest(static_cast<std::size_t>(blocks));
  s.each([&](auto b, auto t, auto h, auto d) {
    double& top = largest[static_cast<std::size_t>(block_of(s, format, operand, b, t, h, d))];
    top = std::max(top, std::abs(exact[static_cast<std::size_t>(s.at(b, t, h, d))]));
  });
  Codes codes;
  for (const double top : largest) {
    // The least power of two under which nothing saturates.
    const int e = top == 0 ? 0 : static_cast<int>(std::ceil(std::log2(top / element.largest)));
    codes.scale.push_back(static_cast<std::uint8_t>(127 + e));
  }
  s.each([&](auto b, auto t, auto h, auto d) {
    const int e = codes.scale[static_cast<std::size_t>(block_of(s, format, operand, b, t, h, d))] - 127;
    const std::uint32_t code = element.encode(std::ldexp(exact[static_cast<std::size_t>(s.at(b, t, h, d))], -e));
    codes.code.push_back(static_cast<std::uint8_t>(code));
    a.values.push_back(reference::double_to_bf16(std::ldexp(element.decode(code), e)));
  });
  return codes;
}

void put_bits(std::uint8_t* bytes, std::int64_t bit, std::uint32_t code) {
  for (std::int64_t i = 0; i < 6; ++i) {
    bytes[(bit + i) / 8] = static_cast<std::uint8_t>(bytes[(bit + i) / 8] | (code >> i & 1) << (bit + i) % 8);
  }
}

// 32 e2m3 codes in 24 bytes: elements i and 16 + i stand side by side.
void put_fp6_block(std::uint8_t* to, const std::uint8_t* codes) {
  for (std::int64_t i = 0; i < kBlock; ++i) put_bits(to, 6 * (i % 16 * 2 + i / 16), codes[i]);
}

// Q and K: scales [batch, tokens, heads, dim / 32].
void lay_out_qk(Array& a, const Shape4& s, const Codes& codes, Format format, Operand operand) {
  const std::int64_t groups = s.dim / kBlock, rows = s.batch * s.tokens * s.heads;
  a.descales = codes.scale;
  a.descales.resize(a.descales.size() + static_cast<std::size_t>(kScaleRowsBehind * s.heads * groups));
  a.descale_head_stride = groups;
  a.descale_batch_stride = s.tokens * s.heads * groups;
  if (format == Format::kMxE4m3) {
    a.bytes = codes.code;
    set_dense_strides(a, s.dim);
    return;
  }
  const bool six = format == Format::kMxE2m3;
  const std::int64_t group_bytes = six ? 24 : 16;
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(rows * groups * group_bytes));
  for (std::int64_t g = 0; g < rows * groups; ++g) {
    const std::uint8_t* from = &codes.code[static_cast<std::size_t>(g * kBlock)];
    std::uint8_t* to = &packed[static_cast<std::size_t>(g * group_bytes)];
    if (six) {
      put_fp6_block(to, from);
    } else {
      for (std::int64_t i = 0; i < 16; ++i) to[i] = static_cast<std::uint8_t>(from[2 * i] | from[2 * i + 1] << 4);
    }
  }
  if (operand == Operand::kQ) {
    a.bytes = packed;
    set_dense_strides(a, groups * group_bytes);
    return;
  }
  // K in the order in which it goes to LDS, for e2m3 with an image of its scales behind each tile.
  set_tiled_strides(a, s.tiles(), six ? 17408 : 8192);
  const auto scale_of = [&](std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t g) {
    return t < s.tokens ? codes.scale[static_cast<std::size_t>(s.at(b, t, h, 0) / kBlock + g)] : std::uint8_t{0};
  };
  s.each([&](auto b, auto t, auto h, auto d) {
    if (d % kBlock != 0) return;
    const std::int64_t g = d / kBlock, in_tile = t % kTile;
    std::uint8_t* tile =
        &a.bytes[static_cast<std::size_t>(b * a.batch_stride + h * a.head_stride + t / kTile * kTile * a.token_stride)];
    const std::uint8_t* from = &packed[static_cast<std::size_t>((s.at(b, t, h, d) / kBlock) * group_bytes)];
    if (!six) {
      std::memcpy(tile + g * 2048 + in_tile * 16, from, 16);
      return;
    }
    const std::int64_t quarter = in_tile / 32, lane = in_tile % 32;
    std::memcpy(tile + quarter * 2048 + g * 512 + lane * 16, from, 16);
    std::memcpy(tile + 8192 + quarter * 1024 + g * 256 + lane * 8, from + 16, 8);
    std::uint8_t* image = tile + 16384 + lane / 16 * 256 + (lane % 16 * 4 + quarter) * 4 + g;
    image[0] = scale_of(b, t, h, g);
    image[512] = scale_of(b, t + (g + 1) / 4, h, (g + 1) % 4);  // the same, one byte on
  });
}

// V with scales along the keys: tiles of 64 x 128 nibbles or 128 x 96 bytes, 512 scales a tile.
void lay_out_v(Array& a, const Shape4& s, const Codes& codes, Format format) {
  const bool six = format == Format::kMxE2m3;
  set_tiled_strides(a, s.tiles(), six ? 12288 : 8192);
  a.descale_head_stride = s.tiles() * 512;
  a.descale_batch_stride = s.heads * a.descale_head_stride;
  a.descales.assign(static_cast<std::size_t>(s.batch * a.descale_batch_stride + kScaleBytesBehind), 0);
  s.each([&](auto b, auto t, auto h, auto d) {
    const std::int64_t tile = t / kTile, half = t % kTile / 64, t64 = t % 64;
    const auto element = static_cast<std::size_t>(s.at(b, t, h, d));
    const std::uint8_t scale = codes.scale[static_cast<std::size_t>(block_of(s, format, Operand::kV, b, t, h, d))];
    std::uint8_t* to =
        &a.bytes[static_cast<std::size_t>(b * a.batch_stride + h * a.head_stride + tile * kTile * a.token_stride)];
    std::uint8_t* scales = &a.descales[static_cast<std::size_t>(b * a.descale_batch_stride + h * a.descale_head_stride +
                                                                tile * 512 + half * 256)];
    if (six) {
      const auto [lane_half, field] = fp6_field(t64);
      const std::int64_t lane = lane_half * 32 + d % 32;
      put_bits(to + (d / 32 * 2 + half) * 1536 + lane * 24, 6 * field, codes.code[element]);
      scales[lane * 4 + d / 32] = scale;
    } else {
      const std::int64_t j = t64 % 32, column = t64 / 32 * 32 + 4 * (j / 8) + 16 * (j / 4 % 2) + j % 4;
      std::uint8_t& byte = to[(2 * (d / 32) + half) * 1024 + column * 16 + d % 32 / 2];
      byte = static_cast<std::uint8_t>(byte | codes.code[element] << 4 * (d % 2));
      scales[t64 / 32 * 128 + d % 32 * 4 + d / 32] = scale;
    }
  });
}

void pack_per_tensor(Array& a, const std::vector<double>& exact, Format format) {
  double top = 0;
  for (const double x : exact) top = std::max(top, std::abs(x));
  const bool integer = format == Format::kI8;
  a.descale = top == 0 ? 1.0F : static_cast<float>(top / (integer ? 127 : kE4m3.largest));
  for (const double x : exact) {
    const double scaled = x / a.descale;
    if (integer) {
      const auto code = static_cast<std::int8_t>(std::clamp(std::nearbyint(scaled), -127.0, 127.0));
      a.bytes.push_back(static_cast<std::uint8_t>(code));
      a.values.push_back(reference::double_to_bf16(code));
    } else {
      a.bytes.push_back(static_cast<std::uint8_t>(kE4m3.encode(scaled)));
      a.values.push_back(reference::double_to_bf16(kE4m3.decode(a.bytes.back())));
    }
  }
  append(a.descales, &a.descale, sizeof a.descale);
  set_dense_strides(a, a.dim);
}

// Scales that are powers of two, so that code times scale is a bf16.
void pack_per_channel(Array& a, const Shape4& s, const std::vector<double>& exact) {
  std::vector<double> top(static_cast<std::size_t>(s.batch * s.heads * s.dim));
  const auto channel = [&](auto b, auto h, auto d) { return static_cast<std::size_t>((b * s.heads + h) * s.dim + d); };
  s.each([&](auto b, auto t, auto h, auto d) {
    top[channel(b, h, d)] =
        std::max(top[channel(b, h, d)], std::abs(exact[static_cast<std::size_t>(s.at(b, t, h, d))]));
  });
  for (double& x : top) {
    x = x == 0 ? 1 : std::exp2(std::ceil(std::log2(x / kE4m3.largest)));
    const auto scale = static_cast<float>(x);
    append(a.descales, &scale, sizeof scale);
  }
  s.each([&](auto b, auto t, auto h, auto d) {
    const double scale = top[channel(b, h, d)];
    a.bytes.push_back(
        static_cast<std::uint8_t>(kE4m3.encode(exact[static_cast<std::size_t>(s.at(b, t, h, d))] / scale)));
    a.values.push_back(reference::double_to_bf16(kE4m3.decode(a.bytes.back()) * scale));
  });
  a.descale_head_stride = s.dim * 4;
  a.descale_batch_stride = s.heads * s.dim * 4;
  set_dense_strides(a, a.dim);
}

}  // namespace

Array pack(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t dim,
           const std::vector<double>& exact, Format format, Operand operand) {
  const Shape4 s{batch, tokens, heads, dim};
  Array a;
  a.batch = batch, a.tokens = tokens, a.heads = heads, a.dim = dim;
  if (format == Format::kBf16) {
    for (const double x : exact) a.values.push_back(reference::double_to_bf16(x));
    append(a.bytes, a.values.data(), 2 * a.values.size());
    set_dense_strides(a, 2 * dim);
  } else if (format == Format::kE4m3Channel) {
    pack_per_channel(a, s, exact);
  } else if (!is_mx(format)) {
    pack_per_tensor(a, exact, format);
  } else {
    const Codes codes = quantise_blocks(a, s, exact, format, operand);
    if (operand == Operand::kV) {
      lay_out_v(a, s, codes, format);
    } else {
      lay_out_qk(a, s, codes, format, operand);
    }
  }
  return a;
}

}  // namespace zyfa::peers
