// One wave: matrix rates, what follows an MFMA, and the plain issue costs. Expected values are the measurements that
// the timing reference quotes (docs/performance-model.md, calibration).
#include <gtest/gtest.h>

#include "tests/correctness/timing/micro.h"

namespace zyfa::sim_test {
namespace {

using sim::timing::Parameters;

// Cycles from the issue of the first instruction to that of the last.
std::uint64_t distance(std::string_view text, const Parameters& parameters = {}) {
  const auto result = run_waves({micro().steps(text)}, parameters);
  return result.events.empty() ? ~0ull : result.events.back().issue - result.events.front().issue;
}

struct Shape {
  const char* name;
  unsigned cycles, plain, packed;  // 2.1, 1.3a
};
constexpr Shape kShapes[] = {
    {"bf16_16", 16, 8, 28},       {"bf16_32", 32, 8, 44},       {"bf16_16_old", 16, 4, 24}, {"bf16_32_old", 32, 4, 40},
    {"fp8_16_legacy", 16, 4, 24}, {"fp8_32_legacy", 32, 4, 40}, {"fp8_16", 32, 12, 44},     {"fp8_32", 64, 12, 76},
    {"fp4_16", 16, 8, 28},        {"fp4_32", 32, 8, 44},        {"fp6_32", 32, 8, 44},      {"fp8fp4_32", 64, 12, 76},
    {"i8_16", 16, 8, 28},         {"i8_32", 32, 8, 44},         {"smfmac_16", 16, 12, 12},  {"smfmac_32", 32, 12, 12},
    {"f64_16", 64, 72, 72},       {"f32_16", 32, 40, 40},       {"b4x4", 8, 4, 16},
};

// T1, T2: independent MFMAs run back to back.
TEST(Issue, MatrixRates) {
  for (const Shape& s : kShapes) {
    EXPECT_EQ(cycles_per(s.name), s.cycles) << s.name;
    const auto result = run_waves({repeat(micro().steps(s.name), 500)});
    const double busy = static_cast<double>(result.busy.matrix[0]) / static_cast<double>(result.cycles);
    EXPECT_GE(busy, 0.99) << s.name;
  }
  EXPECT_EQ(cycles_per("scale_fp8_32"), 64);
}

// T23: the earliest slot of every class of vector instruction after every shape.
TEST(Issue, AfterAnMfmaOfTheWave) {
  for (const Shape& s : kShapes) {
    for (const char* plain : {"add", "fma", "max3", "exp", "rcp", "cvt_fp8", "cvt_u8", "pk_f16", "swap"})
      EXPECT_EQ(distance(std::string(s.name) + " " + plain), s.plain) << s.name << " " << plain;
    for (const char* packed : {"pk_add", "pk_mul", "pk_fma", "pk_mov", "dot2"})
      EXPECT_EQ(distance(std::string(s.name) + " " + packed), s.packed) << s.name << " " << packed;
    // LDS, vector memory and scalar instructions go on at once.
    for (const char* other : {"read128", "load4", "salu"})
      EXPECT_EQ(distance(std::string(s.name) + " " + other), 4) << s.name << " " << other;
  }
  // Into an idle matrix pipe a scaled MFMA goes one slot later, and all that follows it.
  EXPECT_EQ(distance("scale_fp8_32 add"), 16u);
  EXPECT_EQ(distance("scale_fp8_32 pk_mul"), 80u);
}

// The table applied: cycles that plain VALU gets for nothing under each MFMA.
TEST(Issue, VectorInstructionsHideUnderAnMfma) {
  const struct {
    const char *mfma, *text;
    double cycles;
  } cases[] = {
      {"bf16_16", "bf16_16 add*2", 16},  {"bf16_16", "bf16_16 add*3", 20},   {"bf16_32", "bf16_32 add*6", 32},
      {"bf16_32", "bf16_32 exp*3", 32},  {"bf16_32", "bf16_32 add*7", 36},   {"fp8_16", "fp8_16 add*5", 32},
      {"fp8_16", "fp8_16 add*6", 36},    {"fp8_32", "fp8_32 add*13", 64},    {"fp8_32", "fp8_32 add*14", 68},
      {"fp4_32", "fp4_32 add*6", 32},    {"fp8_32", "fp8_32 exp*6 add", 64}, {"fp8_32", "fp8_32 exp*7", 68},
      {"bf16_32", "bf16_32 pk_mul", 48},
  };
  // A packed op takes 5 cycles from the pipe, which the next MFMA must wait for: within one.
  for (const auto& c : cases) EXPECT_NEAR(cycles_per(c.text), c.cycles, 1) << c.text;
}

// T17: a lone wave in traces of an MI350X.
TEST(Issue, LoneWave) {
  EXPECT_EQ(cycles_per("add"), 4);
  EXPECT_EQ(cycles_per("pk_mul"), 4);
  EXPECT_EQ(cycles_per("lshl_add"), 4);
  EXPECT_EQ(cycles_per("salu"), 4);
  EXPECT_EQ(cycles_per("exp"), 8);
  EXPECT_EQ(cycles_per("add*4 wait_lgkm add*4 wait_lgkm add*4 wait_vm add*4"), 64);
  EXPECT_EQ(distance("read128 read128"), 4u);
  for (const char* text : {"read128_lane wait_lgkm add", "write_lane wait_lgkm add"}) {
    EXPECT_GE(distance(text), 36u) << text;
    EXPECT_LE(distance(text), 40u) << text;
  }
  EXPECT_GE(distance("add read_own"), 8u);
  EXPECT_LE(distance("add read_own"), 12u);
  EXPECT_NEAR(static_cast<double>(distance("smem wait_lgkm add")), 760, 4);
}

// s_nop N holds its wave for N + 1 wait states (2.3).
TEST(Issue, Nops) {
  EXPECT_EQ(distance("add nop0 add"), 8u);
  EXPECT_EQ(distance("add nop7 add"), 36u);
}

// T21: cycles a SIMD executes both, by MFMA; and where packed fp32 becomes free.
TEST(Issue, CoExecutedCycles) {
  const struct {
    const char* text;
    double both;
  } cases[] = {{"fp8_16 add", 4.0}, {"fp8_16 add*2", 8.0}, {"fp8_16 pk_fma", 0.0}};
  for (const auto& c : cases) {
    const Overlap o = overlap(run_waves({repeat(micro().steps(c.text), 1000)}));
    EXPECT_NEAR(o.both / 1000, c.both, 0.01) << c.text;
  }
  // Ten wait states between, slot 11: the first distance that costs nothing.
  EXPECT_EQ(distance("fp8_16 nop7 nop0 pk_fma"), 44u);
  EXPECT_EQ(distance("fp8_16 nop7 nop1 pk_fma"), 44u);
  EXPECT_EQ(distance("fp8_16 nop7 nop1 nop0 pk_fma"), 48u);
}

// T19: were TRANS never to overlap, 66 of them in a loop of 64 MFMAs would cap it at 79.5%.
TEST(Issue, TransThatTakesTheMatrixPipe) {
  Parameters p;
  p.trans_matrix_cycles = 8;
  Steps body;
  for (unsigned i = 0; i < 66; ++i) {
    if (i < 64) body = body + micro().steps("bf16_32");
    body = body + micro().steps("exp");
  }
  const auto result = run_waves({repeat(body, 50)}, p);
  EXPECT_NEAR(100.0 * static_cast<double>(result.busy.matrix[0]) / static_cast<double>(result.cycles), 79.5, 0.1);
  const auto free = run_waves({repeat(body, 50)});
  EXPECT_GE(static_cast<double>(free.busy.matrix[0]) / static_cast<double>(free.cycles), 0.99);
}

// 1.6: a stream of 8-byte vector instructions at PC mod 8 = 4 runs at 5 cycles each, of 4-byte ones at 4.
TEST(Issue, MisalignedInstructions) {
  sim::Program moved = micro().program();
  for (sim::MicroOp& op : moved.ops) op.offset += 4;
  for (const auto& [name, cycles] : {std::pair{"add_e64", 5.0}, {"pk_mul", 5.0}, {"add", 4.0}}) {
    sim::timing::GroupTrace group;
    group.waves.push_back({.steps = repeat(micro().steps(name), 1000), .addresses = {}});
    const auto result = sim::timing::run_cu({.program = &moved, .groups = {&group}}, {});
    ASSERT_TRUE(result.has_value());
    EXPECT_NEAR(static_cast<double>(result->cycles) / 1000, cycles, 0.02) << name;
    EXPECT_EQ(cycles_per(name), 4) << name;
  }
}

}  // namespace
}  // namespace zyfa::sim_test
