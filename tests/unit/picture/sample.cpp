#include "tests/unit/picture/sample.h"

namespace zyfa::sim_test {

using sim::picture::Execution;
using sim::picture::Unit;

Execution sample_execution() {
  Execution e;
  e.kernel = "sample_kernel";
  e.facts = {{"cycles a trip", "100"}};
  e.instructions = {
      {0, Unit::kMatrix, "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15]", "qk", "S += Q.K"},
      {8, Unit::kValu, "v_max_f32_e32 v1, v2, v3", "max", ""},
      {12, Unit::kTrans, "v_exp_f32_e32 v1, v2", "exp", "P"},
      {16, Unit::kLds, "ds_read_b128 v[0:3], v4", "read k", ""},
      {24, Unit::kBarrier, "s_barrier", "", ""},
      {28, Unit::kInternal, "s_waitcnt lgkmcnt(0)", "", "K fragment"},
  };
  e.waves = {{{7, 0, 0}, 0, 0}, {{7, 0, 0}, 4, 0}, {{7, 0, 0}, 1, 1}};
  e.stalls = {"none", "matrix busy", "lds wait"};
  e.spans = {
      {.wave = 0, .instruction = 0, .issue = 100, .start = 100, .end = 132},
      {.wave = 1, .instruction = 1, .issue = 104, .start = 104, .end = 108},
      {.wave = 1, .instruction = 2, .issue = 108, .start = 108, .end = 116},
      {.wave = 1, .instruction = 3, .issue = 116, .start = 118, .end = 170},
      {.wave = 0, .instruction = 0, .issue = 132, .start = 132, .end = 164, .stalled = 28, .stall = 1},
      {.wave = 0, .instruction = 4, .issue = 136, .start = 136, .end = 184},
      {.wave = 2, .instruction = 0, .issue = 140, .start = 140, .end = 172},
      {.wave = 1, .instruction = 5, .issue = 170, .start = 170, .end = 170, .stalled = 50, .stall = 2},
      {.wave = 1, .instruction = 4, .issue = 172, .start = 172, .end = 184},
      {.wave = 0, .instruction = 1, .issue = 184, .start = 184, .end = 188},
      {.wave = 1, .instruction = 0, .issue = 184, .start = 186, .end = 218},
  };
  e.cycles = 300;
  e.loop = {100, 200};
  return e;
}

Execution hostile_execution() {
  Execution e = sample_execution();
  const std::string text = "</title></svg><script>console.error('&\"x\"')</script>\x01\xff\\";
  e.kernel = text;
  e.facts = {{text, text}};
  for (auto& i : e.instructions) i.stage = i.comment = text + i.stage;
  for (auto& stall : e.stalls) stall = text + stall;
  return e;
}

}  // namespace zyfa::sim_test
