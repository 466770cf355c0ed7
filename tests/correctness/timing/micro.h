// Micro-kernels for the cycle model: a few named instructions, assembled and decoded, and traces that run them in any
// order. Traces need not follow the program: the model reads only what was executed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/sim/timing/cu_model.h"

namespace zyfa::sim_test {

// Names of the instructions that Micro knows, and steps of them.
class Micro {
 public:
  Micro();
  [[nodiscard]] const sim::Program& program() const { return program_; }
  // One instruction; "name", or "name*3" for three. Several separated by spaces. Fails the test on an unknown name.
  [[nodiscard]] std::vector<sim::timing::Step> steps(std::string_view text) const;
  [[nodiscard]] std::uint32_t op(std::string_view name) const;

 private:
  struct Entry {
    std::uint32_t op = 0, work = 0;
  };
  std::map<std::string, Entry, std::less<>> entries_;
  sim::Program program_;
};
const Micro& micro();

using Steps = std::vector<sim::timing::Step>;
Steps repeat(const Steps& body, unsigned times);
Steps operator+(Steps a, const Steps& b);

// One workgroup; waves i and i + 4 share a SIMD.
sim::timing::CuResult run_waves(const std::vector<Steps>& waves, const sim::timing::Parameters& parameters = {},
                                sim::timing::EventLog events = sim::timing::EventLog::kOn);
// Cycles of one of `times` repetitions of `body` in a lone wave, the first ones left out.
double cycles_per(std::string_view body, const sim::timing::Parameters& parameters = {}, unsigned times = 200);

// Cycles in which SIMD 0 executes an MFMA, and those of them in which it also executes a vector instruction that does
// not take its cycles from the matrix pipe.
struct Overlap {
  double matrix = 0, both = 0;
};
Overlap overlap(const sim::timing::CuResult& result);

}  // namespace zyfa::sim_test
