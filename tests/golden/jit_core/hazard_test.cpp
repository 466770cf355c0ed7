// The hazard table and insert_wait_states() against LLVM's hazard recogniser (llc -run-pass post-RA-hazard-rec): every
// pair of a producer and a consumer, with each operand of the consumer in turn made to meet each register of the
// producer that a hazard could be about. Documented differences (gfx950-isa.md 4.3) are listed in
// `expected_difference`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "jit/isa/facts.h"
#include "jit/isa/hazards.h"
#include "jit/isa/op_info.h"
#include "jit/passes/passes.h"
#include "tests/golden/jit_core/tool.h"
#include "tests/require_tools.h"

namespace zyfa::jit {
namespace {

// One instruction form: operand slots, its MIR with %0, %1, ... for the operands, and its facts.
struct Form {
  std::string name;
  std::string mir;
  std::vector<OperandInfo> slots;
  std::optional<Op> op;           // a listing opcode; facts come from facts_of
  Modifiers mods;                 // of a listing opcode
  InstFacts base;                 // otherwise: facts without registers
  std::vector<Operand> defaults;  // non-register operands, by slot; a Reg means "register"
};

Operand reg_slot() { return Reg{}; }

Form listing_form(std::string name, Op op, std::string mir, Modifiers mods = {},
                  const std::map<int, Operand>& constants = {}) {
  Form f{std::move(name), std::move(mir), {}, op, mods, {}, {}};
  const auto operands = op_info(op).operands;
  f.slots.assign(operands.begin(), operands.end());
  if (mods.cbsz == 4) f.slots[1].count = f.slots[2].count = 4;
  f.defaults.assign(operands.size(), reg_slot());
  for (const auto& [slot, value] : constants) f.defaults[static_cast<std::size_t>(slot)] = value;
  return f;
}

Form fact_form(std::string name, std::string mir, std::vector<OperandInfo> slots, InstFacts base) {
  Form f{std::move(name), std::move(mir), std::move(slots), std::nullopt, {}, std::move(base), {}};
  f.defaults.assign(f.slots.size(), reg_slot());
  return f;
}

InstFacts facts_class(FactClass cls) {
  InstFacts facts;
  facts.cls = cls;
  return facts;
}

constexpr OperandInfo kDefV{Role::kDef, Kind::kVgpr, 1}, kUseV{Role::kUse, Kind::kVgpr, 1},
    kTiedV{Role::kTied, Kind::kVgpr, 1}, kDefS{Role::kDef, Kind::kSgpr, 1}, kUseS{Role::kUse, Kind::kSgpr, 1};

std::vector<Form> forms() {
  const std::string fp = ", implicit $mode, implicit $exec";
  const std::string ex = ", implicit $exec";
  Modifiers offen, high, fp4;
  offen.offen = true;
  high.op_sel = 8;
  fp4.cbsz = fp4.blgp = 4;
  InstFacts dpp = facts_class(FactClass::kValu), cmpx = facts_class(FactClass::kCmpx);
  dpp.is_dpp = true;
  cmpx.writes = {{Bank::kSpecial, static_cast<std::uint16_t>(Special::kExec), 1},
                 {Bank::kSpecial, static_cast<std::uint16_t>(Special::kVcc), 1}};
  InstFacts fmas = facts_class(FactClass::kDivFmas);
  fmas.reads = {{Bank::kSpecial, static_cast<std::uint16_t>(Special::kVcc), 1}};
  InstFacts vcmp = facts_class(FactClass::kValu);
  vcmp.writes = fmas.reads;
  InstFacts sgemm = facts_class(FactClass::kMfmaSgemm);
  sgemm.mfma_passes = 8;
  InstFacts smfmac = facts_class(FactClass::kSmfmac);
  smfmac.mfma_passes = 4;
  std::vector<Form> all = {
      listing_form("mov", Op::kVMovB32, "%0 = V_MOV_B32_e32 %1" + ex),
      listing_form("add", Op::kVAddF32, "%0 = V_ADD_F32_e32 %1, %2" + fp),
      listing_form("fma", Op::kVFmaF32, "%0 = V_FMA_F32_e64 0, %1, 0, %2, 0, %3, 0, 0" + fp),
      listing_form("max3", Op::kVMax3F32, "%0 = V_MAX3_F32_e64 0, %1, 0, %2, 0, %3, 0, 0" + fp),
      listing_form("fmac", Op::kVFmacF32, "%0 = V_FMAC_F32_e32 %1, %2, %0" + fp),
      listing_form("exp", Op::kVExpF32, "%0 = V_EXP_F32_e32 %1" + fp),
      listing_form("rcp", Op::kVRcpF32, "%0 = V_RCP_F32_e32 %1" + fp),
      listing_form("cvt_bf16", Op::kVCvtPkBf16F32, "%0 = V_CVT_PK_BF16_F32_e64 0, %1, 0, %2, 0, 0" + fp),
      listing_form("cvt_fp8_low", Op::kVCvtPkFp8F32, "%0 = V_CVT_PK_FP8_F32_e64 0, %1, 0, %2, %0, 0" + fp),
      listing_form("cvt_fp8_high", Op::kVCvtPkFp8F32, "%0 = V_CVT_PK_FP8_F32_e64 8, %1, 0, %2, %0, 0" + fp, high),
      listing_form("cvt_u8", Op::kVCvtPkU8F32, "%0 = V_CVT_PK_U8_F32_e64 0, %1, 0, %2, 0, %3, 0" + fp),
      listing_form("pk_mul", Op::kVPkMulF32, "%0 = V_PK_MUL_F32 8, %1, 8, %2, 0, 0, 0, 0, 0" + fp),
      listing_form("swap32", Op::kVPermlane32Swap, "%0, %1 = V_PERMLANE32_SWAP_B32_e32 %0, %1" + ex),
      listing_form("readfirstlane", Op::kVReadfirstlaneB32, "%0 = V_READFIRSTLANE_B32 %1" + ex),
      listing_form("cmp", Op::kVCmpGtF32, "%0 = V_CMP_GT_F32_e64 0, %1, 0, %2, 0" + fp),
      listing_form("cndmask", Op::kVCndmaskB32, "%0 = V_CNDMASK_B32_e64 0, %1, 0, %2, %3" + ex),
      listing_form("acc_read", Op::kVAccvgprRead, "%0 = V_ACCVGPR_READ_B32_e64 %1" + ex),
      listing_form("acc_write", Op::kVAccvgprWrite, "%0 = V_ACCVGPR_WRITE_B32_e64 %1" + ex),
      listing_form("bf16_32", Op::kVMfmaF32_32x32x16Bf16,
                   "%0 = V_MFMA_F32_32X32X16_BF16_vgprcd_e64 %1, %2, %3, 0, 0, 0" + fp),
      listing_form("bf16_16", Op::kVMfmaF32_16x16x32Bf16,
                   "%0 = V_MFMA_F32_16X16X32_BF16_vgprcd_e64 %1, %2, %3, 0, 0, 0" + fp),
      listing_form("fp8_32", Op::kVMfmaF32_32x32x64F8f6f4,
                   "%0 = V_MFMA_F32_32X32X64_F8F6F4_f8_f8_vgprcd_e64 %1, %2, %3, 0, 0" + fp),
      listing_form("fp4_32", Op::kVMfmaF32_32x32x64F8f6f4,
                   "%0 = V_MFMA_F32_32X32X64_F8F6F4_f4_f4_vgprcd_e64 %1, %2, %3, 4, 4" + fp, fp4),
      listing_form("fp8_16", Op::kVMfmaF32_16x16x128F8f6f4,
                   "%0 = V_MFMA_F32_16X16X128_F8F6F4_f8_f8_vgprcd_e64 %1, %2, %3, 0, 0" + fp),
      listing_form("scaled", Op::kVMfmaScaleF32_32x32x64F8f6f4,
                   "%0 = V_MFMA_SCALE_F32_32X32X64_F8F6F4_f8_f8_vgprcd_e64 %1, %2, %3, 0, 0, %4, %5, 0, 0" + fp),
      listing_form("ds_read", Op::kDsReadB128, "%0 = DS_READ_B128_gfx9 %1, 0, 0" + ex),
      listing_form("ds_write", Op::kDsWriteB128, "DS_WRITE_B128_gfx9 %0, %1, 0, 0" + ex),
      listing_form("buffer_load", Op::kBufferLoadDwordx4, "%0 = BUFFER_LOAD_DWORDX4_OFFEN %1, %2, %3, 0, 0, 0" + ex,
                   offen),
      listing_form("buffer_store", Op::kBufferStoreDwordx4,
                   "BUFFER_STORE_DWORDX4_OFFEN_exact %0, %1, %2, %3, 0, 0, 0" + ex, offen),
      listing_form("buffer_store_no_soffset", Op::kBufferStoreDwordx4,
                   "BUFFER_STORE_DWORDX4_OFFEN_exact %0, %1, %2, 0, 0, 0, 0" + ex, offen, {{3, Imm{0}}}),
      listing_form("buffer_store_x2", Op::kBufferStoreDwordx2,
                   "BUFFER_STORE_DWORDX2_OFFEN_exact %0, %1, %2, 0, 0, 0, 0" + ex, offen, {{3, Imm{0}}}),
      listing_form("lds_dma", Op::kBufferLoadDwordLds,
                   "BUFFER_LOAD_DWORD_LDS_OFFEN %0, %1, %2, 0, 0, 0" + ex + ", implicit $m0", offen),
      listing_form("global_load", Op::kGlobalLoadDword, "%0 = GLOBAL_LOAD_DWORD_SADDR %2, %1, 0, 0" + ex),
      listing_form("global_store", Op::kGlobalStoreDwordx4, "GLOBAL_STORE_DWORDX4_SADDR %0, %1, %2, 0, 0" + ex),
      listing_form("s_add", Op::kSAddU32, "%0 = S_ADD_U32 %1, %2, implicit-def $scc"),
      listing_form("s_load", Op::kSLoadDword, "%0 = S_LOAD_DWORD_IMM %1, 0, 0", {}, {{2, Imm{0}}}),
      fact_form("dpp", "%0 = V_MOV_B32_dpp %0, %1, 0, 15, 15, 0" + ex, {kTiedV, kUseV}, dpp),
      fact_form("cmpx",
                "V_CMPX_LT_I32_e32 %0, %1, implicit-def $exec, implicit-def $vcc, implicit $mode, implicit $exec",
                {kUseV, kUseV}, cmpx),
      fact_form("div_fmas", "%0 = V_DIV_FMAS_F32_e64 0, %1, 0, %2, 0, %3, 0, 0, implicit $mode, implicit $vcc" + ex,
                {kDefV, kUseV, kUseV, kUseV}, fmas),
      fact_form("cmp_vcc", "V_CMP_GT_F32_e32 %0, %1, implicit-def $vcc" + fp, {kUseV, kUseV}, vcmp),
      fact_form("readlane", "%0 = V_READLANE_B32 %1, %2", {kDefS, kUseV, kUseS}, facts_class(FactClass::kReadlane)),
      fact_form("writelane", "%0 = V_WRITELANE_B32 1, %1, %0", {kTiedV, kUseS}, facts_class(FactClass::kReadlane)),
      fact_form("dot", "%0 = V_DOT2_F32_F16 8, %1, 8, %2, 8, %3, 0, 0, 0, 0, 0" + fp, {kDefV, kUseV, kUseV, kUseV},
                facts_class(FactClass::kDot)),
      fact_form("sgemm_16", "%0 = V_MFMA_F32_16X16X4F32_vgprcd_e64 %1, %2, %3, 0, 0, 0" + fp,
                {{Role::kDef, Kind::kVgpr, 4}, kUseV, kUseV, {Role::kUse, Kind::kVgpr, 4}}, sgemm),
      fact_form("smfmac", "%0 = V_SMFMAC_F32_16X16X128_FP8_FP8_e64 %1, %2, %3, 0, 0, %0" + fp,
                {{Role::kTied, Kind::kVgpr, 4}, {Role::kUse, Kind::kVgpr, 4}, {Role::kUse, Kind::kVgpr, 8}, kUseV},
                smfmac),
  };
  return all;
}

RegRange range_of(const Reg& r) {
  if (r.bank == Bank::kSpecial) return {r.bank, static_cast<std::uint16_t>(r.id), 1};
  return {r.bank, static_cast<std::uint16_t>(r.id), r.count};
}

// A form with its operands filled in.
struct Instance {
  const Form* form = nullptr;
  std::vector<Operand> operands;

  [[nodiscard]] Instruction instruction() const { return {*form->op, operands, form->mods, {}, {}, 0, {}}; }

  [[nodiscard]] InstFacts facts() const {
    if (form->op) return facts_of(instruction());
    InstFacts facts = form->base;
    std::vector<RegRange> ranges;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      ranges.push_back(range_of(std::get<Reg>(operands[i])));
      if (form->slots[i].role != Role::kDef) facts.reads.push_back(ranges.back());
      if (form->slots[i].role != Role::kUse) facts.writes.push_back(ranges.back());
    }
    const bool readlane = facts.cls == FactClass::kReadlane;
    if (readlane) facts.lane_select = ranges.back();
    if (facts.cls == FactClass::kDot || facts.cls == FactClass::kMfmaSgemm || facts.cls == FactClass::kSmfmac) {
      facts.mfma_d = ranges[0];
      facts.mfma_a = ranges[1];
      facts.mfma_b = ranges[2];
      facts.mfma_c = facts.cls == FactClass::kSmfmac ? ranges[0] : ranges[3];
    }
    return facts;
  }

  [[nodiscard]] std::string mir() const {
    std::string out = form->mir;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Reg* reg = std::get_if<Reg>(&operands[i]);
      if (reg == nullptr) continue;
      std::string name = "$";
      if (reg->bank == Bank::kSpecial) {
        name += to_string(*reg);
      } else {
        for (std::uint32_t r = reg->id; r < reg->id + reg->count; ++r) {
          const char* bank = reg->bank == Bank::kSgpr ? "sgpr" : reg->bank == Bank::kVgpr ? "vgpr" : "agpr";
          name += (r == reg->id ? "" : "_") + std::string(bank) + std::to_string(r);
        }
      }
      const std::string place = "%" + std::to_string(i);
      for (std::size_t at = 0; (at = out.find(place, at)) != std::string::npos; at += name.size()) {
        out.replace(at, place.size(), name);
      }
    }
    return out;
  }
};

Bank bank_of(Kind kind) {
  switch (kind) {
    case Kind::kSgpr:
    case Kind::kScalarSource:
      return Bank::kSgpr;
    case Kind::kAgpr:
      return Bank::kAgpr;
    default:
      return Bank::kVgpr;
  }
}

// Every operand a register of its own, from `vector` and `scalar` upward.
Instance fill(const Form& form, std::uint32_t vector, std::uint32_t scalar) {
  Instance out{&form, {}};
  for (std::size_t i = 0; i < form.slots.size(); ++i) {
    if (!std::holds_alternative<Reg>(form.defaults[i])) {
      out.operands.push_back(form.defaults[i]);
      continue;
    }
    const Bank bank = bank_of(form.slots[i].kind);
    std::uint32_t& next = bank == Bank::kSgpr ? scalar : vector;
    out.operands.push_back(Reg{bank, false, form.slots[i].count, 0, next});
    next += bank == Bank::kSgpr ? 4 : std::max<std::uint32_t>(form.slots[i].count, 2);
  }
  return out;
}

struct Pair {
  Instance producer, consumer;
  std::string text;
  int required = 0;
};

// Targets of a dependence: registers the producer writes, an MFMA's C, the data of a store.
std::vector<Reg> targets(const Instance& producer) {
  std::vector<Reg> out;
  const bool matrix = producer.form->mir.find("V_MFMA") != std::string::npos;
  for (std::size_t i = 0; i < producer.operands.size(); ++i) {
    const Reg* reg = std::get_if<Reg>(&producer.operands[i]);
    if (reg == nullptr) continue;
    const bool store =
        producer.form->name.find("store") != std::string::npos && reg->count >= 2 && reg->bank != Bank::kSgpr;
    if (producer.form->slots[i].role != Role::kUse || (matrix && i == 3) || store) out.push_back(*reg);
  }
  return out;
}

std::vector<Pair> make_pairs(const std::vector<Form>& all) {
  std::vector<Pair> pairs;
  const RegTable no_tuples;
  for (const Form& p : all) {
    const Instance producer = fill(p, 0, 0);
    for (const Form& c : all) {
      const auto add = [&](Instance consumer, const std::string& what) {
        if (c.op && !check(consumer.instruction(), no_tuples)) return;
        Pair pair{producer, std::move(consumer), p.name + " -> " + c.name + " " + what, 0};
        pair.required = wait_states_required(pair.producer.facts(), pair.consumer.facts()).states;
        pairs.push_back(std::move(pair));
      };
      add(fill(c, 96, 32), "independent");
      for (const Reg& target : targets(producer)) {
        for (std::size_t slot = 0; slot < c.slots.size(); ++slot) {
          Instance consumer = fill(c, 96, 32);
          Reg* reg = std::get_if<Reg>(&consumer.operands[slot]);
          const bool scalar = target.bank == Bank::kSgpr;
          const bool fits =
              reg != nullptr && (reg->bank == target.bank || (scalar && c.slots[slot].kind == Kind::kVectorSource));
          if (!fits || (scalar && reg->count != target.count && reg->count < 4)) continue;
          *reg = Reg{target.bank, false, reg->count, 0, target.id};
          if (scalar && reg->count >= 4) reg->id = target.id / 4 * 4;
          add(consumer, "operand " + std::to_string(slot) + " = " + to_string(*reg));
          if (reg->count == 1 && target.count > 1) {  // the far end of the tuple
            reg->id = target.id + target.count - 1;
            add(consumer, "operand " + std::to_string(slot) + " = " + to_string(*reg));
          }
          // MFMA: D and C the same tuple.
          if (slot == 3 && c.mir.find("V_MFMA") != std::string::npos) {
            consumer.operands[slot] = Reg{target.bank, false, c.slots[slot].count, 0, target.id};
            consumer.operands[0] = consumer.operands[slot];
            add(consumer, "C and D = " + to_string(std::get<Reg>(consumer.operands[0])));
          }
        }
      }
    }
  }
  return pairs;
}

// States LLVM inserts for each pair, in order; empty when the tool is missing.
std::vector<int> llvm_states(const std::vector<Pair>& pairs) {
  std::string text;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    text += "---\nname: f" + std::to_string(i) + "\nbody: |\n  bb.0:\n    " + pairs[i].producer.mir() + "\n    " +
            pairs[i].consumer.mir() + "\n    S_ENDPGM 0\n...\n";
  }
  const auto result = zyfa::test::run_tool(
      ZYFA_LLC, "-mtriple=amdgcn -mcpu=gfx950 -mattr=-xnack -run-pass post-RA-hazard-rec -simplify-mir -o -", text,
      ".mir");
  if (!result) return {};
  EXPECT_EQ(result->status, 0) << result->output.substr(0, 2000);
  std::vector<int> states;
  std::size_t line = 0;
  bool in_body = false;
  while (line < result->output.size()) {
    const std::size_t end = std::min(result->output.find('\n', line), result->output.size());
    const std::string_view view(result->output.data() + line, end - line);
    line = end + 1;
    if (view.starts_with("name:")) {
      states.push_back(0);
      in_body = false;
    }
    if (view.starts_with("body:")) in_body = true;
    if (const auto at = view.find("S_NOP "); in_body && at != std::string_view::npos) {
      states.back() += std::stoi(std::string(view.substr(at + 6))) + 1;
    }
  }
  return states;
}

// Where the table follows the reference and not LLVM 22.
bool expected_difference(const Pair& pair, int llvm) {
  const FactClass from = pair.producer.facts().cls, to = pair.consumer.facts().cls;
  const std::string& producer = pair.producer.form->name;
  const std::string& consumer = pair.consumer.form->name;
  const bool one_more = llvm == 1 && pair.required == 0;
  // 4.3: LLVM takes the default op_sel_hi of VOP3P for a destination-half select.
  if (producer == "pk_mul" || producer == "dot") {
    if (one_more) return true;
  }
  // LLVM marks direct-to-LDS loads as VALU instructions, to tell them from others.
  if (consumer == "lds_dma" && one_more) return producer == "exp" || producer == "rcp" || producer == "cvt_fp8_high";
  // LLVM takes the DPP rule for any producer; loads are waited for.
  if (consumer == "dpp" && llvm == 2 && pair.required == 0)
    return from == FactClass::kLds || from == FactClass::kVmemLoad;
  // 4.4: one state where a load overwrites the data of a wide store.
  if (from == FactClass::kVmemStore && llvm == 0 && pair.required == 1) {
    return to == FactClass::kLds || to == FactClass::kVmemLoad;
  }
  // 4.1, SGEMM: LLVM exempts XDL consumers that read an overlapping C.
  if (from == FactClass::kMfmaSgemm && to == FactClass::kMfmaXdl && llvm == 0) return pair.required == 8;
  // 4.3, DOT: LLVM also exempts MFMA, and DOTs of the same opcode, that overwrite the result.
  const bool overwrites = to == FactClass::kDot || pair.consumer.facts().mfma_passes != 0;
  return producer == "dot" && overwrites && llvm == 1 && pair.required == 3;
}

TEST(Hazards, AgreeWithLlvmOnEveryPair) {
  const std::vector<Form> all = forms();
  const std::vector<Pair> pairs = make_pairs(all);
  ASSERT_GT(pairs.size(), 2000u);
  const std::vector<int> llvm = llvm_states(pairs);
  if (llvm.empty()) ZYFA_SKIP_WITHOUT_TOOL("llc is not installed");
  ASSERT_EQ(llvm.size(), pairs.size());
  int nonzero = 0;
  std::map<std::string, int> differences;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    nonzero += llvm[i] != 0;
    if (pairs[i].required == llvm[i] || expected_difference(pairs[i], llvm[i])) continue;
    ADD_FAILURE() << pairs[i].text << ": LLVM " << llvm[i] << ", table " << pairs[i].required << "\n  "
                  << pairs[i].producer.mir() << "\n  " << pairs[i].consumer.mir();
  }
  EXPECT_GT(nonzero, 500);
}

// The pass on the same pairs: s_nop for exactly the states of the table.
TEST(Hazards, PassInsertsTheStatesOfTheTable) {
  const std::vector<Form> all = forms();
  int inserted = 0;
  for (const Pair& pair : make_pairs(all)) {
    if (!pair.producer.form->op || !pair.consumer.form->op) continue;
    Listing listing;
    listing.code = {pair.producer.instruction(), pair.consumer.instruction()};
    ASSERT_TRUE(insert_wait_states(listing));
    int states = 0;
    for (std::size_t i = 1; i + 1 < listing.code.size(); ++i) {
      ASSERT_EQ(listing.code[i].op, Op::kSNop) << pair.text;
      states += std::get<Imm>(listing.code[i].operands[0]).value + 1;
      EXPECT_THAT(listing.code[i].comment, testing::StartsWith("hazard: "));
    }
    EXPECT_EQ(states, pair.required) << pair.text;
    inserted += states;
  }
  EXPECT_GT(inserted, 1000);
}

}  // namespace
}  // namespace zyfa::jit
