// Wave-uniform constants in registers, where moves and adds of constants make them known on every path.
// Enough to learn the LDS bytes that a direct-to-LDS load writes (M0) and a ds_read reads; everything else is unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "jit/verify/program.h"

namespace zyfa::jit::verify {

struct ByteRange {
  std::uint32_t begin = 0, end = 0;
  [[nodiscard]] bool overlaps(ByteRange o) const { return begin < o.end && o.begin < end; }
};

// LDS bytes, from the kernel's LDS base, by node index: of LDS-DMA loads (written) and LDS reads (read).
struct LdsRanges {
  std::unordered_map<std::uint32_t, ByteRange> dma, reads;
};
LdsRanges known_lds_ranges(const Program& program);

}  // namespace zyfa::jit::verify
