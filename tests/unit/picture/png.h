// Reads the PNG files that a browser writes: 8 bits a channel, RGB or RGBA, not interlaced (ISO/IEC 15948).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zyfa::sim_test {

struct Image {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint32_t> pixels;  // 0xrrggbb, row by row

  [[nodiscard]] std::map<std::uint32_t, std::size_t> colours() const;  // pixels of each
};

// nullopt for anything else.
std::optional<Image> read_png(const std::string& bytes);

}  // namespace zyfa::sim_test
