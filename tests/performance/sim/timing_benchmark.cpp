// Speed of the cycle model: instructions a second of eight waves that alternate matrix and vector sections, with LDS
// reads and direct-to-LDS loads; without and with events.
#include <benchmark/benchmark.h>

#include "tests/correctness/timing/micro.h"
#include "tests/correctness/timing/weave.h"

namespace zyfa::sim_test {
namespace {

using sim::timing::EventLog;

void ping_pong_instructions(benchmark::State& state) {
  const Micro& m = micro();
  const Steps barrier = m.steps("barrier");
  const Steps matrix = weave({m.steps("fp8_32*16"), m.steps("read128*16 read_tr8*32")}) + m.steps("wait_lgkm");
  const Steps vector = weave({m.steps("fma*64"), m.steps("exp*64"), m.steps("cvt_u8*64"), m.steps("load_lds*4")});
  const Steps body = matrix + barrier + vector + barrier;
  sim::timing::GroupTrace group;
  for (unsigned w = 0; w < 8; ++w)
    group.waves.push_back(
        {.steps = w < 4 ? repeat(body, 100) + barrier : barrier + repeat(body, 100), .addresses = {}});
  const sim::timing::CuRun run{.program = &m.program(),
                               .groups = {&group},
                               .resident = 1,
                               .events = state.range(0) ? EventLog::kOn : EventLog::kOff};
  std::uint64_t instructions = 0;
  for (auto _ : state) {
    const auto result = sim::timing::run_cu(run, {});
    if (!result) return state.SkipWithError(to_string(result.error()).c_str());
    for (const auto& wave : result->waves) instructions += wave.instructions;
  }
  state.counters["instructions"] = benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}
BENCHMARK(ping_pong_instructions)->ArgName("events")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zyfa::sim_test
