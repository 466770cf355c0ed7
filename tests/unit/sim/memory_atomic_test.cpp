// Atomics on device memory, and FLAT instructions that reach LDS and private memory (CDNA4 guide 9.2, 10.3).
#include <bit>

#include "tests/unit/sim/memory_machine.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

TEST(MemoryAtomic, ReturningAndNotReturningFormsOfAllThree) {
  // The input holds 100 + lane; each form adds the lane number.
  for (const char* code :
       {"global_atomic_add v5, v1, v0, s[4:5] sc0\n", "buffer_atomic_add v5, v1, s[8:11], 0 offen sc0\n",
        "flat_atomic_add v5, v[6:7], v0 sc0\n", "global_atomic_add v1, v0, s[4:5]\n",
        "buffer_atomic_add v5, v1, s[8:11], 0 offen\n", "flat_atomic_add v[6:7], v0\n"}) {
    MemoryMachine m;
    for (u32 l = 0; l < 64; ++l) m.in[l] = 100 + l;
    m.run(resource({.records = 4096}) +
          "v_mov_b32 v5, v0\nv_mov_b32 v6, s4\nv_mov_b32 v7, s5\nv_add_co_u32 v6, vcc, v6, v1\nv_addc_co_u32 v7, vcc, "
          "0, v7, "
          "vcc\n" +
          code + kWait + result(0, "v5"));
    const bool returns = std::string_view(code).find("sc0") != std::string_view::npos;
    for (u32 l = 0; l < 64; ++l) {
      EXPECT_EQ(m.in[l], 100 + 2 * l) << code;
      EXPECT_EQ(m.at(0, l), returns ? 100 + l : l) << code;
    }
  }
}

TEST(MemoryAtomic, CompareAndSwapTakesTheNewValueFirst) {
  MemoryMachine m;
  for (u32 l = 0; l < 256; ++l) m.in[l] = l;
  m.run(resource({.records = 4096}) +
        // Even lanes match. v4 new value, v5 comparison.
        "v_mov_b32 v4, 7\nv_and_b32 v5, 62, v0\nglobal_atomic_cmpswap v6, v1, v[4:5], s[4:5] sc0\nv_lshlrev_b32 v3, 3, "
        "v0\nv_mov_b32 v8, 1\nv_mov_b32 v9, 2\nv_lshlrev_b32 v10, 1, v0\nv_add_u32 v10, 128, v10\nv_add_u32 v11, 1, "
        "v10\nbuffer_atomic_cmpswap_x2 v[8:11], v3, s[8:11], 0 offen offset:512 sc0\n" +
        std::string(kWait) + result(0, "v6") + result(1, "v8") + result(2, "v9") + result(3, "v10"));
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), l);
    EXPECT_EQ(m.in[l], l % 2 == 0 ? 7 : l);
    EXPECT_EQ(m.at(1, l), 128 + 2 * l);
    EXPECT_EQ(m.at(2, l), 129 + 2 * l);
    EXPECT_EQ(m.at(3, l), 128 + 2 * l) << "only the first half of the data is overwritten";
    EXPECT_EQ(m.in[128 + 2 * l], 1u);
    EXPECT_EQ(m.in[128 + 2 * l + 1], 2u);
  }
}

TEST(MemoryAtomic, FloatForms) {
  MemoryMachine m;
  m.in[0] = std::bit_cast<u32>(1.5f);
  m.in[1] = 0x00008001;  // f16: two denormals
  m.in[2] = 0x00010001;  // bf16 denormals
  const auto put = [&](u32 at, double x) {
    const auto raw = std::bit_cast<u64>(x);
    m.in[at] = static_cast<u32>(raw);
    m.in[at + 1] = static_cast<u32>(raw >> 32);
  };
  put(4, 1e-310);  // a denormal
  put(6, -0.0);
  put(8, 3.0);
  m.run(
      "v_mov_b32 v3, 0\nv_mov_b32 v4, 0x40100000\nv_mov_b32 v5, 0x00010001\nv_mov_b32 v6, 0\nv_mov_b32 v7, "
      "0\nv_mov_b32 v8, "
      "0\nv_mov_b32 v9, 0x40140000\ns_mov_b64 exec, 1\nglobal_atomic_add_f32 v3, v4, s[4:5]\nglobal_atomic_pk_add_f16 "
      "v3, "
      "v5, s[4:5] offset:4\nglobal_atomic_pk_add_bf16 v10, v3, v5, s[4:5] offset:8 sc0\nglobal_atomic_add_f64 v3, "
      "v[6:7], "
      "s[4:5] offset:16\nglobal_atomic_max_f64 v3, v[6:7], s[4:5] offset:24\nglobal_atomic_min_f64 v3, v[8:9], s[4:5] "
      "offset:32\n" +
      std::string(kWait) + result(0, "v10"));
  EXPECT_EQ(m.in[0], std::bit_cast<u32>(3.75f));
  EXPECT_EQ(m.in[1], 0x00010000u) << "-denormal + denormal, 0 + denormal: kept";
  EXPECT_EQ(m.in[2], 0x00020002u);
  EXPECT_EQ(m.at(0, 0), 0x00010001u);
  const auto get = [&](u32 at) { return std::bit_cast<double>(m.in[at] | (static_cast<u64>(m.in[at + 1]) << 32)); };
  EXPECT_EQ(get(4), 1e-310);
  EXPECT_EQ(m.in[7], 0u) << "+0 is the greater zero";
  EXPECT_EQ(get(8), 3.0);
}

TEST(MemoryAtomic, DenormalsOfF32AddByRule) {
  for (const SimAtomicDenormals rule : {SimAtomicDenormals::kFlushed, SimAtomicDenormals::kKept}) {
    MemoryMachine m;
    m.options.denorm32 = 3;  // MODE does not matter
    m.options.rules.atomic_denormals = rule;
    m.in[0] = 0x00000005;
    m.in[1] = 0x00800001;
    m.run(
        "v_mov_b32 v3, 0\nv_mov_b32 v4, 2\nv_mov_b32 v5, 0x80800000\ns_mov_b64 exec, 1\nglobal_atomic_add_f32 v3, v4, "
        "s[4:5]\nglobal_atomic_add_f32 v3, v5, s[4:5] offset:4\n");
    EXPECT_EQ(m.in[0], rule == SimAtomicDenormals::kKept ? 7u : 0u);
    EXPECT_EQ(m.in[1], rule == SimAtomicDenormals::kKept ? 1u : 0u);
  }
}

constexpr char kShared[] = "s_mov_b64 s[20:21], src_shared_base\nv_mov_b32 v7, s21\n";

TEST(FlatMemory, ReachesLds) {
  MemoryMachine m;
  m.options.lds = 4096;
  m.options.denorm32 = 3;
  m.run(
      "v_add_u32 v3, 0x100, v1\nds_write_b32 v3, v0\nv_mov_b32 v9, 3\nds_write_b32 v1, v9 offset:2048\ns_waitcnt "
      "lgkmcnt(0)\n" +
      std::string(kShared) +
      "v_mov_b32 v6, v1\nflat_load_dword v4, v[6:7] offset:256\nflat_store_dword v[6:7], v1 "
      "offset:1024\nflat_atomic_add v5, "
      "v[6:7], v0 offset:256 sc0\nv_mov_b32 v8, 4\nflat_atomic_add_f32 v[6:7], v8 offset:2048\n" +
      kWait + "ds_read_b32 v9, v1 offset:1024\nds_read_b32 v10, v3\nds_read_b32 v11, v1 offset:2048\n" + kWait +
      result(0, "v4") + result(1, "v5") + result(2, "v9") + result(3, "v10") + result(4, "v11"));
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), l);
    EXPECT_EQ(m.at(1, l), l);
    EXPECT_EQ(m.at(2, l), 4 * l);
    EXPECT_EQ(m.at(3, l), 2 * l);
    EXPECT_EQ(m.at(4, l), 7u) << "LDS goes by MODE: denormals are kept";
  }
}

TEST(FlatMemory, LanesMayGoDifferentWays) {
  MemoryMachine m;
  m.options.lds = 1024;
  m.run("ds_write_b32 v1, v1\ns_waitcnt lgkmcnt(0)\n" + std::string(kShared) +
        "v_cmp_gt_u32 vcc, 20, v0\nv_mov_b32 v6, s4\nv_mov_b32 v8, s5\nv_add_co_u32 v6, s[22:23], v6, "
        "v1\nv_addc_co_u32 v8, "
        "s[22:23], 0, v8, s[22:23]\nv_cndmask_b32 v7, v8, v7, vcc\nv_cndmask_b32 v6, v6, v1, vcc\nflat_load_dword v4, "
        "v[6:7]\n" +
        kWait + result(0, "v4"));
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(m.at(0, l), l < 20 ? 4 * l : m.in[l]);
}

TEST(FlatMemory, OutsideOfLdsIsAFault) {
  MemoryMachine m;
  m.options.lds = 256;
  m.run(std::string(kShared) + "v_mov_b32 v6, v1\nflat_load_dword v4, v[6:7] offset:4\n", true);
  EXPECT_NE(m.error.find("reads 4 bytes at 0x1000000000100"), std::string::npos) << m.error;
}

}  // namespace
}  // namespace zyfa::sim_test
