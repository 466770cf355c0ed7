// Random and damaged machine code and code objects: the simulator answers with an error or a result, it never crashes
// and never hangs. Runs under the sanitizer presets too.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "jit/object/code_object.h"
#include "runtime/sim/exec/inst_text.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

// The device stops a launch by itself after this many instructions of a wave.
std::shared_ptr<SimDevice> limited(SimChecks checks) {
  return sim::make_sim_device({.checks = checks, .max_instructions = 2000}).value();
}

// Loads the object and, when that works, launches it with a buffer as first argument.
void try_object(const Bytes& object, SimChecks checks, int& ran) {
  const auto device = limited(checks);
  const auto kernel = device->load(object, "k");
  if (!kernel) {
    EXPECT_FALSE(kernel.error().message.empty());
    return;
  }
  const Buffer<std::uint32_t> buffer(*device, std::vector<std::uint32_t>(4096, 0x3f800000));
  const Status status =
      device->launch(**kernel, {.block = {128, 1, 1}}, Args().add(buffer).add(buffer).bytes(), nullptr);
  if (!status) {
    EXPECT_FALSE(status.error().message.empty());
  }
  ++ran;
}

Bytes object_with_room(unsigned dwords) {
  return assemble_kernel("s_load_dwordx4 s[4:7], s[0:1], 0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n.rept " +
                             std::to_string(dwords) + "\ns_nop 0\n.endr\n",
                         {.vgprs = 256, .agprs = 256, .lds = 65536, .workgroup = 128});
}

std::size_t text_start(const Bytes& object) {
  const auto read = jit::read_code_object(object).value();
  return static_cast<std::size_t>(read.text.data() - read.bytes.data()) + read.kernels.at(0).entry_offset;
}

TEST(FuzzSimulator, RandomWordsAsCode) {
  const Bytes base = object_with_room(64);
  const std::size_t start = text_start(base);
  std::mt19937 rng(1);
  int ran = 0;
  for (int i = 0; i < 400; ++i) {
    Bytes object = base;
    for (int w = 3; w < 3 + static_cast<int>(rng() % 4) + 1; ++w) {
      const auto word = static_cast<std::uint32_t>(rng());
      std::memcpy(object.data() + start + 16 + 4 * static_cast<std::size_t>(w), &word, 4);
    }
    try_object(object, i % 2 ? SimChecks::kStrict : SimChecks::kPlain, ran);
  }
}

// Words near valid instructions: an instruction of every encoding with bits flipped.
TEST(FuzzSimulator, MutatedInstructions) {
  const Bytes base = assemble_kernel(R"(
s_load_dwordx4 s[4:7], s[0:1], 0
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
v_add_f32 v2, v0, v1
v_fma_f32 v3, v1, v2, 1.0
v_pk_fma_f32 v[4:5], v[2:3], v[2:3], v[4:5]
v_cmp_gt_u32 vcc, 32, v0
v_cndmask_b32 v6, v0, v1, vcc
v_mov_b32_dpp v7, v6 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
v_add_u32_sdwa v8, v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:DWORD
v_mfma_f32_32x32x16_bf16 v[16:31], v[8:11], v[12:15], v[16:31]
v_mfma_scale_f32_32x32x64_f8f6f4 v[16:31], v[32:39], v[40:47], v[16:31], v48, v49
global_load_dwordx4 v[8:11], v1, s[4:5]
s_waitcnt vmcnt(0)
ds_write_b64 v1, v[8:9]
ds_read2_b32 v[10:11], v1 offset0:1 offset1:3
ds_read_b64_tr_b16 v[12:13], v1
s_mov_b32 m0, 0
global_load_lds_dwordx4 v1, s[4:5]
buffer_load_dword v9, v1, s[4:7], 0 offen
s_cmp_lg_u32 s4, 0
s_cbranch_scc1 1
s_barrier
s_and_saveexec_b64 s[20:21], vcc
s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 3
global_atomic_add v9, v1, v8, s[4:5] sc0
global_store_dwordx4 v1, v[8:11], s[4:5]
)",
                                     {.vgprs = 256, .agprs = 256, .lds = 65536, .workgroup = 128});
  const auto read = jit::read_code_object(base).value();
  const std::size_t start = text_start(base), size = read.kernels.at(0).code_bytes;
  std::mt19937 rng(2);
  int ran = 0;
  for (int i = 0; i < 1500; ++i) {
    Bytes object = base;
    const int flips = 1 + static_cast<int>(rng() % 3);
    for (int f = 0; f < flips; ++f)
      object[start + 16 + rng() % (size - 20)] ^= static_cast<std::byte>(1u << (rng() % 8));
    try_object(object, i % 2 ? SimChecks::kStrict : SimChecks::kPlain, ran);
  }
  EXPECT_GT(ran, 100) << "nearly everything was refused: the mutation no longer tests execution";
}

// Buffer instructions of every kind under random descriptors, and FLAT ones at random addresses: a result, or a fault
// that says where.
TEST(FuzzSimulator, RandomBufferDescriptors) {
  const Bytes object = assemble_kernel(R"(
s_load_dwordx4 s[8:11], s[0:1], 0
s_load_dwordx4 s[12:15], s[0:1], 16
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
v_mov_b32 v2, 0
v_mov_b32 v3, 0x3f800000
v_mov_b32 v4, v0
v_mov_b32 v5, v1
s_waitcnt lgkmcnt(0)
v_mov_b32 v6, s12
v_mov_b32 v7, s13
s_mov_b32 m0, s14
s_and_b32 s15, s15, 7
s_cmp_eq_u32 s15, 0
s_cbranch_scc1 typed
s_cmp_eq_u32 s15, 1
s_cbranch_scc1 stores
s_cmp_eq_u32 s15, 2
s_cbranch_scc1 flat
buffer_load_dwordx4 v[8:11], v1, s[8:11], 0 offen
buffer_load_dwordx3 v[12:14], v[0:1], s[8:11], s14 idxen offen offset:4
buffer_load_ubyte v15, v0, s[8:11], 0 idxen
buffer_load_dwordx4 v1, s[8:11], 0 offen lds
s_buffer_load_dwordx8 s[24:31], s[8:11], 0x20
buffer_load_short_d16_hi v16, off, s[8:11], m0
s_branch end
typed:
buffer_load_format_xyzw v[8:11], v[0:1], s[8:11], 0 idxen offen
buffer_load_format_d16_xyz v[12:13], v1, s[8:11], 0 offen
tbuffer_load_format_xy v[14:15], v0, s[8:11], 0 format:12 idxen
buffer_store_format_xyzw v[2:5], v0, s[8:11], 0 idxen
s_branch end
stores:
buffer_store_dwordx4 v[2:5], v1, s[8:11], 0 offen
buffer_atomic_add_f32 v3, v0, s[8:11], 0 idxen
buffer_atomic_cmpswap_x2 v[2:5], v0, s[8:11], 0 idxen sc0
s_branch end
flat:
flat_load_dwordx2 v[8:9], v[6:7]
flat_atomic_add v[6:7], v4
end:
s_waitcnt vmcnt(0) lgkmcnt(0)
)",
                                       {.lds = 4096});
  std::mt19937 rng(5);
  int finished = 0;
  for (int i = 0; i < 600; ++i) {
    const auto device = limited(i % 2 ? SimChecks::kStrict : SimChecks::kPlain);
    SimOptions options = device->options();
    options.rules.soffset = rng() % 2 ? SimSoffset::kChecked : SimSoffset::kUnchecked;
    options.rules.unaligned = rng() % 2 ? SimUnaligned::kTruncated : SimUnaligned::kDelivered;
    ASSERT_TRUE(device->set_options(options).has_value());
    const auto kernel = device->load(object, "k").value();
    const Buffer<std::uint32_t> buffer(*device, std::vector<std::uint32_t>(65536, 0x3f800000));
    const auto base = static_cast<std::uint64_t>(buffer.address());
    // Half of the fields random, half near what is valid.
    const auto any = [&](std::uint32_t likely) { return rng() % 2 ? likely : static_cast<std::uint32_t>(rng()); };
    const auto low = static_cast<std::uint32_t>(base), high = static_cast<std::uint32_t>(base >> 32);
    Args args;
    args.add(rng() % 4 ? low : any(low)).add((rng() % 4 ? high & 0xffff : any(high & 0xffff)) | any(0) << 16);
    args.add(any(4096)).add(any(0x27000 | 07654));
    constexpr std::array<std::uint32_t, 4> kHigh{0x10000, 0x20000, 0x2000, 0};
    args.add(any(low)).add(kHigh[rng() % 4]).add(any(64)).add(static_cast<std::uint32_t>(rng()));
    const Status status = device->launch(*kernel, {.block = {64, 1, 1}}, args.bytes(), nullptr);
    if (!status) {
      EXPECT_FALSE(status.error().message.empty());
    }
    finished += status.has_value();
  }
  EXPECT_GT(finished, 30) << "nearly everything faults: the descriptors no longer test execution";
}

TEST(FuzzSimulator, DamagedCodeObjects) {
  const Bytes base = object_with_room(8);
  std::mt19937 rng(3);
  int ran = 0;
  for (int i = 0; i < 600; ++i) {
    Bytes object = base;
    if (i % 3 == 0) {
      object.resize(rng() % object.size());
    } else {
      for (int f = 0; f < 4; ++f) object[rng() % object.size()] = static_cast<std::byte>(rng());
    }
    try_object(object, SimChecks::kPlain, ran);
  }
}

TEST(FuzzSimulator, InstructionTextReader) {
  const std::string base =
      "v_pk_fma_f32 v[0:1], -|v[2:3]|, s[4:5], 0x3f800000 op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[1,0,0] offset:16";
  std::mt19937 rng(4);
  for (int i = 0; i < 20000; ++i) {
    std::string text = base;
    for (int f = 0; f < 1 + i % 5; ++f) {
      const std::size_t at = rng() % text.size();
      switch (rng() % 3) {
        case 0:
          text[at] = static_cast<char>(32 + rng() % 95);
          break;
        case 1:
          text.erase(at, 1 + rng() % 6);
          break;
        default:
          text.insert(at, 1, "[]|,:()-"[rng() % 8]);
      }
      if (text.empty()) text = "s_nop";
    }
    const auto parsed = sim::parse_instruction(text);
    if (parsed) {
      EXPECT_LE(parsed->operands.size(), text.size());
    }
  }
}

}  // namespace
}  // namespace zyfa::sim_test
