// Bytes and bank conflicts of decoded instructions, before they execute.
#include "runtime/sim/exec/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "jit/object/code_object.h"
#include "runtime/sim/exec/program.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using sim::MemoryTraffic;

// A wave with 20 active lanes, lane l's registers all at 16 * l, and its code.
struct Decoded {
  sim::Program program;
  std::vector<sim::VectorReg> registers = std::vector<sim::VectorReg>(128);
  sim::Wave wave;

  explicit Decoded(const std::string& code) {
    const Bytes object = assemble_kernel(code);
    const auto read = jit::read_code_object(object).value();
    program =
        sim::decode_program(read.text, read.kernels.at(0).entry_offset, {.accum_offset = 128, .rows = 128}).value();
    for (auto& r : registers)
      for (unsigned l = 0; l < 64; ++l) r.lane[l] = 16 * l;
    wave.v = registers.data();
    wave.set_scalar64(sim::kExecLo, 0xfffff);
    wave.s[11] = (14u << 15) | (4u << 12);  // s[8:11]: format 32_32_32_32 uint
    wave.s[10] = 4096;
  }
  const sim::MicroOp& op(std::size_t i) const { return program.ops[program.entry + i]; }
};

TEST(Traffic, BytesByInstruction) {
  struct Case {
    const char* code;
    MemoryTraffic want;
  };
  const std::vector<Case> cases{
      {"ds_read_b128 v[4:7], v0", {.lds_read = 320}},
      {"ds_read_u16_d16 v4, v0", {.lds_read = 40}},
      {"ds_read2_b32 v[4:5], v0 offset1:1", {.lds_read = 160}},
      {"ds_read2_b32 v[4:5], v0 offset0:1 offset1:1", {.lds_read = 80}},
      {"ds_read2st64_b64 v[4:7], v0 offset1:1", {.lds_read = 320}},
      {"ds_read_b64_tr_b8 v[4:5], v0", {.lds_read = 160}},
      {"ds_read_b96_tr_b6 v[4:6], v0", {.lds_read = 240}},
      {"ds_write_b96 v0, v[4:6]", {.lds_written = 240}},
      {"ds_write_b8_d16_hi v0, v4", {.lds_written = 20}},
      {"ds_write2_b64 v0, v[4:5], v[6:7] offset1:3", {.lds_written = 320}},
      {"ds_write_addtid_b32 v4", {.lds_written = 80}},
      {"ds_add_rtn_u64 v[4:5], v0, v[6:7]", {.atomics = 20}},
      {"ds_wrxchg2_rtn_b32 v[4:5], v0, v6, v7 offset1:1", {.atomics = 40}},
      {"ds_append v4", {.atomics = 1}},
      {"ds_bpermute_b32 v4, v0, v1", {}},
      {"ds_swizzle_b32 v4, v0 offset:swizzle(SWAP,1)", {}},
      {"global_load_dwordx3 v[4:6], v0, s[4:5]", {.global_read = 240}},
      {"buffer_load_ubyte v4, v0, s[8:11], 0 offen", {.global_read = 20}},
      {"buffer_store_dwordx4 v[4:7], v0, s[8:11], 0 offen", {.global_written = 320}},
      {"buffer_load_format_xy v[4:5], v0, s[8:11], 0 offen", {.global_read = 320}},
      {"tbuffer_store_format_x v4, v0, s[8:11], 0 format:3 offen", {.global_written = 40}},
      {"buffer_load_dwordx4 v0, s[8:11], 0 offen lds", {.global_read = 320, .lds_dma = 320}},
      {"global_load_lds_ubyte v0, s[4:5]", {.global_read = 20, .lds_dma = 80}},
      {"scratch_load_lds_dword v0, off", {.lds_dma = 80, .scratch_read = 80}},
      {"scratch_store_dwordx2 v0, v[4:5], off", {.scratch_written = 160}},
      {"global_atomic_add_x2 v[4:5], v0, v[6:7], s[4:5] sc0", {.atomics = 20}},
      {"buffer_inv sc1", {}},
      {"s_load_dwordx8 s[16:23], s[4:5], 0", {.scalar_read = 32}},
      {"s_store_dwordx2 s[16:17], s[4:5], 0", {.global_written = 8}},
      {"s_memtime s[16:17]", {}},
      {"s_atomic_add s16, s[4:5], 0", {.atomics = 1}},
      {"v_add_u32 v4, v0, v1", {}},
  };
  for (const Case& c : cases) {
    const Decoded d(c.code);
    EXPECT_TRUE(sim::traffic_of(d.wave, d.op(0)) == c.want) << c.code;
  }
}

TEST(Traffic, FlatByAperture) {
  Decoded d("flat_load_dwordx2 v[4:5], v[0:1]\nflat_store_dword v[0:1], v4\n");
  // Lanes 0-4 in LDS, 5-6 in private memory.
  for (unsigned l = 0; l < 64; ++l) d.registers[1].lane[l] = l < 5 ? 0x10000 : l < 7 ? 0x20000 : 0x2000;
  EXPECT_TRUE(sim::traffic_of(d.wave, d.op(0)) ==
              (MemoryTraffic{.lds_read = 40, .global_read = 104, .scratch_read = 16}));
  EXPECT_TRUE(sim::traffic_of(d.wave, d.op(1)) ==
              (MemoryTraffic{.lds_written = 20, .global_written = 52, .scratch_written = 8}));
}

TEST(Traffic, SumsUp) {
  MemoryTraffic sum{.lds_read = 1, .atomics = 2};
  sum += {.lds_read = 3,
          .lds_written = 4,
          .global_read = 5,
          .global_written = 6,
          .lds_dma = 7,
          .scalar_read = 8,
          .scratch_read = 9,
          .scratch_written = 10,
          .atomics = 11};
  EXPECT_TRUE(sum == (MemoryTraffic{4, 4, 5, 6, 7, 8, 9, 10, 13}));
}

TEST(Traffic, BankConflictsOfInstructions) {
  Decoded d(
      "ds_read_b128 v[4:7], v0\nds_read_b64 v[4:5], v0 offset:8\nds_read2_b32 v[4:5], v0 offset1:1\n"
      "ds_write_b8 v0, v4\nds_append v4\nds_swizzle_b32 v4, v0 offset:swizzle(SWAP,1)\n");
  d.wave.set_scalar64(sim::kExecLo, ~0ull);
  const auto cost = [&](std::size_t i) { return sim::lds_cost_of(d.wave, d.op(i)); };
  EXPECT_EQ(cost(0).phases, 4u);
  EXPECT_EQ(cost(0).extra_cycles, 0u);
  EXPECT_EQ(cost(1).cycles(), 4u) << "16 bytes apart: 2 phases, 2-way";
  EXPECT_EQ(cost(2).cycles(), 8u) << "twice one phase, 4-way";
  EXPECT_EQ(cost(3).cycles(), 8u) << "2 phases over 32 banks, 4-way";
  EXPECT_EQ(cost(4).cycles(), 1u);
  EXPECT_EQ(cost(5).cycles(), 0u);
}

}  // namespace
}  // namespace zyfa::sim_test
