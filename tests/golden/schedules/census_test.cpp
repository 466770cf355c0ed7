// What one 32 x 128 tile costs in the hot loop of each 8-bit attention kernel: its instructions are counted along the
// path that a trip takes when nothing special happens (no masked key, no reference that moves; folded kernels on the
// near path, and again on the far one), and priced by mi355x-timing.md 2.1 and 2.2. The budget is asserted; the whole
// census is compared with a golden file. After a wanted change, run this test with ZYFA_UPDATE_GOLDEN=1 and read the
// difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "schedules/select/placement.h"
#include "tests/golden/schedules/shipped.h"

namespace zyfa::schedules {
namespace {

using golden::KernelCode;
using golden::Line;
using golden::Loop;

constexpr std::uint32_t kTileBlocks = 2;  // 64-key blocks of a tile, one iteration
enum class Path { kNear, kFar };

// Cycles of the matrix pipe (mi355x-timing.md 2.1, e4m3 operands).
std::uint32_t matrix_cycles(std::string_view opcode) {
  static const std::map<std::string_view, std::uint32_t> cycles{{"v_mfma_f32_32x32x64_f8f6f4", 64},
                                                                {"v_mfma_scale_f32_32x32x64_f8f6f4", 64},
                                                                {"v_mfma_f32_16x16x128_f8f6f4", 32},
                                                                {"v_mfma_i32_32x32x32_i8", 32},
                                                                {"v_smfmac_f32_16x16x128_fp8_fp8", 16}};
  const auto found = cycles.find(opcode);
  EXPECT_NE(found, cycles.end()) << opcode;
  return found == cycles.end() ? 0 : found->second;
}

bool is_matrix(std::string_view opcode) { return opcode.starts_with("v_mfma_") || opcode.starts_with("v_smfmac_"); }
bool is_vector(std::string_view opcode) { return opcode.starts_with("v_") && !is_matrix(opcode); }

// Cycles of the vector unit (mi355x-timing.md 2.2).
std::uint32_t vector_cycles(std::string_view opcode) {
  for (const std::string_view slow : {"v_exp_", "v_log_", "v_rcp_", "v_permlane32_swap", "v_permlane16_swap"}) {
    if (opcode.starts_with(slow)) return 8;
  }
  return 4;
}

// Whether a line makes scores into codes, one by one: what the budget of P counts.
bool makes_probability(const Line& line) {
  static const std::set<std::string_view> opcodes{"v_fma_f32", "v_pk_fma_f32", "v_exp_f32", "v_cvt_pk_u8_f32",
                                                  "v_cvt_pk_fp8_f32"};
  const bool far = line.stage == "exponents" && line.comment.empty() && line.opcode() == "v_fma_f32";
  return far || (line.stage.starts_with("prob_") && opcodes.contains(line.opcode()) &&
                 (line.comment.empty() || line.comment == "probability"));
}

// Which way the hot path goes at a forward branch on a condition.
bool is_taken(const Line& line, Path path) {
  if (line.stage == "loop") return false;  // leaves the loop
  static const std::set<std::string_view> rare{"mask_a", "mask_b", "rescale"};
  if (rare.contains(line.stage)) return true;                      // skips the rare work
  if (line.stage == "exponents") return path == Path::kFar;        // to the far path
  if (line.stage.starts_with("sum_")) return path == Path::kNear;  // to the near path
  ADD_FAILURE() << "a branch that the census does not know: " << line.stage << ": " << line.code.text;
  return false;
}

// The lines of one tile in the order of execution.
std::vector<const Line*> walk(const KernelCode& code, Path path) {
  const std::vector<Loop> loops = code.loops();
  EXPECT_EQ(loops.size(), 1U);
  if (loops.size() != 1) return {};
  const Loop loop = loops.front();
  std::vector<const Line*> lines;
  for (std::size_t i = loop.first; lines.size() < code.lines.size();) {
    const Line& line = code.lines[i];
    lines.push_back(&line);
    if (line.stage == "loop" && line.opcode().starts_with("s_sub_")) return lines;  // the end of a trip
    if (line.code.branch_target < 0) {
      ++i;
      continue;
    }
    const bool taken = i == loop.last || line.opcode() == "s_branch" || is_taken(line, path);
    i = taken ? code.index_at(line.code.branch_target) : i + 1;
  }
  ADD_FAILURE() << "a trip without an end";
  return lines;
}

struct Work {
  std::uint32_t instructions = 0, cycles = 0;
};

struct Census {
  std::map<std::string, std::uint32_t> matrix;  // by opcode
  std::uint32_t product_cycles = 0, row_sum_cycles = 0;
  std::map<std::string, std::uint32_t> probability;  // by opcode
  std::uint32_t probability_cycles = 0;
  std::map<std::string, Work> other_vector;  // by stage
  std::uint32_t packed = 0, scalar = 0, lds_reads = 0, lds_loads = 0, waits = 0, nops = 0, states = 0, barriers = 0;
  std::uint32_t aligning_nops = 0;
  std::uint32_t instructions = 0, bytes = 0;
};

void count(Census& census, const Line& line) {
  const std::string opcode(line.opcode());
  ++census.instructions;
  census.bytes += line.code.size;
  if (line.comment.starts_with("aligns ")) ++census.aligning_nops;
  if (opcode.starts_with("v_pk_")) ++census.packed;
  if (is_matrix(opcode)) {
    ++census.matrix[opcode];
    const bool sums = line.comment.starts_with("row sum") || line.comment == "near path";
    (sums ? census.row_sum_cycles : census.product_cycles) += matrix_cycles(opcode);
  } else if (makes_probability(line)) {
    ++census.probability[opcode];
    census.probability_cycles += vector_cycles(opcode);
  } else if (is_vector(opcode)) {
    Work& work = census.other_vector[line.stage];
    ++work.instructions;
    work.cycles += vector_cycles(opcode);
  } else if (opcode.starts_with("ds_read_")) {
    ++census.lds_reads;
  } else if (opcode.starts_with("buffer_load_") && line.code.text.ends_with(" lds")) {
    ++census.lds_loads;
  } else if (opcode == "s_waitcnt") {
    ++census.waits;
  } else if (opcode == "s_nop") {
    ++census.nops;
    census.states += static_cast<std::uint32_t>(std::stoul(line.code.text.substr(6))) + 1;
  } else if (opcode == "s_barrier") {
    ++census.barriers;
  } else {
    EXPECT_THAT(opcode, testing::StartsWith("s_")) << "an instruction that the census does not know";
    ++census.scalar;
  }
}

Census take(const KernelCode& code, Path path) {
  Census census;
  for (const Line* line : walk(code, path)) count(census, *line);
  return census;
}

std::string list(const std::map<std::string, std::uint32_t>& counts) {
  std::string text;
  for (const auto& [name, n] : counts) text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + name;
  return text;
}

std::uint32_t vector_instructions(const Census& c) {
  std::uint32_t sum = 0;
  for (const auto& [opcode, n] : c.probability) sum += n;
  for (const auto& [stage, work] : c.other_vector) sum += work.instructions;
  return sum;
}

std::string to_text(const Census& c) {
  std::ostringstream out;
  out << "  matrix       " << list(c.matrix) << ": " << c.product_cycles << " + row sum " << c.row_sum_cycles
      << " cycles\n";
  out << "  P            " << list(c.probability) << ": " << c.probability_cycles << " cycles\n";
  std::string stages;
  Work total;
  for (const auto& [stage, work] : c.other_vector) {
    stages += (stages.empty() ? "" : ", ") + stage + " " + std::to_string(work.instructions) + "/" +
              std::to_string(work.cycles);
    total.cycles += work.cycles;
  }
  out << "  other VALU   " << stages << " (instructions/cycles by stage): " << total.cycles << " cycles\n";
  out << "  all VALU     " << vector_instructions(c) << " instructions\n";
  out << "  packed fp32  " << c.packed << "\n";
  out << "  LDS          " << c.lds_reads << " reads, " << c.lds_loads << " direct loads\n";
  out << "  waiting      " << c.waits << " s_waitcnt, " << c.nops << " s_nop of " << c.states << " states ("
      << c.aligning_nops << " for alignment), " << c.barriers << " s_barrier\n";
  out << "  scalar       " << c.scalar << "\n";
  out << "  issued       " << c.instructions << " instructions, " << c.bytes << " bytes\n";
  return out.str();
}

// VALU cycles of P for the 64 scores that a lane holds of a tile, from the costs above by hand: 64 conversions of a
// byte 256, 64 multiply-adds 256 or 128 in pairs, 64 exponentials 512, 32 conversions of a pair 128.
std::uint32_t probability_budget(const KernelSpec& spec, bool packed, Path path) {
  const std::uint32_t multiply_add = packed ? 128 : 256;
  if (spec.probability == ProbabilityRule::kExact) return multiply_add + 512 + 128;
  if (spec.form == ScoreForm::kMultiplyAdd) return multiply_add + 256;
  return path == Path::kNear ? 256 : 512;  // the far path shifts each score by its block's exponent
}

void expect_budget(const Census& c, const KernelSpec& spec, bool packed, Path path) {
  const bool integer = spec.element == ElementType::kInt8;
  const std::uint32_t wide = spec.head_dim_qk == 192 ? 12 : 8;  // of Q.K, in steps of 64 dims
  const auto number = [&c](const char* opcode) {
    const auto found = c.matrix.find(opcode);
    return found == c.matrix.end() ? 0 : found->second;
  };
  EXPECT_EQ(number("v_mfma_f32_32x32x64_f8f6f4") + number("v_mfma_scale_f32_32x32x64_f8f6f4"), integer ? 8 : wide + 8);
  EXPECT_EQ(number("v_mfma_i32_32x32x32_i8"), integer ? 2 * wide : 0);
  // The row sum, where the spec leaves it open: dense for a sum of each block by itself, sparse where it accumulates
  // (DESIGN.md section 4, point 3).
  const bool by_block = spec.form == ScoreForm::kMultiplyAdd && spec.block_exponents == BlockExponents::kUsed;
  const bool dense = spec.row_sum == RowSum::kAuto ? by_block : spec.row_sum == RowSum::kDense;
  EXPECT_EQ(number("v_mfma_f32_16x16x128_f8f6f4"), dense ? kTileBlocks : 0U);
  EXPECT_EQ(number("v_smfmac_f32_16x16x128_fp8_fp8"), dense ? 0U : kTileBlocks);
  EXPECT_EQ(c.product_cycles, spec.head_dim_qk == 192 ? 1280U : 1024U);
  EXPECT_EQ(c.row_sum_cycles, dense ? 64U : 32U);
  EXPECT_EQ(c.probability_cycles, probability_budget(spec, packed, path));
  if (!packed) {
    EXPECT_EQ(c.packed, 0U);
  }
}

// What a tile may issue in ping-pong: a barrier for each of its two phases, and few VALU instructions beside those of
// P.
void expect_few_instructions(const Census& c, const KernelSpec& spec, Path path) {
  EXPECT_LE(c.barriers, 2U);
  if (spec.element != ElementType::kFp8E4M3 || spec.probability != ProbabilityRule::kLean) return;
  if (spec.row_sum != RowSum::kAuto) return;  // a sparse sum of each block clears what it adds to
  if (spec.form == ScoreForm::kFolded && path == Path::kNear) {
    EXPECT_LE(vector_instructions(c), 112U);
  }
  if (spec.form == ScoreForm::kMultiplyAdd) {
    EXPECT_LE(vector_instructions(c), 180U);
  }
}

// What holds for the whole loop, its rare paths included.
void expect_clean_loop(const KernelCode& code, bool packed) {
  for (const Loop& loop : code.loops()) {
    for (std::size_t i = loop.first; i <= loop.last; ++i) {
      const Line& line = code.lines[i];
      EXPECT_THAT(line.opcode(), testing::Not(testing::StartsWith("scratch_")));
      EXPECT_THAT(line.opcode(), testing::Not(testing::StartsWith("v_accvgpr_")));
      if (!packed) {
        EXPECT_THAT(line.opcode(), testing::Not(testing::StartsWith("v_pk_"))) << line.stage;
      }
      if (line.code.size > 4) {
        EXPECT_EQ((code.address + line.code.offset) % 8, 0U) << line.stage << ": " << line.code.text;
      }
    }
  }
}

std::string loop_text(const KernelCode& code) {
  std::ostringstream out;
  for (const Loop& loop : code.loops()) {
    const jit::Decoded& last = code.lines[loop.last].code;
    out << "  loop         " << loop.last - loop.first + 1 << " instructions, "
        << last.offset + last.size - code.lines[loop.first].code.offset << " bytes with its rare paths\n";
  }
  return out.str();
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void compare_with_golden(const std::string& file_name, const std::string& text) {
  const std::string path = std::string(ZYFA_SOURCE_DIR) + "/tests/golden/schedules/" + file_name;
  if (std::getenv("ZYFA_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string recorded((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, recorded) << "differs from " << path;
}

// The variants of a row, and of those with lean probabilities and e4m3 scores also the row sum that is not usual.
std::vector<KernelSpec> specs_of_census(const Row& row, std::uint32_t head_dim) {
  std::vector<KernelSpec> specs = golden::eight_bit_variants(row, head_dim);
  const std::size_t usual = row.form.has_value() ? 2 : 10;
  EXPECT_EQ(specs.size(), usual);
  for (std::size_t i = 0; i < usual && i < specs.size(); ++i) {
    KernelSpec spec = specs[i];
    if (spec.element != ElementType::kFp8E4M3 || spec.probability != ProbabilityRule::kLean) continue;
    spec.row_sum = usual_row_sum(spec) == RowSum::kDense ? RowSum::kSparse : RowSum::kDense;
    specs.push_back(spec);
  }
  return specs;
}

class CensusTest : public testing::TestWithParam<std::pair<std::string, std::uint32_t>> {};

TEST_P(CensusTest, IsAsBudgetedAndRecorded) {
  const auto& [name, head_dim] = GetParam();
  const Row* row = find_row(kernel_table(), name);
  ASSERT_NE(row, nullptr);
  const auto placement = parse_placement(row->placement);
  ASSERT_TRUE(placement) << to_string(placement.error());
  const bool packed = placement->math == VectorMath::kPacked;
  std::string text =
      "One tile of 32 queries x 128 keys, a wave; " + name + ", head dims " + std::to_string(head_dim) + "/128.\n";
  for (const KernelSpec& spec : specs_of_census(*row, head_dim)) {
    SCOPED_TRACE(golden::variant_name(spec));
    const auto kernel = compile_kernel(spec);
    ASSERT_TRUE(kernel) << to_string(kernel.error());
    const KernelCode code = golden::read_code(*kernel);
    EXPECT_LE(kernel->info.vgprs, 256U);
    EXPECT_EQ(kernel->info.agprs, 0U);
    expect_clean_loop(code, packed);
    const Census census = take(code, Path::kNear);
    expect_budget(census, spec, packed, Path::kNear);
    if (placement->groups == 2) expect_few_instructions(census, spec, Path::kNear);
    text += "\n" + golden::variant_name(spec) + "\n" + to_text(census) + loop_text(code) + "  registers    " +
            std::to_string(kernel->info.vgprs) + " VGPRs, " + std::to_string(kernel->info.sgprs) + " SGPRs, map of " +
            std::to_string(lines_in(kernel->register_map)) + " lines\n";
    if (spec.form == ScoreForm::kFolded && spec.block_exponents == BlockExponents::kUsed) {
      SCOPED_TRACE("far path");
      const Census far = take(code, Path::kFar);
      expect_budget(far, spec, packed, Path::kFar);
      if (placement->groups == 2) expect_few_instructions(far, spec, Path::kFar);
      text += " far path\n" + to_text(far);
    }
  }
  compare_with_golden("census_" + name + "_d" + std::to_string(head_dim) + ".txt", text);
}

INSTANTIATE_TEST_SUITE_P(Placements, CensusTest,
                         testing::Values(std::pair("fp8_pingpong", 128U), std::pair("fp8_pingpong_192", 192U),
                                         std::pair("fp8_pingpong_folded", 128U),
                                         std::pair("fp8_pingpong_folded_192", 192U),
                                         std::pair("fp8_pingpong_packed", 128U), std::pair("fp8_pingpong_packed", 192U),
                                         std::pair("fp8_naive", 128U), std::pair("fp8_naive", 192U)),
                         [](const auto& info) { return info.param.first + "_d" + std::to_string(info.param.second); });

// O and fragments lie in AGPRs, from which MFMAs take them: only where the reference moves is O copied to be scaled.
TEST(WideLoops, CopyAgprsWhereTheReferenceMoves) {
  for (const auto& [name, head_dim] : {std::pair("fp8_wide", 128U), std::pair("fp8_wide_192", 192U)}) {
    for (const KernelSpec& spec : golden::eight_bit_variants(*find_row(kernel_table(), name), head_dim)) {
      SCOPED_TRACE(name + (" " + golden::variant_name(spec)));
      const auto kernel = compile_kernel(spec);
      ASSERT_TRUE(kernel) << to_string(kernel.error());
      EXPECT_GT(kernel->info.agprs, 128U);
      const KernelCode code = golden::read_code(*kernel);
      for (const Loop& loop : code.loops()) {
        for (std::size_t i = loop.first; i <= loop.last; ++i) {
          const Line& line = code.lines[i];
          EXPECT_THAT(line.opcode(), testing::Not(testing::StartsWith("scratch_")));
          EXPECT_THAT(line.opcode(), testing::Not(testing::StartsWith("v_pk_"))) << line.stage;
          if (line.opcode().starts_with("v_accvgpr_")) {
            EXPECT_THAT(line.stage, testing::StartsWith("rescale"));
          }
        }
      }
    }
  }
}

// "v[4:7]   score[0]   12..80" or "v3   ...": one past the last VGPR of the row, 0 for other lines.
std::uint32_t vector_end(const std::string& row) {
  unsigned first = 0, last = 0;
  if (std::sscanf(row.c_str(), "v[%u:%u] ", &first, &last) == 2) return last + 1;
  return std::sscanf(row.c_str(), "v%u ", &first) == 1 ? first + 1 : 0;
}

// The map as printed, of the folded kernel that holds most: what its rows take adds up to the number declared.
TEST(RegisterMap, OfTheFoldedKernelOfTheLargerHeadDim) {
  KernelSpec spec = golden::eight_bit_variants(*find_row(kernel_table(), "fp8_pingpong_192"), 192).front();
  spec.form = ScoreForm::kFolded;
  const auto kernel = compile_kernel(spec);
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  std::uint32_t end = 0;
  std::istringstream lines(kernel->register_map);
  for (std::string line; std::getline(lines, line);) {
    end = std::max(end, vector_end(line));
    EXPECT_THAT(line, testing::Not(testing::StartsWith("a")));
  }
  EXPECT_EQ(end, kernel->info.vgprs);
  EXPECT_LE(end, 256U);
  EXPECT_THAT(kernel->register_map, testing::HasSubstr("\nVGPRs: " + std::to_string(end) + " used"));
  compare_with_golden("register_map_folded.txt", golden::variant_name(spec) + "\n" + kernel->register_map);
}

}  // namespace
}  // namespace zyfa::schedules
