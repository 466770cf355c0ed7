#include "tests/correctness/timing/published.h"

namespace zyfa::sim_test {
namespace {

constexpr unsigned kWarm = 4, kTrips = 24;

Steps many(std::string_view name, unsigned count) { return repeat(micro().steps(name), count); }

// Part `i` of `total` over four sections.
unsigned share(unsigned total, unsigned i) { return total / 4 + (i < total % 4 ? 1 : 0); }

Steps dot_cluster(const ClusterLoop& loop, unsigned i, const Order& order) {
  const Section section = loop.dots.empty()
                              ? Section{many("bf16_32", share(loop.mfmas, i)), many("add", share(loop.plain, i)),
                                        many("exp", share(loop.trans, i))}
                              : loop.dots[i];
  return order(section) + micro().steps("barrier");
}

Steps memory_cluster(const ClusterLoop& loop, unsigned i, const Order& order) {
  return many(loop.nop_name, share(loop.nops, i)) +
         order({many("read_tr16", share(loop.transposed, i)), many("read128", share(loop.wide, i)),
                many("load_lds", share(loop.loads, i))}) +
         micro().steps("wait_vm8 wait_lgkm barrier");
}

// `trips` of `body` in waves 0-3, and in waves 4-7 one barrier behind.
std::vector<Steps> staggered(const Steps& body, unsigned trips) {
  const Steps barrier = micro().steps("barrier");
  std::vector<Steps> waves(4, repeat(body, trips) + barrier);
  waves.resize(8, barrier + repeat(body, trips));
  return waves;
}

// Of trips in the middle.
Steady run_staggered(const Steps& body, const sim::timing::Parameters& parameters) {
  const auto run = [&](unsigned trips) {
    return run_waves(staggered(body, trips), parameters, sim::timing::EventLog::kOff);
  };
  const auto warm = run(kWarm), full = run(kWarm + kTrips);
  Steady steady;
  steady.cycles = static_cast<double>(full.cycles - warm.cycles) / kTrips;
  steady.matrix = 100.0 * static_cast<double>(full.busy.matrix[0] - warm.busy.matrix[0]) / kTrips / steady.cycles;
  for (std::size_t i = 0; i < steady.stalls.size(); ++i) {
    const std::uint64_t all = full.waves[0].stalls[i] + full.waves[4].stalls[i];
    const std::uint64_t before = warm.waves[0].stalls[i] + warm.waves[4].stalls[i];
    steady.stalls[i] = static_cast<double>(all - before) / (2.0 * kTrips);
  }
  return steady;
}

Steps cluster_trip(const ClusterLoop& loop, const Order& order) {
  Steps body;
  for (unsigned i = 0; i < 4; ++i) body = body + dot_cluster(loop, i, order) + memory_cluster(loop, i, order);
  return body + micro().steps("salu salu");
}

}  // namespace

Order random_order(std::uint32_t seed) {
  return [seed](const Section& section) mutable { return shuffle(section, seed++); };
}

Steady run_clusters(const ClusterLoop& loop, const sim::timing::Parameters& parameters, const Order& order) {
  return run_staggered(cluster_trip(loop, order), parameters);
}

Steady run_trip(const Steps& trip, const sim::timing::Parameters& parameters) {
  return run_staggered(trip, parameters);
}

double trip_overlapped(const Steps& trip) {
  const Overlap o = overlap(run_waves(staggered(trip, kWarm + kTrips)));
  return 100.0 * o.both / o.matrix;
}

Steady run_ping_pong(const Section& matrix, const Section& vector, const sim::timing::Parameters& parameters,
                     const Order& order) {
  const Steps barrier = micro().steps("barrier");
  Steady steady = run_staggered(order(matrix) + barrier + order(vector) + barrier, parameters);
  steady.cycles /= 2;
  return steady;
}

}  // namespace zyfa::sim_test
