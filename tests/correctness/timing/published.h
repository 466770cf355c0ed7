// Streams of published kernels from their instruction inventories (docs/performance-model.md, synthetic streams).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/correctness/timing/micro.h"
#include "tests/correctness/timing/weave.h"

namespace zyfa::sim_test {

// Classes of a section, in listed order.
using Section = std::vector<Steps>;
// Orders the classes of a section: weave(), or one of the random orders.
using Order = std::function<Steps(const Section&)>;
Order random_order(std::uint32_t seed);

// A loop of dot and memory clusters; counts of a trip and wave.
struct ClusterLoop {
  unsigned mfmas = 64, plain = 0, trans = 0;
  unsigned transposed = 0, wide = 0, loads = 0;  // LDS reads, buffer loads
  unsigned nops = 0;                             // s_nop
  std::string nop_name = "nop1";
  std::vector<Section> dots;  // replaces mfmas, plain and trans when not empty: four clusters
};

struct Steady {
  double cycles = 0;                                  // a trip, both waves
  double matrix = 0;                                  // busy share of SIMD 0, percent
  std::array<double, sim::timing::kStalls> stalls{};  // cycles a wave and trip
};

Steady run_clusters(const ClusterLoop& loop, const sim::timing::Parameters& parameters = {},
                    const Order& order = weave);
// A trip that waves 4-7 run one barrier behind waves 0-3.
Steady run_trip(const Steps& trip, const sim::timing::Parameters& parameters = {});
// Its cycles with MFMA and vector instructions, percent of those with MFMA.
double trip_overlapped(const Steps& trip);
// A phase of ping-pong: one wave's matrix section against another's vector section.
Steady run_ping_pong(const Section& matrix, const Section& vector, const sim::timing::Parameters& parameters = {},
                     const Order& order = weave);

}  // namespace zyfa::sim_test
