// A small execution whose pictures are worked out by hand.
#pragma once

#include "runtime/sim/picture/execution.h"

namespace zyfa::sim_test {

// Waves 0 and 4 on SIMD 0 and wave 1 on SIMD 1; the loop is [100, 200). On SIMD 0:
//
//   pipe    [100,132) wave 0   [132,164) wave 0   idle [164,186)   [186,218) wave 4
//   wave 0  MFMA, waits for the pipe 104 to 132, MFMA, at the barrier 136 to 184, v_max 184 to 188
//   wave 4  v_max 104, v_exp 108 to 116, ds_read 116 (result at 170), waits for it 120 to 170, at the barrier 172 to
//           184, MFMA
sim::picture::Execution sample_execution();

// The same with names that would end a string, an attribute or an element.
sim::picture::Execution hostile_execution();

}  // namespace zyfa::sim_test
