#include "tests/correctness/timing/weave.h"

#include <algorithm>
#include <random>

namespace zyfa::sim_test {

Steps weave(const std::vector<Steps>& classes) {
  struct Place {
    double at;
    sim::timing::Step step;
  };
  std::vector<Place> places;
  for (const Steps& steps : classes)
    for (std::size_t k = 0; k < steps.size(); ++k)
      places.push_back({(static_cast<double>(k) + 0.5) / static_cast<double>(steps.size()), steps[k]});
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.at < b.at; });
  Steps all;
  for (const Place& p : places) all.push_back(p.step);
  return all;
}

Steps shuffle(const std::vector<Steps>& classes, std::uint32_t seed) {
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c < classes.size(); ++c) order.insert(order.end(), classes[c].size(), c);
  std::mt19937 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::vector<std::size_t> next(classes.size(), 0);
  Steps all;
  for (const std::size_t c : order) all.push_back(classes[c][next[c]++]);
  return all;
}

}  // namespace zyfa::sim_test
