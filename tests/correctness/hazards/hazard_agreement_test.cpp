// Every row of the hazard table, one wait state short and exactly met: strict mode and the verifier find the first and
// pass the second, with s_nop between the pair, with other instructions, and round a loop; LLVM's recogniser inserts
// the same number, or the row says why not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "tests/correctness/hazards/hazard_table.h"
#include "tests/correctness/hazards/mir.h"
#include "tests/require_tools.h"
#include "tests/unit/jit_verify/kernel_text.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::hazards {

std::ostream& operator<<(std::ostream& out, const HazardRow& row) {
  return out << row.producer << " -> " << row.consumer;
}

namespace {

using sim_test::Args;
using sim_test::Buffer;

// What the table promises about registers (hazard_table.h). LDS is written where the pairs read it.
std::string registers() {
  static const std::string text = [] {
    std::string s = "s_load_dwordx2 s[14:15], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v0, 4, v0\n";
    for (int i = 1; i < 128; ++i) s += fmt::format("v_mov_b32 v{}, 0\n", i);
    s += "ds_write_b128 v0, v[4:7]\nv_mov_b32 v0, 0\n";
    for (int i = 0; i < 64; ++i) s += fmt::format("v_accvgpr_write_b32 a{}, 0\n", i);
    s += "s_waitcnt lgkmcnt(0)\ns_mov_b32 s8, s14\ns_mov_b32 s9, s15\ns_mov_b32 s10, 4096\ns_mov_b32 s11, 0x27000\n";
    for (int i = 3; i < 64; ++i)
      if (i < 8 || (i > 11 && i != 14 && i != 15)) s += fmt::format("s_mov_b32 s{}, 0\n", i);
    return s + "v_mov_b32 v70, s14\nv_mov_b32 v71, s15\ns_mov_b64 vcc, 0\ns_mov_b32 m0, 0\ns_cmp_eq_u32 s3, 0\n" +
           nops(32);
  }();
  return text;
}

struct Judgement {
  std::vector<std::string> strict, verifier;  // findings, "unconfirmed: ..." for what is only inadvisable
};

constexpr char kEnd[] = "s_waitcnt vmcnt(0) lgkmcnt(0)\n";

void ask_strict(const std::string& body, Judgement& j) {
  const auto device = sim_test::make_device(SimChecks::kStrict);
  const Buffer<std::uint32_t> memory(*device, std::vector<std::uint32_t>(2048, 0));
  const Status status = sim_test::run(
      *device, sim_test::assemble_kernel(registers() + body, {.agprs = 64, .lds = 8192}), "k", {}, Args().add(memory));
  for (const SimFinding& f : device->last_findings())
    j.strict.push_back(f.kind + ": " + f.instruction + ": " + f.message);
  if (!status && j.strict.empty()) j.strict.push_back(to_string(status.error()));
}

Judgement judge(const std::string& body) {
  Judgement j;
  ask_strict(body, j);
  const jit::VerifyReport report = jit::testing::verify_body(body);
  for (const jit::Finding& f : report.findings) j.verifier.push_back(to_string(f));
  for (const std::string& note : report.notes) j.verifier.push_back("note: " + note);
  return j;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string s;
  for (const std::string& line : lines) s += "  " + line + "\n";
  return s;
}

// Instructions of this wave that have nothing to do with the pair, worth one state each; scalar ones where the hazard
// is not about the registers of the pair.
std::string bystanders(unsigned states, bool scalar) {
  static constexpr const char* kKinds[] = {"s_mov_b32 s44, 0\n", "s_setprio 0\n", "v_mov_b32 v100, 0\n",
                                           "v_mfma_f32_16x16x32_bf16 v[104:107], v[108:111], v[112:115], v[104:107]\n",
                                           "ds_read_b32 v101, v102\n"};
  std::string s;
  for (unsigned i = 0; i < states; ++i) s += kKinds[i % (scalar ? 2 : std::size(kKinds))];
  return s;
}

constexpr unsigned kLoopTail = 3;  // counter, compare, branch

// The pair with `states` between, in up to three ways, each out of the others' reach: s_nop; other instructions; the
// consumer before the producer in a loop, so that the second trip alone meets the hazard.
struct Trial {
  std::string body;
  std::size_t pairs = 0;
};
Trial trial(const HazardRow& row, unsigned states) {
  const bool wide = row.producer.find("v_cmpx") == 0 || row.what.find("vskip") == 0;
  Trial t;
  const auto add = [&](const std::string& code) {
    t.body += code + kEnd + nops(32);
    ++t.pairs;
  };
  add(row.producer + "\n" + nops(states) + row.consumer + "\n");
  if (row.states > 1) add(row.producer + "\n" + bystanders(states, wide) + row.consumer + "\n");
  if (row.states > kLoopTail) {
    add("s_mov_b32 s45, 2\nloop:\n" + row.consumer + "\n" + kEnd + nops(32) + row.producer + "\n" +
        nops(states - kLoopTail) + "s_sub_u32 s45, s45, 1\ns_cmp_lg_u32 s45, 0\ns_cbranch_scc1 loop\n" + nops(32));
  }
  return t;
}

class HazardTable : public testing::TestWithParam<HazardRow> {};

TEST_P(HazardTable, EnoughIsClean) {
  const Judgement j = judge(trial(GetParam(), GetParam().states).body);
  EXPECT_TRUE(j.strict.empty()) << "strict mode:\n" << joined(j.strict);
  EXPECT_TRUE(j.verifier.empty()) << "verifier:\n" << joined(j.verifier);
}

TEST_P(HazardTable, OneShortIsFound) {
  const HazardRow& row = GetParam();
  if (row.states == 0) return;
  const Trial t = trial(row, row.states - 1);
  const Judgement j = judge(t.body);
  const std::string consumer = row.consumer.substr(0, row.consumer.find(' '));
  const auto named = [&](const std::vector<std::string>& lines, const std::string& kind) {
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.starts_with(kind) && line.find(consumer) != std::string::npos;
    });
  };
  EXPECT_EQ(j.strict.size(), t.pairs) << "strict mode:\n" << joined(j.strict);
  EXPECT_EQ(named(j.strict, row.unconfirmed ? "wait-states-unconfirmed: " : "wait-states: "), t.pairs)
      << "strict mode:\n"
      << joined(j.strict);
  if (row.unconfirmed) {
    ASSERT_EQ(j.verifier.size(), 1u) << "verifier:\n" << joined(j.verifier);
    EXPECT_EQ(named(j.verifier, "note: not confirmed: "), 1);
    EXPECT_NE(j.verifier[0].find(fmt::format(" work: {}, the first", t.pairs)), std::string::npos) << j.verifier[0];
  } else {
    EXPECT_EQ(j.verifier.size(), t.pairs) << "verifier:\n" << joined(j.verifier);
    EXPECT_EQ(named(j.verifier, "wait-states at "), t.pairs) << "verifier:\n" << joined(j.verifier);
  }
}

std::string row_name(const testing::TestParamInfo<HazardRow>& info) {
  std::string name;
  for (const char c : info.param.what) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return fmt::format("{:03}_{}", info.index, name);
}
INSTANTIATE_TEST_SUITE_P(Rows, HazardTable, testing::ValuesIn(hazard_table()), row_name);

// A branch that leaves out the filler: the verifier sees both ways, strict mode the one that is taken.
TEST(HazardPaths, ShortWayRoundAFiller) {
  const auto fork = [](const char* branch, unsigned before) {
    return "v_mfma_f32_32x32x16_bf16 v[0:15], v[32:35], v[36:39], v[16:31]\n" + nops(before) + branch + " join\n" +
           nops(12) + "join:\nv_mov_b32 v76, v1\n";
  };
  const Judgement taken = judge(fork("s_cbranch_scc1", 10)), passed = judge(fork("s_cbranch_scc0", 10));
  EXPECT_EQ(taken.strict.size(), 1u) << joined(taken.strict);
  EXPECT_EQ(taken.verifier.size(), 1u) << joined(taken.verifier);
  EXPECT_TRUE(passed.strict.empty()) << joined(passed.strict);
  EXPECT_EQ(passed.verifier.size(), 1u) << joined(passed.verifier);
  const Judgement enough = judge(fork("s_cbranch_scc1", 11));
  EXPECT_TRUE(enough.strict.empty()) << joined(enough.strict);
  EXPECT_TRUE(enough.verifier.empty()) << joined(enough.verifier);
}

// An MFMA that writes D again ends the claim of the one before, as far as it writes.
TEST(HazardPaths, OnlyTheNearestMatrixWriterCounts) {
  const std::string first = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:47], v[16:31]\n";
  const std::string part = "v_mfma_f32_16x16x32_bf16 v[0:3], v[32:35], v[36:39], v[48:51]\n" + nops(17);
  const Judgement rewritten = judge(first + part + "v_mov_b32 v76, v3\n"),
                  kept = judge(first + part + "v_mov_b32 v76, v4\n");
  EXPECT_TRUE(rewritten.strict.empty()) << joined(rewritten.strict);
  EXPECT_TRUE(rewritten.verifier.empty()) << joined(rewritten.verifier);
  EXPECT_EQ(kept.strict.size(), 1u) << joined(kept.strict);
  EXPECT_EQ(kept.verifier.size(), 1u) << joined(kept.verifier);
}

TEST(HazardTableAgainstLlvm, InsertsTheSameNumberOrTheRowSaysWhyNot) {
  if (!has_llc()) ZYFA_SKIP_WITHOUT_TOOL("llc-22 was not found when the tests were configured");
  std::vector<MirPair> pairs;
  for (const HazardRow& row : hazard_table()) pairs.push_back({row.producer, row.consumer, 0});
  // LLVM 22 looks back 19 wait states only, so that the 20th of a 16-pass MFMA is forgotten (gfx950-isa.md 4.5).
  const char* const wide = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:47], v[16:31]";
  pairs.push_back({wide, "v_mov_b32 v76, v1", 18});
  pairs.push_back({wide, "v_mov_b32 v76, v1", 19});
  const std::vector<unsigned> inserted = states_llvm_adds(pairs);
  std::size_t agree = 0;
  for (std::size_t i = 0; i < hazard_table().size(); ++i) {
    const HazardRow& row = hazard_table()[i];
    const bool same = row.llvm == -1;
    EXPECT_EQ(inserted[i], same ? row.states : static_cast<unsigned>(row.llvm))
        << row.what << ": " << row.producer << " -> " << row.consumer;
    EXPECT_EQ(same, row.why_not.empty()) << row.what;
    agree += same ? 1 : 0;
  }
  EXPECT_EQ(inserted[inserted.size() - 2], 2u);
  EXPECT_EQ(inserted.back(), 0u) << "the look-back of LLVM was repaired: gfx950-isa.md 4.5";
  std::printf("%zu rows: %zu agree with LLVM, %zu differ for the reason they name\n", hazard_table().size(), agree,
              hazard_table().size() - agree);
}

}  // namespace
}  // namespace zyfa::hazards
