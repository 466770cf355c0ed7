// Pictures of what the cycle model gives: two groups of waves that take turns at the matrix pipe, with memory, waits
// and barriers. Whatever the model's numbers are, the pictures account for every cycle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/sim/picture/loop_html.h"
#include "runtime/sim/picture/loop_text.h"
#include "runtime/sim/picture/loop_view.h"
#include "runtime/sim/picture/trace_json.h"
#include "tests/correctness/timing/micro.h"
#include "tests/unit/picture/trace_check.h"

namespace zyfa::sim_test {
namespace {

using namespace sim::picture;
using testing::IsEmpty;

Execution from_model(const sim::timing::CuResult& run) {
  Execution e;
  e.kernel = "micro";
  for (const std::string& text : micro().program().text) e.instructions.push_back({0, unit_of(text), text, "", ""});
  for (const sim::timing::WaveTime& w : run.waves) e.waves.push_back({w.workgroup, w.index, w.simd});
  for (std::size_t i = 0; i < sim::timing::kStalls; ++i)
    e.stalls.emplace_back(sim::timing::stall_name(static_cast<sim::timing::Stall>(i)));
  for (const sim::timing::Event& v : run.events)
    e.spans.push_back({v.wave, v.op, v.issue, v.unit_start, v.end, v.stalled, static_cast<std::uint32_t>(v.stall)});
  e.cycles = run.cycles;
  return e;
}

Execution ping_pong() {
  const Steps matrix = micro().steps("read128*4 wait_lgkm fp8_32*8 prio1 salu barrier");
  const Steps vector = micro().steps("load_lds*2 max3*8 pk_fma*4 nop1 exp*8 cvt_fp8*4 smem wait_vm prio0 barrier");
  std::vector<Steps> waves;
  for (unsigned w = 0; w < 8; ++w) waves.push_back(repeat(w < 4 ? matrix + vector : vector + matrix, 20));
  return from_model(run_waves(waves));
}

TEST(PictureOfModel, TraceOfTheWholeRunIsValid) {
  const Execution e = ping_pong();
  const auto trace = trace_json(e);
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_THAT(trace_faults(nlohmann::json::parse(*trace)), IsEmpty());
}

TEST(PictureOfModel, EveryCycleIsAccountedFor) {
  const Execution e = ping_pong();
  for (const Window window : {Window{0, e.cycles}, Window{e.cycles / 2, e.cycles / 2 + 997}}) {
    const auto view = view_loop(e, window);
    ASSERT_TRUE(view) << to_string(view.error());
    ASSERT_EQ(view->waves.size(), 2U);
    EXPECT_GT(view->matrix, 0U);
    EXPECT_EQ(view->matrix + view->idle, view->cycles());
    std::uint64_t caused = 0, pipe = 0;
    for (const Cause& cause : view->causes) caused += cause.cycles;
    EXPECT_EQ(caused, view->idle);
    for (const Block& b : view->pipe) pipe += b.end - b.begin;
    EXPECT_EQ(pipe, view->matrix);  // one MFMA at a time
    for (const WaveView& wave : view->waves) {
      for (std::size_t i = 1; i < wave.states.size(); ++i) EXPECT_EQ(wave.states[i].begin, wave.states[i - 1].end);
    }
  }
}

TEST(PictureOfModel, MatrixShareIsTheModels) {
  const Execution e = ping_pong();
  const LoopView view = view_loop(e, Window{0, e.cycles}).value();
  // 20 trips of 2 waves, 8 MFMAs of 64 cycles each (timing reference 2.1).
  EXPECT_EQ(view.matrix, 20U * 2 * 8 * 64);
}

TEST(PictureOfModel, PageAndTextAreMade) {
  const Execution e = ping_pong();
  EXPECT_TRUE(loop_html(e));
  EXPECT_TRUE(loop_text(e));
}

}  // namespace
}  // namespace zyfa::sim_test
