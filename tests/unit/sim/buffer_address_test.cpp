// Buffer addressing and range checks (CDNA4 guide 9.1.5; gfx950-isa.md 3.2), the rules on which sources disagree, and
// what direct-to-LDS loads make of them.
#include "tests/unit/sim/memory_machine.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;

constexpr u32 kAddTid = 1u << 23;

TEST(BufferAddress, IndexAndOffset) {
  // Stride 12, 40 records; the index is 63 - lane, the offset 4 * (lane % 3).
  MemoryMachine m;
  m.run(
      resource({.stride = 12, .records = 40}) +
      "v_sub_u32 v4, 63, v0\nv_mov_b32 v6, 3\nv_mov_b32 v5, 0\nv_cmp_gt_u32 vcc, 32, v0\nv_cndmask_b32 v5, 8, v5, vcc\n"
      "buffer_load_dword v8, v[4:5], s[8:11], 0 idxen offen offset:4\n" +
      std::string(kWait) + result(0, "v8"));
  for (u32 l = 0; l < 64; ++l) {
    const u32 index = 63 - l, offset = (l < 32 ? 0 : 8) + 4;
    // Only the index is checked: an offset beyond the record reads on.
    EXPECT_EQ(m.at(0, l), index < 40 ? m.in[(12 * index + offset) / 4] : 0) << l;
  }
}

TEST(BufferAddress, IndexWithoutStrideIsChecksByOffset) {
  MemoryMachine m;
  m.run(resource({.stride = 0, .records = 64}) + "buffer_load_dword v8, v[0:1], s[8:11], 0 idxen offen\n" +
        std::string(kWait) + result(0, "v8"));
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(0, l), 4 * l < 64 ? m.in[l] : 0) << l;
}

TEST(BufferAddress, LaneNumberAsIndexIsNotChecked) {
  // Private buffer: stride 8, no records at all.
  MemoryMachine m;
  m.run(resource({.stride = 8, .records = 0, .word3 = kAddTid}) + "buffer_load_dword v8, off, s[8:11], 0 offset:4\n" +
        std::string(kWait) + result(0, "v8"));
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(0, l), m.in[2 * l + 1]) << l;
}

TEST(BufferAddress, LongStrideOfPrivateBuffers) {
  // The data format holds stride bits 17:14: 16384 + 16 bytes a lane.
  MemoryMachine m;
  m.in.resize(64 * (16384 + 16) / 4);
  for (u32 i = 0; i < m.in.size(); ++i) m.in[i] = i;
  m.run(resource({.stride = 16, .records = 0, .word3 = kAddTid | (1u << 15)}) +
        "buffer_load_dword v8, off, s[8:11], 0\n" + std::string(kWait) + result(0, "v8"));
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(0, l), l * (16384 + 16) / 4);
}

TEST(BufferAddress, Swizzle) {
  // Index stride 16 (field 1), elements of 4 bytes, records of 12 bytes: dword e of record i lies at
  // (i / 16) * 12 * 16 + 16 * 4 * e + 4 * (i % 16).
  MemoryMachine m;
  m.run(resource({.stride = 12, .records = 60, .word3 = 0x20000 | (1u << 21), .swizzle = true}) +
        "buffer_load_dwordx3 v[4:6], v0, s[8:11], 0 idxen\nbuffer_load_ubyte v7, v0, s[8:11], 0 idxen offset:6\n" +
        std::string(kWait) + result(0, "v4") + result(1, "v5") + result(2, "v6") + result(3, "v7"));
  for (u32 i = 0; i < 64; ++i) {
    const u32 first = i / 16 * 48 + i % 16;
    for (u32 e = 0; e < 3; ++e) EXPECT_EQ(m.at(e, i), i < 60 ? m.in[first + 16 * e] : 0) << i;
    EXPECT_EQ(m.at(3, i), i < 60 ? (m.in[first + 16] >> 16) & 0xff : 0) << i;
  }
}

TEST(BufferAddress, SwizzledPrivateStores) {
  // Index stride 64 and the lane as index: consecutive lanes side by side, whatever num_records says.
  MemoryMachine m;
  m.run(
      resource({.stride = 16, .records = 0, .word3 = kAddTid | (3u << 21), .swizzle = true, .base = "s6"}) +
      "v_not_b32 v3, v0\nv_mov_b32 v4, v3\nv_mov_b32 v5, v0\nbuffer_store_dwordx2 v[4:5], off, s[8:11], 0 offset:4\n");
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), 0xdeadbeefu);
    EXPECT_EQ(m.at(1, l), ~l);
    EXPECT_EQ(m.at(2, l), l);
  }
}

TEST(BufferAddress, SoffsetRule) {
  for (const SimSoffset rule : {SimSoffset::kUnchecked, SimSoffset::kChecked}) {
    MemoryMachine m;
    m.options.rules.soffset = rule;
    m.options.lds = 1024;
    m.run(resource({.records = 384}) +
          "s_movk_i32 s12, 0x100\nv_mov_b32 v8, 1\nbuffer_load_dword v8, v1, s[8:11], s12 offen\nbuffer_load_dwordx2 "
          "v[4:5], v1, s[8:11], s12 offen\ns_mov_b32 m0, 0\ns_nop 0\nbuffer_load_dword v1, s[8:11], s12 offen lds\n" +
          std::string(kWait) + "ds_read_b32 v9, v1\n" + kWait + result(0, "v8") + result(1, "v5") + result(2, "v9"));
    for (u32 l = 0; l < 64; ++l) {
      const u32 limit = rule == SimSoffset::kChecked ? 128 : 384;
      EXPECT_EQ(m.at(0, l), 4 * l < limit ? m.in[64 + l] : 0) << l;
      EXPECT_EQ(m.at(1, l), 4 * l + 4 < limit ? m.in[65 + l] : 0) << l;
      EXPECT_EQ(m.at(2, l), 4 * l < limit ? m.in[64 + l] : 0) << l;
    }
  }
}

TEST(BufferAddress, UnalignedRule) {
  for (const SimUnaligned rule : {SimUnaligned::kDelivered, SimUnaligned::kTruncated}) {
    MemoryMachine m;
    m.options.rules.unaligned = rule;
    m.run(
        resource({.records = 4096}) +
        "v_mul_u32_u24 v3, 9, v0\nbuffer_load_dword v4, v3, s[8:11], 0 offen offset:1\nglobal_load_dwordx2 v[6:7], v3, "
        "s[4:5] offset:2\nbuffer_load_ushort v8, v3, s[8:11], 0 offen offset:1\nv_mov_b32 v10, s4\nv_mov_b32 v11, "
        "s5\nv_add_co_u32 v10, vcc, v10, v3\nv_addc_co_u32 v11, vcc, 0, v11, vcc\nflat_load_dword v9, v[10:11]\n" +
        std::string(kWait) + result(0, "v4") + result(1, "v7") + result(2, "v8") + result(3, "v9"));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(m.in.data());
    const auto dword = [&](u32 at) {
      if (rule == SimUnaligned::kTruncated) at &= ~3u;
      u32 x;
      std::memcpy(&x, bytes + at, 4);
      return x;
    };
    for (u32 l = 0; l < 64; ++l) {
      EXPECT_EQ(m.at(0, l), dword(9 * l + 1));
      EXPECT_EQ(m.at(1, l), rule == SimUnaligned::kTruncated ? dword((9 * l + 2) / 4 * 4 + 4) : dword(9 * l + 6));
      EXPECT_EQ(m.at(2, l), bytes[9 * l + 1] | (bytes[9 * l + 2] << 8)) << "16 bits at any address";
      EXPECT_EQ(m.at(3, l), dword(9 * l));
    }
  }
}

TEST(BufferAddress, AtomicsAreInOrOutAsAWhole) {
  MemoryMachine m;
  m.run(resource({.records = 66, .base = "s6"}) +
        "v_lshlrev_b32 v3, 3, v0\nv_mov_b32 v4, 0\nv_mov_b32 v5, 1\nbuffer_atomic_add_x2 v[4:5], v3, s[8:11], 0 offen "
        "sc0\n" +
        std::string(kWait) + "v_mov_b32 v6, v5\nglobal_store_dword v1, v6, s[6:7] offset:1024\n");
  // Lane 8 starts inside, at 64, but its second dword does not.
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(m.out[i], i < 16 && i % 2 ? 0xdeadbef0u : 0xdeadbeefu) << i;
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(4, l), l < 8 ? 0xdeadbeefu : 0u) << l;
}

TEST(BufferAddress, NoRecordsAndNoFormat) {
  MemoryMachine m;
  m.run(resource({.records = 0}) +
        "v_mov_b32 v4, 7\nbuffer_load_dword v4, v1, s[8:11], 0 offen\ns_mov_b32 s10, "
        "0x1000\ns_mov_b32 s11, 0\nv_mov_b32 v5, 7\nbuffer_load_dword v5, v1, s[8:11], 0 "
        "offen\nbuffer_store_dword v0, v1, s[8:11], 0 offen\n" +
        std::string(kWait) + result(0, "v4") + result(1, "v5"));
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), 0u);
    EXPECT_EQ(m.at(1, l), 0u);
    EXPECT_EQ(m.in[l], 0x01000000 + l);
  }
}

TEST(DirectToLdsForms, WidthsAndSlots) {
  // dwordx3 steps by 16 and leaves the fourth dword; bytes and words fill a dword each, extended.
  MemoryMachine m;
  m.in[0] = 0x8081f0ff;
  m.options.lds = 4096;
  m.run(
      "v_mov_b32 v4, 0x55\nds_write_b32 "
      "v2, v4 offset:12\ns_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dwordx3 v2, s[4:5] offset:0\ns_movk_i32 s20, "
      "0x400\ns_mov_b32 m0, s20\ns_nop 0\nglobal_load_lds_sbyte v0, s[4:5]\ns_movk_i32 s20, 0x500\ns_mov_b32 m0, s20\n"
      "s_nop 0\nv_lshlrev_b32 v7, 1, v0\nglobal_load_lds_ushort v7, s[4:5]\n" +
      std::string(kWait) +
      "ds_read_b128 v[8:11], v2\nds_read_b32 v12, v1 offset:1024\nds_read_b32 v13, v1 offset:1280\n" + kWait +
      result(0, "v8") + result(1, "v10") + result(2, "v11") + result(3, "v12") + result(4, "v13"));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(m.in.data());
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), m.in[4 * l]);
    EXPECT_EQ(m.at(1, l), m.in[4 * l + 2]);
    EXPECT_EQ(m.at(2, l), 0x55u);
    EXPECT_EQ(m.at(3, l), static_cast<u32>(static_cast<std::int8_t>(bytes[l])));
    EXPECT_EQ(m.at(4, l), bytes[2 * l] | (bytes[2 * l + 1] << 8));
  }
}

TEST(DirectToLdsForms, M0AlignmentByEncoding) {
  // The flat encodings count M0 in dwords, buffer loads take it as bytes.
  MemoryMachine m;
  m.options.lds = 4096;
  m.run(resource({.records = 4096}) +
        "s_mov_b32 m0, 0x102\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]\nbuffer_load_dword v1, s[8:11], 0 offen "
        "offset:1024 lds\n" +
        std::string(kWait) + "ds_read_b32 v4, v1 offset:256\nds_read_b32 v5, v1 offset:1282\n" + kWait +
        result(0, "v4") + result(1, "v5"));
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), m.in[l]);
    EXPECT_EQ(m.at(1, l), m.in[256 + l]);
  }
}

TEST(DirectToLdsForms, LanesOutsideOfTheAllocationDoNotRead) {
  // 32 lanes fit; the others' memory addresses lie outside of every buffer.
  MemoryMachine m;
  m.options.lds = 128;
  m.run(
      "v_lshlrev_b32 v3, 24, v0\nv_cmp_gt_u32 vcc, 32, v0\nv_cndmask_b32 v3, v3, v1, vcc\ns_mov_b32 m0, 0\ns_nop "
      "0\nglobal_load_lds_dword v3, s[4:5]\n" +
      std::string(kWait) + "ds_read_b32 v4, v1\n" + kWait + result(0, "v4"));
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(0, l), l < 32 ? m.in[l] : 0);
}

}  // namespace
}  // namespace zyfa::sim_test
