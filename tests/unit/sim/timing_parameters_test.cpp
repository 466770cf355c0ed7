// Parameters of the cycle model: the list, its document, and setting one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "runtime/sim/timing/parameters.h"

namespace zyfa::sim::timing {
namespace {

TEST(TimingParameters, TableHoldsEveryFieldOnce) {
  std::set<std::string_view> names;
  for (const ParameterInfo& p : parameter_table()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_EQ(Parameters{}.*p.member, p.initial) << p.name;
    EXPECT_LE(p.low, p.initial) << p.name;
    EXPECT_GE(p.high, p.initial) << p.name;
    EXPECT_LT(p.low, p.high) << p.name;
  }
  EXPECT_EQ(names.size() * sizeof(std::uint32_t), sizeof(Parameters));
}

TEST(TimingParameters, DocumentListsThem) {
  std::ifstream file(ZYFA_SOURCE_DIR "/docs/performance-model.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str(), begin = "<!-- parameters -->\n";
  const std::size_t from = document.find(begin), to = document.find("<!-- end of parameters -->");
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  std::string want =
      "| parameter | default | range | evidence | unit | source | meaning |\n|---|---|---|---|---|---|---|\n";
  for (const ParameterInfo& p : parameter_table()) {
    want += fmt::format("| `{}` | {} | {} to {} | {} | {} | {} | {} |\n", p.name, p.initial, p.low, p.high,
                        p.evidence == Evidence::kOpen ? "open" : "settled", p.unit, p.source, p.meaning);
  }
  EXPECT_EQ(document.substr(from + begin.size(), to - from - begin.size()), want) << "the section is to be:\n" << want;
}

TEST(TimingParameters, SetByName) {
  const auto set = with_parameter({}, "trans_cycles", 16);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(*set, gfx942_parameters());
  const auto text = with_parameter_text(*set, "barrier_cycles=40");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->barrier_cycles, 40u);
  EXPECT_EQ(text->trans_cycles, 16u);
}

TEST(TimingParameters, RefusesOthers) {
  const auto refused = [](std::string_view text, std::string_view says) {
    const auto set = with_parameter_text({}, text);
    ASSERT_FALSE(set.has_value()) << text;
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(to_string(set.error()).find(says), std::string::npos) << to_string(set.error());
  };
  refused("trans_cycles=3", "trans_cycles is 3; allowed are whole numbers from 4 to 16 (cycles)");
  refused("trans_cycles=17", "17");
  refused("trans_cycles=8.5", "8.5");
  refused("trans_cycles=nan", "nan");
  refused("trans_cycles=-8", "-8");
  refused("trans_cycles=8x", "\"trans_cycles=8x\" sets no timing parameter; allowed is name=number");
  refused("trans_cycles=", "name=number");
  refused("trans_cycles", "name=number");
  refused("", "name=number");
  refused("warp=8", "\"warp\" is no timing parameter");
  refused("warp=8", "hold_other_wave, ");
}

}  // namespace
}  // namespace zyfa::sim::timing
