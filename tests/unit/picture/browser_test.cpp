// The page in headless Chromium. Screenshots stay in screenshots/ of the build tree, to look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/sim/picture/loop_html.h"
#include "tests/unit/picture/browser.h"
#include "tests/unit/picture/sample.h"

namespace zyfa::sim_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using tools::testing_support::Result;

using Browser = BrowserTest;

TEST_F(Browser, ShowsTheLoop) {
  const Image image = screenshot("loop", sim::picture::loop_html(sample_execution()).value());
  EXPECT_EQ(image.width, kWidth);
  EXPECT_EQ(image.height, kHeight);
  auto colours = image.colours();
  EXPECT_GT(colours[0xffffff], image.pixels.size() / 3);  // light background
  // 78 of 100 cycles of 1,380 pixels, 40 high in the pipe's row and 18 in the waves': 62,400 less the white borders.
  EXPECT_GT(colours[0x4e79a7], 58000U);
  EXPECT_LT(colours[0x4e79a7], 63000U);
  EXPECT_GT(colours[0xe5484d], 1000U);  // the gap's hatching: 22 cycles, 40 high, less than half, and behind its text
  EXPECT_GT(colours[0xf28e2b], 1000U);  // v_max, 8 cycles, 20 high
}

TEST_F(Browser, FindsTheElementsAndLogsNothing) {
  const Result result = dom(sim::picture::loop_html(sample_execution()).value());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr(kConsole)));
  for (const char* element : {"<svg id=\"chart\"", "<rect class=\"block\"", "<rect class=\"idle\"",
                              "<table id=\"causes\"", "<table id=\"gaps\"", "class=\"badge\">predicted, not measured"})
    EXPECT_THAT(result.out, HasSubstr(element));
}

TEST_F(Browser, SeesNoElementInHostileNames) {
  const Result result = dom(sim::picture::loop_html(hostile_execution()).value());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr(kConsole)));
  EXPECT_THAT(result.out, Not(HasSubstr("<script")));
  EXPECT_THAT(result.out, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(result.out, HasSubstr("<table id=\"causes\""));
}

// What the tests above look for is there when a page is blank or complains.
TEST_F(Browser, PlantedFaultsAreSeen) {
  EXPECT_EQ(screenshot("blank", "<!DOCTYPE html><title>blank</title>").colours().size(), 1U);
  const Result result = dom("<!DOCTYPE html><script>console.error('planted')</script>");
  EXPECT_THAT(result.err, HasSubstr(kConsole));
  EXPECT_THAT(result.err, HasSubstr("planted"));
}

}  // namespace
}  // namespace zyfa::sim_test
