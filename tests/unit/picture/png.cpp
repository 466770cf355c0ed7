#include "tests/unit/picture/png.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>

namespace zyfa::sim_test {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;

u32 word(const std::string& bytes, std::size_t at) {
  u32 value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<u8>(bytes[at + i]);
  return value;
}

// The predictor of filter type 4 (section 9.4).
int paeth(int a, int b, int c) {
  const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  if (pa <= pb && pa <= pc) return a;
  return pb <= pc ? b : c;
}

int prediction(int filter, int left, int up, int corner) {
  switch (filter) {
    case 1:
      return left;
    case 2:
      return up;
    case 3:
      return (left + up) / 2;
    case 4:
      return paeth(left, up, corner);
    default:
      return 0;
  }
}

}  // namespace

std::map<u32, std::size_t> Image::colours() const {
  std::map<u32, std::size_t> counts;
  for (const u32 pixel : pixels) ++counts[pixel];
  return counts;
}

std::optional<Image> read_png(const std::string& bytes) {
  constexpr std::size_t kHeader = 33;
  if (bytes.size() < kHeader || bytes.substr(0, 8) != "\x89PNG\r\n\x1a\n") return std::nullopt;
  Image image{word(bytes, 16), word(bytes, 20), {}};
  const u8 depth = static_cast<u8>(bytes[24]), type = static_cast<u8>(bytes[25]),
           interlace = static_cast<u8>(bytes[28]);
  if (depth != 8 || (type != 2 && type != 6) || interlace != 0) return std::nullopt;
  std::string packed;
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    const std::size_t size = word(bytes, at);
    if (size > bytes.size() - at - 12) return std::nullopt;
    if (bytes.compare(at + 4, 4, "IDAT") == 0) packed.append(bytes, at + 8, size);
    at += size + 12;
  }
  const std::size_t channels = type == 2 ? 3 : 4, stride = image.width * channels;
  std::vector<u8> raw((stride + 1) * image.height);
  uLongf length = raw.size();
  if (uncompress(raw.data(), &length, reinterpret_cast<const Bytef*>(packed.data()), packed.size()) != Z_OK ||
      length != raw.size())
    return std::nullopt;
  std::vector<u8> above(stride), row(stride);
  for (std::size_t y = 0; y < image.height; ++y) {
    const u8* line = raw.data() + y * (stride + 1);
    for (std::size_t i = 0; i < stride; ++i) {
      const int left = i < channels ? 0 : row[i - channels], corner = i < channels ? 0 : above[i - channels];
      row[i] = static_cast<u8>(line[i + 1] + prediction(line[0], left, above[i], corner));
    }
    for (std::size_t x = 0; x < stride; x += channels)
      image.pixels.push_back(u32{row[x]} << 16 | u32{row[x + 1]} << 8 | row[x + 2]);
    std::swap(above, row);
  }
  return image;
}

}  // namespace zyfa::sim_test
