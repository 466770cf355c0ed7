#include "tests/correctness/timing/micro.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "jit/object/code_object.h"
#include "runtime/sim/timing/op_cost.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

struct Instruction {
  const char* name;
  const char* text;
  std::uint32_t work;
};

// Work: LDS phases without conflicts (lds_banks.h), bytes of a full wave.
constexpr Instruction kInstructions[] = {
    {"bf16_32", "v_mfma_f32_32x32x16_bf16 v[64:79], v[0:3], v[8:11], v[64:79]", 0},
    {"bf16_16", "v_mfma_f32_16x16x32_bf16 v[64:67], v[0:3], v[8:11], v[64:67]", 0},
    {"bf16_32_old", "v_mfma_f32_32x32x8_bf16 v[64:79], v[0:1], v[8:9], v[64:79]", 0},
    {"bf16_16_old", "v_mfma_f32_16x16x16_bf16 v[64:67], v[0:1], v[8:9], v[64:67]", 0},
    {"fp8_16_legacy", "v_mfma_f32_16x16x32_fp8_fp8 v[64:67], v[0:1], v[8:9], v[64:67]", 0},
    {"fp8_32_legacy", "v_mfma_f32_32x32x16_fp8_fp8 v[64:79], v[0:1], v[8:9], v[64:79]", 0},
    {"fp8_32", "v_mfma_f32_32x32x64_f8f6f4 v[64:79], v[0:7], v[8:15], v[64:79]", 0},
    {"fp8_16", "v_mfma_f32_16x16x128_f8f6f4 v[64:67], v[0:7], v[8:15], v[64:67]", 0},
    {"fp4_32", "v_mfma_f32_32x32x64_f8f6f4 v[64:79], v[0:3], v[8:11], v[64:79] cbsz:4 blgp:4", 0},
    {"fp4_16", "v_mfma_f32_16x16x128_f8f6f4 v[64:67], v[0:3], v[8:11], v[64:67] cbsz:4 blgp:4", 0},
    {"fp6_32", "v_mfma_f32_32x32x64_f8f6f4 v[64:79], v[0:5], v[8:13], v[64:79] cbsz:2 blgp:2", 0},
    {"fp8fp4_32", "v_mfma_f32_32x32x64_f8f6f4 v[64:79], v[0:7], v[8:11], v[64:79] blgp:4", 0},
    {"scale_fp8_32", "v_mfma_scale_f32_32x32x64_f8f6f4 v[64:79], v[0:7], v[8:15], v[64:79], v16, v17", 0},
    {"i8_16", "v_mfma_i32_16x16x64_i8 v[64:67], v[0:3], v[8:11], v[64:67]", 0},
    {"i8_32", "v_mfma_i32_32x32x32_i8 v[64:79], v[0:3], v[8:11], v[64:79]", 0},
    {"f64_16", "v_mfma_f64_16x16x4_f64 v[64:71], v[0:1], v[8:9], v[64:71]", 0},
    {"f32_16", "v_mfma_f32_16x16x4_f32 v[64:67], v0, v8, v[64:67]", 0},
    {"b4x4", "v_mfma_f32_4x4x4_16b_f16 v[64:67], v[0:1], v[8:9], v[64:67]", 0},
    {"smfmac_16", "v_smfmac_f32_16x16x128_fp8_fp8 v[64:67], v[0:3], v[8:15], v16", 0},
    {"smfmac_32", "v_smfmac_f32_32x32x64_fp8_fp8 v[64:79], v[0:3], v[8:15], v16", 0},
    {"add", "v_add_f32 v20, v21, v22", 0},
    {"add_e64", "v_add_f32_e64 v20, v21, v22", 0},
    {"fma", "v_fma_f32 v20, v21, v22, v23", 0},
    {"fmac", "v_fmac_f32 v20, v21, v22", 0},
    {"max3", "v_max3_f32 v20, v21, v22, v23", 0},
    {"cndmask", "v_cndmask_b32 v20, v21, v22, vcc", 0},
    {"add_u32", "v_add_u32 v20, v21, v22", 0},
    {"perm", "v_perm_b32 v20, v21, v22, v23", 0},
    {"cmp", "v_cmp_gt_f32 vcc, v21, v22", 0},
    {"exp", "v_exp_f32 v24, v25", 0},
    {"rcp", "v_rcp_f32 v24, v25", 0},
    {"pk_add", "v_pk_add_f32 v[26:27], v[28:29], v[30:31]", 0},
    {"pk_mul", "v_pk_mul_f32 v[26:27], v[28:29], v[30:31]", 0},
    {"pk_fma", "v_pk_fma_f32 v[26:27], v[28:29], v[30:31], v[32:33]", 0},
    {"pk_mov", "v_pk_mov_b32 v[26:27], v[28:29], v[30:31]", 0},
    {"pk_f16", "v_pk_add_f16 v26, v28, v30", 0},
    {"dot2", "v_dot2_f32_bf16 v26, v28, v30, v32", 0},
    {"cvt_fp8", "v_cvt_pk_fp8_f32 v34, v35, v36", 0},
    {"cvt_u8", "v_cvt_pk_u8_f32 v34, v35, v36, v37", 0},
    {"cvt_bf16", "v_cvt_pk_bf16_f32 v34, v35, v36", 0},
    {"mov", "v_mov_b32 v20, v21", 0},
    {"readfirstlane", "v_readfirstlane_b32 s6, v21", 0},
    {"lshl_add", "v_lshl_add_u64 v[26:27], v[28:29], 2, v[30:31]", 0},
    {"swap", "v_permlane32_swap_b32 v38, v39", 0},
    {"salu", "s_add_u32 s4, s4, 1", 0},
    {"cvt_u32", "v_cvt_u32_f32 v34, v35", 0},
    {"mul", "v_mul_f32 v20, v21, v22", 0},
    {"nop3", "s_nop 3", 0},
    {"nop5", "s_nop 5", 0},
    {"smem", "s_load_dword s8, s[0:1], 0x0", 4},
    {"nop0", "s_nop 0", 0},
    {"nop1", "s_nop 1", 0},
    {"nop7", "s_nop 7", 0},
    {"barrier", "s_barrier", 0},
    {"prio0", "s_setprio 0", 0},
    {"prio1", "s_setprio 1", 0},
    {"wait_lgkm", "s_waitcnt lgkmcnt(0)", 0},
    {"wait_vm", "s_waitcnt vmcnt(0)", 0},
    {"wait_vm4", "s_waitcnt vmcnt(4)", 0},
    {"wait_vm7", "s_waitcnt vmcnt(7)", 0},
    {"wait_vm8", "s_waitcnt vmcnt(8)", 0},
    {"read128", "ds_read_b128 v[40:43], v44", 4},
    {"read128_2way", "ds_read_b128 v[40:43], v44", 8},
    {"read128_4way", "ds_read_b128 v[40:43], v44", 16},
    {"read128_8way", "ds_read_b128 v[40:43], v44", 32},
    {"read128_odd", "ds_read_b128 v[40:43], v44", 64},
    {"read128_lane", "ds_read_b128 v[40:43], v44", 1},
    {"read32", "ds_read_b32 v40, v44", 1},
    {"read64", "ds_read_b64 v[40:41], v44", 2},
    {"read_tr16", "ds_read_b64_tr_b16 v[40:41], v44", 2},
    {"read_tr8", "ds_read_b64_tr_b8 v[40:41], v44", 2},
    {"read_own", "ds_read_b128 v[40:43], v20", 1},  // the address that "add" writes
    {"write64", "ds_write_b64 v44, v[40:41]", 4},
    {"write_lane", "ds_write_b32 v44, v40", 1},
    {"load4", "buffer_load_dwordx4 v[48:51], v44, s[12:15], 0 offen", 1024},
    {"load2", "buffer_load_dwordx2 v[48:49], v44, s[12:15], 0 offen", 512},
    {"load1", "buffer_load_dword v48, v44, s[12:15], 0 offen", 256},
    {"load_lds", "buffer_load_dwordx4 v44, s[12:15], 0 offen lds", 1024},
    {"load1_lds", "buffer_load_dword v44, s[12:15], 0 offen lds", 256},
    {"store4", "buffer_store_dwordx4 v[48:51], v44, s[12:15], 0 offen", 1024},
    {"branch", "s_cbranch_scc1 0", 0},
};

}  // namespace

// Each instruction starts 8-byte aligned: after one of 4 or 12 bytes comes an s_nop that nothing runs.
Micro::Micro() {
  std::string body;
  for (const Instruction& i : kInstructions) body += std::string(i.text) + "\n.p2align 3\n";
  const Bytes object = assemble_kernel(body, {.vgprs = 128, .lds = 1024});
  const auto code = jit::read_code_object(object);
  if (!code) {
    ADD_FAILURE() << to_string(code.error());
    return;
  }
  auto program = sim::decode_program(code->text, code->kernels.at(0).entry_offset, {.accum_offset = 128, .rows = 128});
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return;
  }
  program_ = std::move(*program);
  std::uint32_t at = program_.entry;
  for (const Instruction& i : kInstructions) {
    entries_[i.name] = {at, i.work};
    at += program_.ops.at(at).size % 8 == 0 ? 1 : 2;
  }
}

std::uint32_t Micro::op(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second.op;
  ADD_FAILURE() << "no instruction is called " << name;
  return 0;
}

Steps Micro::steps(std::string_view text) const {
  Steps all;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    unsigned count = 1;
    if (const std::size_t star = word.find('*'); star != word.npos) {
      count = static_cast<unsigned>(std::stoul(std::string(word.substr(star + 1))));
      word = word.substr(0, star);
    }
    const std::uint32_t index = op(word);
    const auto entry = entries_.find(word);
    all.insert(all.end(), count, {index, entry == entries_.end() ? 0 : entry->second.work});
  }
  return all;
}

const Micro& micro() {
  static const Micro kMicro;
  return kMicro;
}

Steps repeat(const Steps& body, unsigned times) {
  Steps all;
  all.reserve(body.size() * times);
  for (unsigned i = 0; i < times; ++i) all.insert(all.end(), body.begin(), body.end());
  return all;
}

Steps operator+(Steps a, const Steps& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

sim::timing::CuResult run_waves(const std::vector<Steps>& waves, const sim::timing::Parameters& parameters,
                                sim::timing::EventLog events) {
  sim::timing::GroupTrace group;
  for (const Steps& steps : waves) group.waves.push_back({.steps = steps, .addresses = {}});
  auto result = sim::timing::run_cu(
      {.program = &micro().program(), .groups = {&group}, .resident = 1, .events = events}, parameters);
  if (result) return std::move(*result);
  ADD_FAILURE() << to_string(result.error());
  return {};
}

double cycles_per(std::string_view body, const sim::timing::Parameters& parameters, unsigned times) {
  const Steps steps = micro().steps(body);
  const unsigned warm = times / 4;
  const auto result = run_waves({repeat(steps, times + 1)}, parameters);
  if (result.events.size() != steps.size() * (times + 1)) return -1;
  const auto at = [&](unsigned trip) { return static_cast<double>(result.events[trip * steps.size()].issue); };
  return (at(times) - at(warm)) / (times - warm);
}

Overlap overlap(const sim::timing::CuResult& result) {
  const auto costs = sim::timing::op_costs(micro().program(), {});
  std::vector<std::uint8_t> busy(result.cycles + 256, 0);
  const auto mark = [&](std::uint64_t from, std::uint64_t to, std::uint8_t bit) {
    for (std::uint64_t t = from; t < std::min<std::uint64_t>(to, busy.size()); ++t) busy[t] |= bit;
  };
  for (const auto& e : result.events) {
    if (result.waves[e.wave].simd != 0) continue;
    const auto kind = costs[e.op].kind;
    if (kind == sim::timing::Kind::kMatrix) mark(e.unit_start, e.end, 1);
    if (kind == sim::timing::Kind::kPlain || kind == sim::timing::Kind::kTrans) mark(e.issue, e.end, 2);
  }
  Overlap o;
  for (const std::uint8_t b : busy) {
    o.matrix += (b & 1) != 0;
    o.both += b == 3;
  }
  return o;
}

}  // namespace zyfa::sim_test
