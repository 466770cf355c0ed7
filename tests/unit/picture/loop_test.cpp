// The pictures of a loop against ones worked out by hand (sample.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <regex>

#include "runtime/sim/picture/html_text.h"
#include "runtime/sim/picture/loop_html.h"
#include "runtime/sim/picture/loop_text.h"
#include "runtime/sim/picture/loop_view.h"
#include "tests/unit/picture/sample.h"

namespace zyfa::sim_test {
namespace {

using namespace sim::picture;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<Window> times(const std::vector<Block>& blocks) {
  std::vector<Window> all;
  for (const Block& b : blocks) all.push_back({b.begin, b.end});
  return all;
}

TEST(LoopView, OfTheSample) {
  const LoopView view = view_loop(sample_execution(), {}).value();
  EXPECT_EQ(view.window, (Window{100, 200}));
  EXPECT_EQ(view.simd, 0U);
  EXPECT_THAT(times(view.pipe), ElementsAre(Window{100, 132}, Window{132, 164}, Window{186, 200}));
  EXPECT_EQ(view.matrix, 78U);
  EXPECT_EQ(view.idle, 22U);
  EXPECT_EQ(view.vector, 16U);
  EXPECT_EQ(view.trans, 8U);
  EXPECT_THAT(view.stages, ElementsAre("qk", "max", "exp", "read k"));
  ASSERT_EQ(view.waves.size(), 2U);
  EXPECT_EQ(view.waves[0].name, "wave 0");
  EXPECT_EQ(view.waves[1].name, "wave 4");
  EXPECT_THAT(times(view.waves[0].barriers), ElementsAre(Window{136, 184}));
  EXPECT_THAT(times(view.waves[1].vector), ElementsAre(Window{104, 108}, Window{108, 116}));
  EXPECT_THAT(times(view.waves[1].lds), ElementsAre(Window{116, 120}));
}

TEST(LoopView, SaysWhatTheWavesDoWhileThePipeIdles) {
  const LoopView view = view_loop(sample_execution(), {}).value();
  ASSERT_EQ(view.gaps.size(), 1U);
  EXPECT_EQ(view.gaps[0].begin, 164U);
  EXPECT_EQ(view.gaps[0].end, 186U);
  EXPECT_THAT(view.gaps[0].doing, ElementsAre("waits: barrier", "waits: barrier"));
  ASSERT_EQ(view.causes.size(), 4U);
  EXPECT_EQ(view.causes[0].cycles, 12U);
  EXPECT_THAT(view.causes[0].doing, ElementsAre("waits: barrier", "waits: barrier"));
  EXPECT_EQ(view.causes[1].cycles, 6U);
  EXPECT_THAT(view.causes[1].doing, ElementsAre("waits: barrier", "waits: lds wait"));
  std::uint64_t two = 0;
  for (const Cause& cause : view.causes) two += cause.cycles == 2;
  EXPECT_EQ(two, 2U);  // both begin after the barrier; wave 4 executes its s_waitcnt
}

// No MFMA executes from 120 to 132, and still wave 0 finds the pipe busy.
TEST(LoopView, SaysWhenPackedArithmeticTakesThePipe) {
  Execution e = sample_execution();
  e.spans[0].end = 120;
  const LoopView view = view_loop(e, {}).value();
  ASSERT_EQ(view.gaps.size(), 2U);
  EXPECT_EQ(view.gaps[0].begin, 120U);
  EXPECT_THAT(view.gaps[0].doing, ElementsAre("waits: pipe taken by packed VALU", "waits: lds wait"));
  // Its wait's name changes where the MFMA ends.
  const std::vector<State>& states = view.waves[0].states;
  const auto taken = std::find_if(states.begin(), states.end(),
                                  [](const State& s) { return s.reason == "pipe taken by packed VALU"; });
  ASSERT_NE(taken, states.end());
  EXPECT_EQ(taken->begin, 120U);
  EXPECT_EQ(taken->end, 132U);
  ASSERT_NE(taken, states.begin());
  EXPECT_EQ(std::prev(taken)->begin, 104U);
  EXPECT_EQ(std::prev(taken)->end, 120U);
  EXPECT_EQ(std::prev(taken)->reason, "matrix busy");
}

TEST(LoopView, CountsFurtherWavesOfTheSimd) {
  Execution e = sample_execution();
  e.waves[2].simd = 0;  // its MFMA, 140 to 172, overlaps the second
  const LoopView view = view_loop(e, {}).value();
  EXPECT_EQ(view.waves.size(), 2U);
  EXPECT_EQ(view.other_waves, 1U);
  EXPECT_EQ(view.idle, 14U);
}

TEST(LoopView, TakesTheBusiestSimd) {
  Execution e = sample_execution();
  const LoopView view = view_loop(e, Window{140, 170}).value();  // SIMD 0 24 cycles, SIMD 1 all 30
  EXPECT_EQ(view.simd, 1U);
  EXPECT_EQ(view.waves.size(), 1U);
  EXPECT_EQ(view.idle, 0U);
  EXPECT_TRUE(view.causes.empty());
}

TEST(LoopView, FoldsTheStagesOfCopies) {
  Execution e = sample_execution();
  e.instructions[1].stage = "qk@2#1";
  EXPECT_THAT(view_loop(e, {}).value().stages, ElementsAre("qk", "exp", "read k"));
}

TEST(LoopText, OfTheSample) {
  EXPECT_EQ(loop_text(sample_execution(), {.columns = 25}).value(),
            R"(sample_kernel: predicted, cycles 100 to 200 (100 cycles), SIMD 0
busy here: matrix pipe 78.0%, VALU 16.0%, of it TRANS 8.0%
cycles a trip: 100

cycle         0         40        80   
wave 0        MmmmmmmmM||||||||||||v   
matrix pipe   AAAAAAAAAAAAAAAA-----BBBB
wave 4         vttLwwwwwwwwwwwws|||MMMM

waves:  M MFMA  v VALU  t TRANS  L LDS  G vector memory  s scalar, internal  | barrier  m waits for the matrix pipe  w waits for memory  . waits for its turn or a port
matrix pipe:  A wave 0  B wave 4  - idle
one column: 4 cycles, what takes most of them

The matrix pipe idles 22 of 100 cycles (22.0%), while
      12 cycles: wave 0 waits: barrier; wave 4 waits: barrier
       6 cycles: wave 0 waits: barrier; wave 4 waits: lds wait
       2 cycles: wave 0 runs VALU, max; wave 4 runs MFMA, qk
       2 cycles: wave 0 waits: barrier; wave 4 runs internal
)");
}

TEST(LoopText, MakesRoomForNames) {
  Execution e = sample_execution();
  e.waves[1].index = 0;
  const std::string text = loop_text(e, {.columns = 25}).value();
  EXPECT_THAT(text, HasSubstr("\nwave 0          MmmmmmmmM"));
  EXPECT_THAT(text, HasSubstr("\nwave 0, copy 2   vttL"));
}

TEST(LoopText, FitsTheColumnsAskedFor) {
  const std::string text = loop_text(sample_execution(), {.columns = 24}).value();
  EXPECT_THAT(text, HasSubstr("one column: 8 cycles"));
  for (const std::size_t columns : {19U, 1001U}) {
    const auto refused = loop_text(sample_execution(), {.columns = columns});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("allowed are 20 to 1000"));
  }
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(LoopHtml, OfTheSample) {
  const std::string page = loop_html(sample_execution()).value();
  // 3 MFMAs in the waves' rows and in the pipe's, 3 vector instructions, 1 LDS read.
  EXPECT_EQ(count(page, "class=\"block\""), 10U);
  EXPECT_EQ(count(page, "class=\"idle\""), 1U);
  EXPECT_EQ(count(page, "class=\"barrier\""), 2U);
  EXPECT_EQ(count(page, "class=\"waiting\""), 4U);
  EXPECT_THAT(page, HasSubstr("predicted, not measured"));
  EXPECT_THAT(page, HasSubstr("<b>22.0%</b><span>matrix pipe idle</span>"));
  EXPECT_THAT(page, HasSubstr("idles 22 of 100 cycles. In 12 of these, wave 0 <b>waits: barrier</b>, while wave 4 "
                              "<b>waits: barrier</b>"));
  EXPECT_THAT(page, HasSubstr("S += Q.K\nstage qk\nwave 0, MFMA\nissues at cycle 32, unit 32 to 64\nwaited 28 cycles: "
                              "matrix busy</title>"));
}

// The drawing is 1,540 wide; a gap at its right edge is numbered inside.
TEST(LoopHtml, NumbersStayInTheDrawing) {
  Execution e = sample_execution();
  e.loop = {100, 186};
  e.spans[4].end = 178;  // idle from 178 to 186
  const std::string page = loop_html(e).value();
  std::smatch found;
  ASSERT_TRUE(std::regex_search(page, found, std::regex("<circle cx=\"([0-9.]+)\"")));
  EXPECT_LE(std::stod(found[1]), 1450);
}

TEST(LoopHtml, NeedsNothingFromOutside) {
  const std::string page = loop_html(sample_execution()).value();
  for (const char* outside : {"http:", "https:", "//", "<script", "@import", "<link rel=\"stylesheet\""})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

TEST(LoopHtml, IsWellFormed) {
  for (const Execution& e : {sample_execution(), hostile_execution()}) {
    const std::string page = loop_html(e).value();
    std::vector<std::string> open;
    const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
    for (std::sregex_iterator i(page.begin(), page.end(), tag), end; i != end; ++i) {
      const std::string name = (*i)[2];
      if ((*i)[3] == "/" || name == "meta" || name == "link") continue;
      if ((*i)[1] != "/") {
        open.push_back(name);
        continue;
      }
      ASSERT_FALSE(open.empty()) << name;
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    }
    EXPECT_THAT(open, testing::IsEmpty());
  }
}

TEST(LoopHtml, EscapesHostileNames) {
  const std::string page = loop_html(hostile_execution()).value();
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("'&\"x\"'")));
  EXPECT_THAT(page, HasSubstr("&lt;/title&gt;&lt;/svg&gt;&lt;script&gt;console.error(&#39;&amp;&quot;x&quot;&#39;)"));
  EXPECT_EQ(html_text("a<b>&\"'\x01\x7f\n"), "a&lt;b&gt;&amp;&quot;&#39;\xEF\xBF\xBD\xEF\xBF\xBD\n");
}

TEST(LoopHtml, RefusesWhatTheViewRefuses) {
  EXPECT_FALSE(loop_html(sample_execution(), Window{0, 50}));
  Execution longer = sample_execution();
  longer.cycles = 60000;
  EXPECT_TRUE(loop_html(longer, Window{0, 50000}));
  const auto wide = loop_html(longer, Window{0, 50001});
  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().message, HasSubstr("50001 cycles 0:50001; it shows at most 50000"));
  longer.loop.reset();  // nobody asked for so much: the first of it
  EXPECT_THAT(loop_html(longer).value(), HasSubstr(">Cycles 0 to 50000 of a run of 60000,"));
  Execution e = sample_execution();
  e.spans[0].instruction = 99;
  EXPECT_FALSE(loop_html(e));
  EXPECT_FALSE(loop_text(e));
}

}  // namespace
}  // namespace zyfa::sim_test
