// Two waves of a SIMD in phases that barriers lock against each other: one issues MFMAs, the other vector instructions,
// then they change (docs/performance-model.md, calibration).
#include <gtest/gtest.h>

#include "tests/correctness/timing/micro.h"
#include "tests/correctness/timing/weave.h"

namespace zyfa::sim_test {
namespace {

using sim::timing::Parameters;

// Waves 0-3 begin with `a`, waves 4-7 with `b`; cycles of a phase over `rounds` of both.
double antiphase(const Steps& a, const Steps& b, unsigned rounds, const Parameters& parameters) {
  const Steps barrier = micro().steps("barrier");
  const Steps body = a + barrier + b + barrier;
  const auto run = [&](unsigned n) {
    std::vector<Steps> waves(4, barrier + repeat(body, n) + barrier);
    waves.resize(8, barrier + barrier + repeat(body, n));
    return static_cast<double>(run_waves(waves, parameters).cycles);
  };
  return (run(rounds + 2) - run(2)) / (2.0 * rounds);
}

// T20 on gfx942: cycles added to a 16-cycle MFMA by N = 1 to 4 instructions of the other wave, and of the same wave.
TEST(TwoWaves, AddedCyclesOnGfx942) {
  const Parameters p = sim::timing::gfx942_parameters();
  struct Case {
    const char* op;
    double other[4], same[4];
  };
  constexpr double kPlain[4] = {0, 0, 0, 4};
  std::vector<Case> cases = {
      {"exp", {4, 20, 36, 52}, {4, 20, 36, 52}},
      {"rcp", {4, 20, 36, 52}, {4, 20, 36, 52}},
      {"pk_add", {5, 10, 15, 20}, {12, 16, 20, 24}},
      {"pk_mul", {5, 10, 15, 20}, {12, 16, 20, 24}},
  };
  for (const char* plain : {"add", "add_e64", "fma", "fmac", "max3", "cmp", "cndmask", "add_u32", "perm"}) {
    Case& c = cases.emplace_back(Case{plain, {}, {}});
    std::copy(std::begin(kPlain), std::end(kPlain), c.other);
    std::copy(std::begin(kPlain), std::end(kPlain), c.same);
  }
  const Steps mfmas = repeat(micro().steps("bf16_16_old"), 500);
  for (const Case& c : cases) {
    for (unsigned n = 1; n <= 4; ++n) {
      const std::string ops = std::string(c.op) + "*" + std::to_string(n);
      const double other = antiphase(mfmas, repeat(micro().steps(ops), 500), 4, p) / 500;
      EXPECT_NEAR(other - 16, c.other[n - 1], 1) << ops << " of the other wave";
      EXPECT_NEAR(cycles_per("bf16_16_old " + ops, p) - 16, c.same[n - 1], 1) << ops << " of the same wave";
    }
  }
}

// Orders of two MFMAs, three plain instructions and one TRANS in a lone wave, measured on gfx942 by the same authors.
TEST(TwoWaves, BundlesOnGfx942) {
  const Parameters p = sim::timing::gfx942_parameters();
  EXPECT_NEAR(cycles_per("bf16_16_old add*3 bf16_16_old exp", p), 36.05, 1);
  EXPECT_NEAR(cycles_per("bf16_16_old bf16_16_old exp", p), 36.04, 1);
  EXPECT_NEAR(cycles_per("bf16_16_old bf16_16_old add*3 exp", p), 48.05, 1);
  EXPECT_NEAR(cycles_per("exp add", p), 20, 1);
  EXPECT_NEAR(cycles_per("exp rcp", p), 32, 1);
}

// What a phase of two waves that share the VALU port loses at its barrier, measured on gfx942 by the same authors in
// phases of 1,000 instructions; the scalar instructions are their loop control. Sets `barrier_cycles`.
TEST(TwoWaves, BarrierOnGfx942) {
  const Parameters p = sim::timing::gfx942_parameters();
  constexpr unsigned kInstructions = 1000;
  const Steps exps = micro().steps("salu*5") + repeat(micro().steps("exp"), kInstructions);
  for (const char* op : {"exp", "add", "add_u32"}) {
    const double work = cycles_per("exp", p) + cycles_per(op, p);
    EXPECT_NEAR(antiphase(exps, repeat(micro().steps(op), kInstructions), 4, p) - work * kInstructions, 8, 2) << op;
  }
}

// The phase of 2.4 by hand, max(M + 5 Npk, hold Nmfma + V), of 16 MFMAs and 1,496 vector cycles, 32 of them packed; a
// vector section ends with a turn and the release of its barrier.
TEST(TwoWaves, PhaseFormula) {
  Parameters p;
  const Steps mfmas = micro().steps("fp8_32*16");
  const Steps vector = weave({micro().steps("pk_fma*32"), micro().steps("exp*65"), micro().steps("max3*32"),
                              micro().steps("add*131"), micro().steps("cvt_fp8*32"), micro().steps("perm*18")});
  const double barrier = 4 + p.barrier_cycles;
  EXPECT_NEAR(antiphase(mfmas, vector, 20, p), 12 * 16 + 1496 + barrier, 8);
  p.hold_other_wave = 0;
  EXPECT_NEAR(antiphase(mfmas, vector, 20, p), 1496 + barrier, 8);
  // Bound by the matrix pipe: the barrier hides behind the last MFMA.
  p.hold_other_wave = 1;
  EXPECT_NEAR(antiphase(mfmas, micro().steps("pk_fma*32"), 20, p), 1024 + 5 * 32, 8);
  EXPECT_NEAR(antiphase(mfmas, micro().steps("add*64"), 20, p), 1024, 8);
}

}  // namespace
}  // namespace zyfa::sim_test
