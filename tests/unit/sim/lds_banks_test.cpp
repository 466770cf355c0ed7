// Bank conflicts against counts worked out by hand from the phase table of gfx950-isa.md 3.3.
#include <gtest/gtest.h>

#include <array>

#include "runtime/sim/exec/lds_banks.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Lanes = std::array<u32, kLanes>;

Lanes strided(u32 stride, u32 first = 0) {
  Lanes a{};
  for (u32 l = 0; l < kLanes; ++l) a[l] = first + stride * l;
  return a;
}

struct Case {
  const char* what;
  LdsAccessKind kind;
  u32 bytes;
  Lanes address;
  u32 phases, extra;
  u64 mask = ~0ull;
};

TEST(LdsBanks, HandCounts) {
  using enum LdsAccessKind;
  Lanes two_columns{};  // 16 rows padded from 1,024 to 0x410 bytes, a column of 16 bytes for each 16 lanes
  for (u32 l = 0; l < kLanes; ++l) two_columns[l] = 0x410 * (l % 16) + 16 * (l / 16);
  const std::vector<Case> cases{
      // 16 slots of 16 bytes: lanes 0-3, 12-15 and 20-27 take slots 0-3, 12-15 and 4-11.
      {"b128 consecutive", kRead, 16, strided(16), 4, 0},
      // Slots 0, 2, ... of two windows: each taken twice.
      {"b128 every other slot", kRead, 16, strided(32), 4, 4},
      {"b128 four windows", kRead, 16, strided(64), 4, 12},
      {"b128 one column", kRead, 16, strided(256), 4, 60},
      {"b128 rows of 1,024 bytes", kRead, 16, strided(1024), 4, 60},
      // 0x410 bytes are 4 banks more than a multiple of 64.
      {"b128 padded rows", kRead, 16, strided(0x410), 4, 0},
      // Slots (row + column) mod 16: lanes 20-27 take 5-12, and slot 12 is lane 12's too; the same in each phase.
      {"b128 padded rows, a column for each 16 lanes", kRead, 16, two_columns, 4, 4},
      {"b128 broadcast", kRead, 16, strided(0), 4, 0},
      {"b128 one lane", kRead, 16, strided(256), 1, 0, 1ull << 40},
      // Lanes 0 and 4 are served in different phases, 0 and 12 in the same.
      {"b128 two lanes apart", kRead, 16, strided(256), 2, 0, 0x11},
      {"b128 two lanes together", kRead, 16, strided(256), 1, 1, 0x1001},
      {"b64 consecutive", kRead, 8, strided(8), 2, 0},
      // Lanes l and l + 16: 64 dwords apart.
      {"b64 every other pair", kRead, 8, strided(16), 2, 2},
      {"b64 one column", kRead, 8, strided(256), 2, 62},
      {"tr_b8 as b64", kTransposedRead, 8, strided(16), 2, 2},
      // Lanes 0-3 take banks 0-11, lanes 20-23 dwords 60-71: banks 28-31 and 0-7. The other phases likewise.
      {"b96 packed", kRead, 12, strided(12), 8, 8},
      {"b96 in 16-byte slots", kRead, 12, strided(16), 8, 0},
      {"b32 consecutive", kRead, 4, strided(4), 1, 0},
      {"b32 every other", kRead, 4, strided(8), 1, 1},
      {"b32 one bank", kRead, 4, strided(256), 1, 63},
      {"u8 four to a dword", kRead, 1, strided(1), 1, 0},
      {"write b64 consecutive", kWrite, 8, strided(8), 4, 0},
      {"write b64 one column", kWrite, 8, strided(128), 4, 60},
      {"write b32 consecutive", kWrite, 4, strided(4), 2, 0},
      {"write b32 every other", kWrite, 4, strided(8), 2, 2},
      {"write b128 consecutive", kWrite, 16, strided(16), 8, 0},
      {"write b128 every other", kWrite, 16, strided(32), 8, 8},
      {"atomics on one dword", kAtomic, 4, strided(0), 2, 62},
      {"atomics consecutive", kAtomic, 8, strided(8), 4, 0},
  };
  for (const Case& c : cases) {
    const LdsCost cost = lds_cost(c.kind, c.bytes, c.mask, c.address.data());
    EXPECT_EQ(cost.phases, c.phases) << c.what;
    EXPECT_EQ(cost.extra_cycles, c.extra) << c.what;
  }
}

TEST(LdsBanks, TwoAddressesAreTwoAccesses) {
  const Lanes first = strided(4), second = strided(256);
  const LdsCost cost = lds_cost(LdsAccessKind::kRead2, 4, ~0ull, first.data(), second.data());
  EXPECT_EQ(cost.phases, 2u);
  EXPECT_EQ(cost.extra_cycles, 63u);
}

TEST(LdsBanks, NobodyActive) {
  const Lanes a = strided(256);
  EXPECT_EQ(lds_cost(LdsAccessKind::kRead, 16, 0, a.data()).cycles(), 0u);
}

}  // namespace
}  // namespace zyfa::sim
