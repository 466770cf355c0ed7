// Typed buffer loads and stores: data formats and number formats of the CDNA4 guide (13.5.1), with values worked out by
// hand or in fp64.
#include <bit>
#include <cmath>

#include "tests/unit/sim/memory_machine.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;

enum Data {
  k8 = 1,
  k16,
  k8_8,
  k32,
  k16_16,
  k10_11_11,
  k10_10_10_2 = 8,
  k2_10_10_10,
  k8_8_8_8,
  k32_32,
  k16_16_16_16,
  k32x3,
  k32x4
};
enum Number { kUnorm, kSnorm, kUscaled, kSscaled, kUint, kSint, kReserved, kFloat };
u32 bits(double x) { return std::bit_cast<u32>(static_cast<float>(x)); }

struct LoadCase {
  Data data;
  Number number;
  std::vector<u32> memory;
  std::vector<u32> want;  // x, y, z, w; missing channels are 0
};

// tbuffer and buffer loads of the same format, lane 0 of four components.
TEST(TypedBuffer, LoadConversions) {
  const std::vector<LoadCase> cases{
      {k8, kUnorm, {0xff}, {bits(1)}},
      {k8, kUnorm, {0x80}, {bits(128.0 / 255)}},
      {k8, kSnorm, {0x80}, {bits(-1)}},
      {k8, kSnorm, {0x81}, {bits(-1)}},
      {k8, kSnorm, {0x40}, {bits(64.0 / 127)}},
      {k8, kUscaled, {0xfe}, {bits(254)}},
      {k8, kSscaled, {0xfe}, {bits(-2)}},
      {k8, kUint, {0xfe}, {0xfe}},
      {k8, kSint, {0xfe}, {~1u}},
      {k16, kUnorm, {0x1234}, {bits(0x1234 / 65535.0)}},
      {k16, kFloat, {0xc500}, {bits(-5)}},
      {k16, kFloat, {0x0001}, {bits(std::ldexp(1, -24))}},
      {k16, kFloat, {0x7c00}, {0x7f800000}},
      {k8_8, kUint, {0xa1b2}, {0xb2, 0xa1}},
      {k32, kUint, {0x89abcdef}, {0x89abcdef}},
      {k32, kUnorm, {0x89abcdef}, {0x89abcdef}},  // 32-bit channels are not converted
      {k16_16, kSint, {0x7fff8000}, {0xffff8000, 0x7fff}},
      // x and y: 5 exponent bits (bias 15) and 6 of mantissa, z: 5 of mantissa, from the lowest bit. 1.5, 2.0, 0.75.
      {k10_11_11, kFloat, {0x3e0 | (0x400u << 11) | (0x1d0u << 22)}, {bits(1.5), bits(2), bits(0.75)}},
      {k10_11_11, kUint, {0x7ff | (0x123u << 11) | (0x3ffu << 22)}, {0x7ff, 0x123, 0x3ff}},
      {k10_10_10_2, kUint, {0x2 | (0x155u << 2) | (0x2aau << 12) | (0x3ffu << 22)}, {2, 0x155, 0x2aa, 0x3ff}},
      {k2_10_10_10,
       kUnorm,
       {0x3ff | (0u << 10) | (0x200u << 20) | (1u << 30)},
       {bits(1), 0, bits(512.0 / 1023), bits(1.0 / 3)}},
      {k2_10_10_10, kSint, {0x200 | (0x1ffu << 10) | (0x3ffu << 20) | (2u << 30)}, {~511u, 511, ~0u, ~1u}},
      {k8_8_8_8, kUnorm, {0xff00cc33}, {bits(51.0 / 255), bits(204.0 / 255), 0, bits(1)}},
      {k32_32, kFloat, {bits(1.25), bits(-7)}, {bits(1.25), bits(-7)}},
      {k16_16_16_16, kFloat, {0xbc003c00, 0x7bff0000}, {bits(1), bits(-1), 0, bits(65504)}},
      {k32x3, kFloat, {1, 2, 3}, {1, 2, 3}},
      {k32x4, kSint, {1, 2, 3, 4}, {1, 2, 3, 4}},
  };
  for (const LoadCase& c : cases) {
    MemoryMachine m;
    std::copy(c.memory.begin(), c.memory.end(), m.in.begin());
    std::string code =
        resource({.records = 4096, .word3 = typed_word3(c.data, c.number)}) + "v_mov_b32 v3, 0\n" +
        fmt::format("tbuffer_load_format_xyzw v[4:7], v3, s[8:11], 0 format:{} offen\n", c.data | (c.number << 4)) +
        "buffer_load_format_xyzw v[8:11], v3, s[8:11], 0 offen\n" + kWait;
    for (unsigned k = 0; k < 8; ++k) code += result(k, fmt::format("v{}", 4 + k).c_str());
    m.run(code);
    for (unsigned k = 0; k < 4; ++k) {
      const u32 want = k < c.want.size() ? c.want[k] : 0;
      EXPECT_EQ(m.at(k, 0), want) << fmt::format("tbuffer {} {} component {}", int{c.data}, int{c.number}, k);
      EXPECT_EQ(m.at(4 + k, 0), want) << fmt::format("buffer {} {} component {}", int{c.data}, int{c.number}, k);
    }
  }
}

struct StoreCase {
  Data data;
  Number number;
  std::array<u32, 4> value;
  std::vector<u32> want;  // whole dwords; bytes behind the element keep 0xdeadbeef
};

TEST(TypedBuffer, StoreConversions) {
  const u32 nan = 0x7fc00000;
  const std::vector<StoreCase> cases{
      {k8_8_8_8, kUnorm, {bits(1), bits(-3), bits(2), bits(0.5)}, {0x80ff00ff}},  // 127.5 to even
      {k8_8_8_8, kSnorm, {bits(-1), bits(-9), bits(1), nan}, {0x007f8181}},
      {k8_8_8_8, kUscaled, {bits(300), bits(-1), bits(2.5), bits(3.5)}, {0x040200ff}},
      {k8_8_8_8, kSscaled, {bits(-200), bits(200), bits(-2.5), 0}, {0x00fe7f80}},
      {k8_8_8_8, kUint, {0x1ff, 2, 3, 4}, {0x040302ff}},
      {k8, kUint, {0x77, 1, 2, 3}, {0xdeadbe77}},
      {k16_16, kFloat, {bits(-2), bits(65536), 0, 0}, {0x7c00c000}},
      {k16_16, kFloat, {bits(1 + std::ldexp(1, -11)), bits(1 + std::ldexp(3, -11)), 0, 0}, {0x3c023c00}},
      {k10_11_11, kFloat, {bits(1.5), bits(-2), bits(0.75), 0}, {0x3e0 | (0x1d0u << 22)}},
      {k2_10_10_10, kUnorm, {bits(1), 0, bits(0.25), bits(1)}, {0x3ff | (256u << 20) | (3u << 30)}},  // 255.75
      {k2_10_10_10, kSint, {~0u, 5, ~511u, ~0u}, {0x3ff | (5u << 10) | (0x200u << 20) | (3u << 30)}},
      {k32_32, kFloat, {7, 8, 9, 10}, {7, 8, 0xdeadbeef}},
      {k16_16_16_16, kSint, {~0u, 2, 3, 0x12345678}, {0x0002ffff, 0x56780003}},
      {k32x4, kUint, {1, 2, 3, 4}, {1, 2, 3, 4}},
  };
  for (const StoreCase& c : cases) {
    MemoryMachine m;
    std::copy(c.value.begin(), c.value.end(), m.in.begin());
    m.run(resource({.records = 4096, .word3 = typed_word3(c.data, c.number), .base = "s6"}) +
          "v_mov_b32 v3, 0\nglobal_load_dwordx4 v[4:7], v3, s[4:5]\ns_mov_b64 exec, 1\n" + kWait +
          fmt::format("tbuffer_store_format_xyzw v[4:7], v3, s[8:11], 0 format:{} offen\n", c.data | (c.number << 4)) +
          "buffer_store_format_xyzw v[4:7], v3, s[8:11], 0 offen offset:64\n");
    for (std::size_t i = 0; i < c.want.size(); ++i) {
      EXPECT_EQ(m.out[i], c.want[i]) << fmt::format("tbuffer {} {}", int{c.data}, int{c.number});
      EXPECT_EQ(m.out[16 + i], c.want[i]) << fmt::format("buffer {} {}", int{c.data}, int{c.number});
    }
  }
}

TEST(TypedBuffer, SixteenBitForms) {
  MemoryMachine m;
  m.in[0] = 0xff00cc33;                    // 8_8_8_8
  m.in[1] = bits(1 + std::ldexp(1, -11));  // 32: rounds to 1.0
  m.in[2] = 0x12345678;
  const auto format = [](Data d, Number n) { return d | (n << 4); };
  m.run(
      resource({.records = 4096, .word3 = typed_word3(k8_8_8_8, kUnorm), .base = "s4"}) +
      "v_mov_b32 v3, 0\nv_mov_b32 v4, 0x7777aaaa\nv_mov_b32 v5, 0x7777aaaa\nv_mov_b32 v6, 0x7777aaaa\nv_mov_b32 v7, "
      "0x7777aaaa\n" +
      fmt::format("tbuffer_load_format_d16_x v4, v3, s[8:11], 0 format:{} offen\n", format(k8_8_8_8, kUint)) +
      "buffer_load_format_d16_hi_x v5, v3, s[8:11], 0 offen\n" +
      fmt::format("tbuffer_load_format_d16_xyz v[6:7], v3, s[8:11], 0 format:{} offen\n", format(k8_8_8_8, kUint)) +
      fmt::format("tbuffer_load_format_d16_xy v8, v3, s[8:11], 0 format:{} offen offset:4\n", format(k32_32, kFloat)) +
      fmt::format("tbuffer_load_format_d16_x v9, v3, s[8:11], 0 format:{} offen offset:8\n", format(k32, kUint)) +
      kWait + result(0, "v4") + result(1, "v5") + result(2, "v6") + result(3, "v7") + result(4, "v8") +
      result(5, "v9") +
      // 1.0 and -2.0 in f16, stored as 8-bit unorm and 32-bit float.
      "v_mov_b32 v10, 0xc0003c00\ns_mov_b64 exec, 1\n" +
      fmt::format(
          "s_mov_b32 s8, s6\ns_and_b32 s9, s7, 0xffff\ntbuffer_store_format_d16_xy v10, v3, s[8:11], 0 format:{} offen "
          "offset:2048\n",
          format(k32_32, kFloat)) +
      "buffer_store_format_d16_hi_x v10, v3, s[8:11], 0 offen offset:2056\n");
  EXPECT_EQ(m.at(0, 0), 0x77770033u);
  EXPECT_EQ(m.at(1, 0), 0x3266aaaau) << "51 / 255 = 0.2";
  EXPECT_EQ(m.at(2, 0), 0x00cc0033u);
  EXPECT_EQ(m.at(3, 0), 0x77770000u);
  EXPECT_EQ(m.at(4, 0) & 0xffff, 0x3c00u);
  EXPECT_EQ(m.at(5, 0) & 0xffff, 0x5678u);
  EXPECT_EQ(m.out[512], bits(1));
  EXPECT_EQ(m.out[513], bits(-2));
  EXPECT_EQ(m.out[514], 0xdeadbe00u) << "-2.0 clamps to 0 in one byte";
}

TEST(TypedBuffer, SelectsOfTheResource) {
  // x = A, y = 1, z = 0, w = R; out of range the constant 1 stays.
  MemoryMachine m;
  m.in[0] = 0x44332211;
  m.run(resource({.records = 128, .word3 = typed_word3(k8_8_8_8, kUint, 7 | (1 << 3) | (0 << 6) | (4 << 9))}) +
        "v_lshlrev_b32 v3, 2, v0\nbuffer_load_format_xyzw v[4:7], v3, s[8:11], 0 offen\n" + std::string(kWait) +
        result(0, "v4") + result(1, "v5") + result(2, "v6") + result(3, "v7"));
  EXPECT_EQ(m.at(0, 0), 0x44u);
  EXPECT_EQ(m.at(1, 0), 1u);
  EXPECT_EQ(m.at(2, 0), 0u);
  EXPECT_EQ(m.at(3, 0), 0x11u);
  EXPECT_EQ(m.at(0, 40), 0u);
  EXPECT_EQ(m.at(1, 40), 1u);
  EXPECT_EQ(m.at(3, 40), 0u);
}

TEST(TypedBuffer, ElementsAreInOrOutAsAWhole) {
  MemoryMachine m;
  m.run(resource({.records = 16 * 8 + 8, .word3 = typed_word3(k32x4, kUint)}) +
        "buffer_load_format_xyzw v[4:7], v2, s[8:11], 0 offen\n" + std::string(kWait) + result(0, "v4"));
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(0, l), l < 8 ? m.in[4 * l] : 0) << l;
}

TEST(TypedBuffer, StructuredAndSwizzled) {
  // Records of 8 bytes in groups of 8 indices, elements of 4 bytes.
  MemoryMachine m;
  m.run(resource({.stride = 8, .records = 64, .word3 = typed_word3(k32_32, kUint), .swizzle = true}) +
        "buffer_load_format_xy v[4:5], v0, s[8:11], 0 idxen\n" + std::string(kWait) + result(0, "v4") +
        result(1, "v5"));
  for (u32 i = 0; i < 64; ++i) {
    EXPECT_EQ(m.at(0, i), m.in[i / 8 * 16 + i % 8]);
    EXPECT_EQ(m.at(1, i), m.in[i / 8 * 16 + 8 + i % 8]);
  }
}

TEST(TypedBuffer, ToLds) {
  MemoryMachine m;
  m.in[0] = 0x44332211;
  m.options.lds = 1024;
  m.run(resource({.records = 4096, .word3 = typed_word3(k8, kUscaled)}) +
        "s_movk_i32 s20, 0x100\ns_mov_b32 m0, s20\ns_nop 0\nbuffer_load_format_x v0, s[8:11], 0 offen lds\n" +
        std::string(kWait) + "ds_read_b32 v4, v1 offset:256\n" + kWait + result(0, "v4"));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(m.in.data());
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(0, l), bits(bytes[l]));
}

TEST(TypedBuffer, PartOfAnElementIsStoredWhereChannelsAreBytes) {
  MemoryMachine m;
  m.run(
      resource({.records = 4096, .word3 = typed_word3(k8_8_8_8, kUint), .base = "s6"}) +
      "v_mov_b32 v4, 0x11\nv_mov_b32 v5, 0x22\nv_mov_b32 v3, 0\nbuffer_store_format_xy v[4:5], v3, s[8:11], 0 offen\n");
  EXPECT_EQ(m.out[0], 0xdead2211u);
}

TEST(TypedBuffer, UnknownFormatsAreNamed) {
  const auto error_of = [](const std::string& code, u32 word3) {
    MemoryMachine m;
    m.run(resource({.records = 4096, .word3 = word3}) + "v_mov_b32 v3, 0\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\n" + code,
          true);
    return m.error;
  };
  const u32 good = typed_word3(k32, kFloat);
  EXPECT_NE(error_of("tbuffer_load_format_x v4, v3, s[8:11], 0 format:7 offen\n", good).find("data format 7"),
            std::string::npos);
  EXPECT_NE(error_of("buffer_load_format_x v4, v3, s[8:11], 0 offen\n", typed_word3(15, kUint)).find("data format 15"),
            std::string::npos);
  EXPECT_NE(error_of("tbuffer_load_format_x v4, v3, s[8:11], 0 format:97 offen\n", good).find("number format 6"),
            std::string::npos);
  EXPECT_NE(error_of("tbuffer_load_format_x v4, v3, s[8:11], 0 format:113 offen\n", good).find("no float format"),
            std::string::npos);
  EXPECT_NE(error_of("buffer_load_format_x v4, v3, s[8:11], 0 offen\n", typed_word3(k32, kFloat, 2)).find("selects 2"),
            std::string::npos);
  EXPECT_NE(error_of("tbuffer_store_format_xy v[4:5], v3, s[8:11], 0 format:9 offen\n", good).find("share a dword"),
            std::string::npos);
  // An unbound buffer is no error, whatever the instruction's format.
  EXPECT_EQ(error_of("tbuffer_load_format_x v4, v3, s[8:11], 0 format:4 offen\n", 0), "");
}

}  // namespace
}  // namespace zyfa::sim_test
