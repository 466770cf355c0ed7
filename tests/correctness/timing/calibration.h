// Every published target that a synthetic stream can answer, as the model answers it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zyfa::sim_test {

enum class Basis : std::uint8_t {
  kHeldOut,    // nothing in the model came from it
  kSameSource  // its source also gave rules or parameters that it exercises
};

struct Answer {
  std::string target;        // "T9 cycles a trip", ...
  double published = 0;      // in the units of `value`
  double tolerance = 0;      // absolute; 0: reported only
  double value = 0;          // even interleave
  double low = 0, high = 0;  // over 100 random orders; both 0 where none were run
  Basis basis = Basis::kHeldOut;
};

std::vector<Answer> calibration();

}  // namespace zyfa::sim_test
