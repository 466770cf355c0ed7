// LDS forms other than atomics (gfx950-isa.md 3.3; CDNA4 guide 11.3, 12.12): halves of registers, two addresses,
// addresses by lane, alignment, bounds, accumulation registers, lane permutes and swizzles.
#include <bit>
#include <random>

#include "tests/unit/sim/memory_machine.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;

// 4 KB of LDS hold the input; the pattern is random.
MemoryMachine with_lds(unsigned lds = 4096) {
  MemoryMachine m;
  std::mt19937 rng(7);
  for (u32& x : m.in) x = static_cast<u32>(rng());
  m.options.lds = lds;
  return m;
}
constexpr char kFill[] = R"(
s_mov_b32 m0, 0
s_nop 0
global_load_lds_dwordx4 v2, s[4:5]
s_movk_i32 s20, 0x400
s_mov_b32 m0, s20
v_add_u32 v3, 0x400, v2
global_load_lds_dwordx4 v3, s[4:5]
s_movk_i32 s20, 0x800
s_mov_b32 m0, s20
v_add_u32 v3, 0x800, v2
global_load_lds_dwordx4 v3, s[4:5]
s_movk_i32 s20, 0xc00
s_mov_b32 m0, s20
v_add_u32 v3, 0xc00, v2
global_load_lds_dwordx4 v3, s[4:5]
s_waitcnt vmcnt(0)
)";

u32 bytes_at(const MemoryMachine& m, u32 address, u32 bytes) {
  u32 value = 0;
  for (u32 i = 0; i < bytes; ++i)
    if (address + i < 4096) value |= ((m.in[(address + i) / 4] >> (8 * ((address + i) % 4))) & 0xff) << (8 * i);
  return value;
}

TEST(LdsForms, HalvesOfRegisters) {
  struct Form {
    const char* name;
    u32 bytes;
    bool sign, high;
  };
  for (const Form& f : {Form{"ds_read_u8_d16", 1, false, false}, Form{"ds_read_u8_d16_hi", 1, false, true},
                        Form{"ds_read_i8_d16", 1, true, false}, Form{"ds_read_i8_d16_hi", 1, true, true},
                        Form{"ds_read_u16_d16", 2, false, false}, Form{"ds_read_u16_d16_hi", 2, false, true}}) {
    for (const SimD16 rule : {SimD16::kKeepsHalf, SimD16::kClearsHalf}) {
      MemoryMachine m = with_lds();
      m.options.rules.d16 = rule;
      m.run(kFill + fmt::format("v_mov_b32 v4, 0x12345678\nv_mul_u32_u24 v3, 6, v0\n{} v4, v3 offset:9\n", f.name) +
            kWait + result(0, "v4"));
      for (u32 l = 0; l < 64; ++l) {
        u32 value = bytes_at(m, 6 * l + 9, f.bytes);
        if (f.sign && (value & 0x80)) value |= 0xff00;
        const u32 old = rule == SimD16::kClearsHalf ? 0 : 0x12345678;
        EXPECT_EQ(m.at(0, l), f.high ? (old & 0xffff) | (value << 16) : (old & 0xffff0000) | value) << f.name << l;
      }
    }
  }
}

TEST(LdsForms, UnalignedAddressesOfEveryWidth) {
  for (u32 bytes : {2u, 4u, 8u, 12u, 16u}) {
    MemoryMachine m = with_lds();
    const char* name = bytes == 2 ? "u16" : bytes == 4 ? "b32" : bytes == 8 ? "b64" : bytes == 12 ? "b96" : "b128";
    const char* tuple = bytes <= 4 ? "v4" : bytes == 8 ? "v[4:5]" : bytes == 12 ? "v[4:6]" : "v[4:7]";
    std::string code =
        kFill + fmt::format("v_mul_u32_u24 v3, 17, v0\nds_read_{} {}, v3 offset:3\n", name, tuple) + kWait;
    for (u32 d = 0; 4 * d < bytes; ++d) code += result(d, fmt::format("v{}", 4 + d).c_str());
    m.run(code);
    for (u32 l = 0; l < 64; ++l)
      for (u32 d = 0; 4 * d < bytes; ++d)
        EXPECT_EQ(m.at(d, l), bytes_at(m, 17 * l + 3 + 4 * d, std::min(bytes, 4u))) << name << " " << l;
  }
}

TEST(LdsForms, UnalignedWrites) {
  MemoryMachine m = with_lds();
  // Lane l writes 16 bytes at 20 l + 1 and one byte behind them.
  m.run(kFill +
        std::string("v_mul_u32_u24 v3, 20, v0\nv_mov_b32 v4, v0\nv_not_b32 v5, v0\nv_mov_b32 v6, v1\nv_not_b32 "
                    "v7, v1\nds_write_b128 v3, v[4:7] offset:1\nds_write_b8_d16_hi v3, v5 offset:17\n") +
        kWait + "v_lshlrev_b32 v3, 2, v0\nv_add_u32 v3, 0x100, v3\nds_read_b32 v8, v3\n" + kWait + result(0, "v8"));
  std::vector<std::uint8_t> want(4096);
  for (u32 i = 0; i < 4096; ++i) want[i] = static_cast<std::uint8_t>(bytes_at(m, i, 1));
  for (u32 l = 0; l < 64; ++l) {
    const u32 value[4] = {l, ~l, 4 * l, ~(4 * l)};
    std::memcpy(&want[20 * l + 1], value, 16);
    want[20 * l + 17] = 0xff;
  }
  for (u32 l = 0; l < 64; ++l) {
    u32 x;
    std::memcpy(&x, &want[0x100 + 4 * l], 4);
    EXPECT_EQ(m.at(0, l), x) << l;
  }
}

TEST(LdsForms, TwoAddressesScaleAndCollapse) {
  MemoryMachine m = with_lds(65536);
  m.run(kFill +
        std::string("v_lshlrev_b32 v3, 3, v0\nv_not_b32 v4, v0\n"
                    // 64 * 4 bytes a step; the last offset reaches 3 * 256 + 8 * 63.
                    "ds_read2st64_b32 v[6:7], v3 offset0:3 offset1:1\nds_read2_b64 v[8:11], v3 offset0:0 "
                    "offset1:255\nds_write2_b32 v3, v0, v4 offset0:2 offset1:2\n"
                    "ds_write2st64_b32 v3, v0, v4 offset0:16 offset1:17\n") +
        kWait + "ds_read_b32 v12, v3 offset:8\nds_read_b32 v13, v3 offset:4096\nds_read_b32 v14, v3 offset:4352\n" +
        kWait + result(0, "v6") + result(1, "v7") + result(2, "v10") + result(3, "v12") + result(4, "v13") +
        result(5, "v14"));
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), bytes_at(m, 8 * l + 768, 4));
    EXPECT_EQ(m.at(1, l), bytes_at(m, 8 * l + 256, 4));
    EXPECT_EQ(m.at(2, l), bytes_at(m, 8 * l + 2040, 4));
    EXPECT_EQ(m.at(3, l), l) << "one write, of the first data";
    // Lane l's second place is the first of lane l + 32, which writes later.
    EXPECT_EQ(m.at(4, l), l);
    EXPECT_EQ(m.at(5, l), l < 32 ? l + 32 : ~l);
  }
}

TEST(LdsForms, AddressesByLane) {
  MemoryMachine m = with_lds();
  m.run(kFill +
        std::string("s_mov_b32 m0, 0x70010\nds_read_addtid_b32 v4 offset:8\nds_write_addtid_b32 v0 offset:1024\n"
                    "v_mov_b32 v5, v1\nds_read_b32 v6, v5 offset:1040\n") +
        kWait + result(0, "v4") + result(1, "v6"));
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), m.in[(0x10 + 8) / 4 + l]) << "16 bits of M0";
    EXPECT_EQ(m.at(1, l), l);
  }
}

TEST(LdsForms, M0IsNoBound) {
  MemoryMachine m = with_lds();
  m.run(kFill + std::string("s_mov_b32 m0, 4\nds_read_b32 v4, v1 offset:2048\n") + kWait + result(0, "v4"));
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(0, l), m.in[512 + l]);
}

TEST(LdsForms, OutOfRangeByByteAndAddressWrap) {
  MemoryMachine m = with_lds(4096 + 2);
  m.run(kFill +
        std::string("v_mov_b32 v3, -1\nds_write_b16 v3, v3 offset:4097\n"  // 4096: 0xffffffff + 4097
                    "v_mov_b32 v3, 0x1000\nds_read_b32 v4, v3\nds_read_b64 v[6:7], v3\nv_mov_b32 v3, "
                    "0x7fffff00\nds_read_b128 v[8:11], v3\nds_write_b32 v3, v3\n") +
        kWait + result(0, "v4") + result(1, "v6") + result(2, "v7") + result(3, "v8"));
  EXPECT_EQ(m.at(0, 0), 0x0000ffffu) << "two bytes inside";
  EXPECT_EQ(m.at(1, 0), 0x0000ffffu);
  EXPECT_EQ(m.at(2, 0), 0u);
  EXPECT_EQ(m.at(3, 0), 0u);
}

TEST(LdsForms, AccumulationRegisters) {
  MemoryMachine m = with_lds();
  m.options.agprs = 32;
  m.run(kFill + std::string("ds_read_b128 a[4:7], v2\nds_read_b64_tr_b16 a[8:9], v2\n") + kWait +
        "v_mov_b32 v3, v2\nds_write_b128 v3, a[4:7] offset:2048\nds_add_rtn_u32 a0, v3, a4 offset:2048\n" + kWait +
        "ds_read_b32 v4, v3 offset:2048\nv_accvgpr_read_b32 v5, a0\nv_accvgpr_read_b32 v6, a8\n" + kWait +
        result(0, "v4") + result(1, "v5") + result(2, "v6"));
  for (u32 l = 0; l < 64; ++l) {
    const u32 x = m.in[4 * l];
    EXPECT_EQ(m.at(0, l), 2 * x);
    EXPECT_EQ(m.at(1, l), x);
    // Item n of lane l: lane (l & ~15) + 4 n + (l / 4) % 4, halfword l % 4 (gfx950-isa.md 3.4).
    u32 want = 0;
    for (u32 n = 0; n < 2; ++n)
      want |= bytes_at(m, 16 * ((l & ~15u) + 4 * n + ((l >> 2) & 3)) + 2 * (l & 3), 2) << (16 * n);
    EXPECT_EQ(m.at(2, l), want) << l;
  }
}

// Every pattern class against the guide's text (its pseudocode and printed examples), with a hole in EXEC.
u32 swizzle_source(u32 i, u32 offset) {
  u32 j = 0;
  if (offset >= 0xe000) {
    const u32 mask = offset & 31;
    for (u32 b = 0; b < 5; ++b)
      if (i & (1u << b)) j |= 16u >> b;
    j >>= std::popcount(mask);
    j |= i & mask;
  } else if (offset >= 0xc000) {
    const int n = static_cast<int>((offset >> 5) & 31), step = (offset >> 10) & 1 ? -n : n;
    const u32 mask = offset & 31, moved = static_cast<u32>(static_cast<int>(i & 31) + step + 32) % 32;
    j = (i & mask) | (moved & ~mask);
  } else if (offset & 0x8000) {
    return i / 4 * 4 + ((offset >> (2 * (i % 4))) & 3);
  } else {
    j = (((i & 31) & (offset & 31)) | ((offset >> 5) & 31)) ^ ((offset >> 10) & 31);
  }
  return (j & 31) | (i & 32);
}

TEST(LdsForms, SwizzleModes) {
  std::vector<u32> patterns{0x801b, 0x80ff, 0x8000, 0x9155, 0xc000, 0xc020, 0xc420, 0xc021, 0xc421, 0xc3e0, 0xc7ff,
                            0xe000, 0xe010, 0xe01f, 0xe005, 0xf003, 0x041f, 0x401f, 0x7c1f, 0x0000, 0x03e0, 0x2d5b};
  for (std::size_t first = 0; first < patterns.size(); first += 4) {
    std::string code = "s_mov_b32 exec_lo, 0x00fffffe\ns_mov_b32 exec_hi, 0xff7fffff\nv_add_u32 v3, 1, v0\n";
    const std::size_t n = std::min<std::size_t>(4, patterns.size() - first);
    for (std::size_t k = 0; k < n; ++k)
      code += fmt::format("v_mov_b32 v{0}, -1\nds_swizzle_b32 v{0}, v3 offset:0x{1:x}\n", 4 + k, patterns[first + k]);
    code += kWait + std::string("s_mov_b64 exec, -1\n");
    for (unsigned k = 0; k < n; ++k) code += result(k, fmt::format("v{}", 4 + k).c_str());
    MemoryMachine m;
    m.run(code);
    const std::uint64_t exec = 0xff7fffff00fffffeull;
    for (unsigned k = 0; k < n; ++k) {
      for (u32 l = 0; l < 64; ++l) {
        if (!((exec >> l) & 1)) continue;
        const u32 from = swizzle_source(l, patterns[first + k]);
        EXPECT_EQ(m.at(k, l), (exec >> from) & 1 ? from + 1 : 0)
            << fmt::format("0x{:x} lane {}", patterns[first + k], l);
      }
    }
  }
}

// The examples that the guide prints, 1-based.
TEST(LdsForms, SwizzleExamples) {
  const std::array<u32, 32> fft0{1, 0x11, 9,   0x19, 5, 0x15, 0xd, 0x1d, 3, 0x13, 0xb, 0x1b, 7, 0x17, 0xf,  0x1f,
                                 2, 0x12, 0xa, 0x1a, 6, 0x16, 0xe, 0x1e, 4, 0x14, 0xc, 0x1c, 8, 0x18, 0x10, 0x20};
  const std::array<u32, 32> fft16{1,    9,    5,    0xd,  3,    0xb,  7,    0xf,  2,    0xa,  6,
                                  0xe,  4,    0xc,  8,    0x10, 0x11, 0x19, 0x15, 0x1d, 0x13, 0x1b,
                                  0x17, 0x1f, 0x12, 0x1a, 0x16, 0x1e, 0x14, 0x1c, 0x18, 0x20};
  MemoryMachine m;
  m.run(
      "v_and_b32 v3, 31, v0\nv_add_u32 v3, 1, v3\nds_swizzle_b32 v4, v3 offset:0xe000\nds_swizzle_b32 v5, v3 "
      "offset:0xe010\nds_swizzle_b32 v6, v3 offset:swizzle(ROTATE,0,1)\nds_swizzle_b32 v7, v3 "
      "offset:swizzle(ROTATE,1,1)\nds_swizzle_b32 v8, v3 offset:0xc021\nds_swizzle_b32 v9, v3 offset:0xc421\n" +
      std::string(kWait) + result(0, "v4") + result(1, "v5") + result(2, "v6") + result(3, "v7") + result(4, "v8") +
      result(5, "v9"));
  for (u32 l = 0; l < 32; ++l) {
    EXPECT_EQ(m.at(0, l), fft0[l]);
    EXPECT_EQ(m.at(1, l), fft16[l]);
    EXPECT_EQ(m.at(2, l), l + 2 <= 32 ? l + 2 : 1);
    EXPECT_EQ(m.at(3, l), l == 0 ? 32 : l);
  }
  const std::array<u32, 8> left{1, 4, 3, 6, 5, 8, 7, 0xa}, right{0x1f, 2, 1, 4, 3, 6, 5, 8};
  for (u32 l = 0; l < 8; ++l) {
    EXPECT_EQ(m.at(4, l), left[l]);
    EXPECT_EQ(m.at(5, l), right[l]);
  }
}

TEST(LdsForms, PermutesWithHolesCollisionsAndHighBits) {
  MemoryMachine m;
  // Lanes 0-7 are off. bpermute of lane l: lane (l * 3 + 2) % 64 by an address with high bits; permute: all to l / 2.
  m.run(
      "v_mul_u32_u24 v3, 12, v0\nv_or_b32 v3, 0x7fff0000, v3\nv_lshlrev_b32 v4, 1, v0\nv_add_u32 v5, 100, v0\n"
      "v_mov_b32 v6, -1\nv_mov_b32 v7, -1\ns_mov_b32 exec_lo, 0xffffff00\nds_bpermute_b32 v6, v3, v5 "
      "offset:11\nds_permute_b32 v7, v4, v5\n" +
      std::string(kWait) + "s_mov_b64 exec, -1\n" + result(0, "v6") + result(1, "v7"));
  for (u32 l = 0; l < 64; ++l) {
    const u32 from = ((12 * l + 11) / 4) % 64;
    EXPECT_EQ(m.at(0, l), l < 8 ? ~0u : from < 8 ? 0 : 100 + from) << l;
    // Lane l receives from 2 l and 2 l + 1 (the address is 2 * lane: lane / 2); the highest wins.
    EXPECT_EQ(m.at(1, l), l < 8 ? ~0u : 2 * l + 1 < 64 ? 100 + 2 * l + 1 : 0) << l;
  }
}

}  // namespace
}  // namespace zyfa::sim_test
