// The calibration table of docs/performance-model.md is what the model answers, and the targets that it is trusted for
// hold.
#include "tests/correctness/timing/calibration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace zyfa::sim_test {
namespace {

const std::vector<Answer>& answers() {
  static const std::vector<Answer> kAnswers = calibration();
  return kAnswers;
}

bool holds(const Answer& a) { return std::abs(a.value - a.published) <= a.tolerance; }

std::string row(const Answer& a) {
  const bool judged = a.tolerance > 0;
  return fmt::format("| {} | {:.1f} | {} | {:.1f} | {:+.1f} | {} | {} | {} |\n", a.target, a.published,
                     judged ? fmt::format("{:.1f}", a.tolerance) : "-", a.value, a.value - a.published,
                     a.low == a.high ? "-" : fmt::format("{:.1f} to {:.1f}", a.low, a.high),
                     !judged    ? "reported"
                     : holds(a) ? "holds"
                                : "**does not hold**",
                     a.basis == Basis::kHeldOut ? "held out" : "same source");
}

TEST(Calibration, DocumentSaysWhatTheModelAnswers) {
  std::ifstream file(ZYFA_SOURCE_DIR "/docs/performance-model.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const std::string begin = "<!-- calibration -->\n", end = "<!-- end of calibration -->";
  const std::size_t from = document.find(begin), to = document.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  std::string want =
      "| target | published | tolerance | model | error | 100 random orders | verdict | basis |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Answer& a : answers()) want += row(a);
  EXPECT_EQ(document.substr(from + begin.size(), to - from - begin.size()), want) << "the section is to be:\n" << want;
}

// Those whose stream is faithful, or whose structure is published.
TEST(Calibration, TargetsThatMustHold) {
  unsigned judged = 0;
  for (const Answer& a : answers()) {
    for (const char* name : {"T4 ", "T5 busy", "T8 ", "T9 ", "T10 ", "T11 ", "T13 ", "T22 scalar",
                             "T22 packed, overlapped", "T22 packed together, overlapped", "T24 "}) {
      if (!a.target.starts_with(name)) continue;
      EXPECT_TRUE(holds(a)) << a.target << ": " << a.value << " against " << a.published;
      ++judged;
    }
  }
  EXPECT_EQ(judged, 16u);
}

}  // namespace
}  // namespace zyfa::sim_test
