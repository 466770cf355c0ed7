#include "runtime/sim/timing/steady.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace zyfa::sim::timing {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// A loop is a taken backward branch: its target is the head.
struct Loop {
  u32 head = 0, tail = 0;
  friend auto operator<=>(const Loop&, const Loop&) = default;
};

using Events = std::vector<const Event*>;

std::vector<Events> by_wave(const CuResult& result) {
  std::vector<Events> waves(result.waves.size());
  for (const Event& e : result.events) waves[e.wave].push_back(&e);
  return waves;
}

// Instructions of each loop's trips, over all waves; code between two runs of a loop belongs to neither, and a loop
// that no wave goes through twice is none.
Loop hottest(const Program& program, const std::vector<Events>& waves, u64& instructions) {
  std::map<Loop, u64> weight;
  for (const Events& events : waves) {
    std::map<Loop, std::size_t> last;
    for (std::size_t i = 0; i + 1 < events.size(); ++i) {
      const u32 from = events[i]->op, to = events[i + 1]->op;
      std::erase_if(last, [&](const auto& entry) { return to < entry.first.head || to > entry.first.tail; });
      if (to > from || program.ops[from].unit != Unit::kBranch) continue;
      const Loop loop{to, from};
      const auto previous = last.find(loop);
      if (previous != last.end()) weight[loop] += i - previous->second;
      last[loop] = i;
    }
  }
  Loop best;
  instructions = 0;
  for (const auto& [loop, count] : weight) {
    if (count > instructions) {
      best = loop;
      instructions = count;
    }
  }
  return best;
}

struct Trip {
  u64 begin = 0, end = 0, matrix = 0, instructions = 0;
};

// From one pass through the head to the next, without an interruption by other code than the loop's.
std::vector<Trip> trips(const Program& program, const Events& events, const Loop& loop) {
  std::vector<Trip> all;
  Trip current;
  bool inside = false;
  for (const Event* e : events) {
    if (e->op == loop.head) {
      if (inside) {
        current.end = e->issue;
        all.push_back(current);
      }
      current = {.begin = e->issue};
      inside = true;
    } else if (e->op < loop.head || e->op > loop.tail) {
      inside = false;
    }
    ++current.instructions;
    if (program.ops[e->op].unit == Unit::kMfma) current.matrix += e->end - e->unit_start;
  }
  return all;
}

}  // namespace

Expected<SteadyLoop> steady_loop(const Program& program, const CuResult& result) {
  if (result.events.empty())
    return make_error(ErrorCode::kNotFound, "no steady state: the run kept no events, which EventLog::kOn asks for");
  const std::vector<Events> waves = by_wave(result);
  u64 instructions = 0;
  const Loop loop = hottest(program, waves, instructions);
  SteadyLoop steady;
  steady.head = loop.head;
  steady.tail = loop.tail;
  std::vector<Trip> middle;
  if (instructions > 0) {
    for (const Events& events : waves) {
      const std::vector<Trip> all = trips(program, events, loop);
      steady.passes += all.empty() ? 0 : all.size() + 1;
      const std::size_t skip = all.size() / 4;
      if (middle.empty() && !all.empty()) {
        steady.begin = all[all.size() / 2].begin;
        steady.end = all[all.size() / 2].end;
      }
      middle.insert(middle.end(), all.begin() + static_cast<std::ptrdiff_t>(skip),
                    all.end() - static_cast<std::ptrdiff_t>(skip));
    }
  }
  if (middle.empty())
    return make_error(ErrorCode::kNotFound, "no steady state: no wave passes the head of a loop three times");
  std::vector<u64> lengths;
  for (const Trip& t : middle) {
    lengths.push_back(t.end - t.begin);
    steady.matrix_cycles += static_cast<double>(t.matrix);
    steady.instructions += static_cast<double>(t.instructions);
  }
  const auto count = static_cast<double>(middle.size());
  steady.trip_cycles = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), u64{0})) / count;
  steady.matrix_cycles /= count;
  steady.instructions /= count;
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2), lengths.end());
  steady.median_cycles = lengths[lengths.size() / 2];
  for (const Event& e : result.events)
    if (e.issue >= steady.begin && e.issue < steady.end) steady.events.push_back(e);
  return steady;
}

}  // namespace zyfa::sim::timing
