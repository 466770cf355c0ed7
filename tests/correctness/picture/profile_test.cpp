// zyfa-jit profile --html, --trace and --chart on shipped kernels.
#include <regex>

#include "tests/unit/picture/browser.h"
#include "tests/unit/picture/trace_check.h"

namespace zyfa::sim_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using tools::testing_support::get_file;
using tools::testing_support::Result;
using tools::testing_support::Session;

// One workgroup, of the last queries: 8 iterations of 128 keys.
const std::vector<std::string> kProfile = {"profile", "--problem", "fp8e4m3,d=128,causal", "--tokens", "1024",
                                           "--heads", "1",         "--workgroup",          "0,0,0"};

Result profile(const Session& session, std::vector<std::string> more) {
  more.insert(more.begin(), kProfile.begin(), kProfile.end());
  return session.zyfa_jit(std::move(more));
}

json slices(const json& trace) {
  json all = json::array();
  for (const json& e : trace.at("traceEvents"))
    if (e["ph"] == "X" && !e["args"].empty()) all.push_back(e);
  return all;
}

TEST(ProfilePictures, TraceIsValidAndNamesStages) {
  const Session session;
  const Result result = profile(session, {"--trace", session / "loop.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json trace = json::parse(get_file(session / "loop.json"));
  EXPECT_THAT(trace_faults(trace), IsEmpty());
  std::map<std::string, int> stages;
  for (const json& e : slices(trace)) ++stages[e["args"].value("stage", "")];
  for (const char* stage : {"qk_a@", "pv_a", "load_k_a@"}) {  // as placements call them, at any lead
    bool found = false;
    for (const auto& [name, count] : stages) found = found || name.starts_with(stage);
    EXPECT_TRUE(found) << stage;
  }
}

// The loop's picture is about as long as the profile says a trip is, and a window shows what it says.
TEST(ProfilePictures, WindowsAreTheLoopsOrAsAsked) {
  const Session session;
  const Result result = profile(session, {"--json", "--trace", session / "loop.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string window = json::parse(get_file(session / "loop.json"))["otherData"]["window"];
  std::smatch part;
  ASSERT_TRUE(std::regex_match(window, part, std::regex("(\\d+):(\\d+)"))) << window;
  const double cycles = std::stod(part[2]) - std::stod(part[1]);
  const double mean = result.json().at("loop").at("cycles_per_trip");
  EXPECT_NEAR(cycles, mean, 0.3 * mean);

  ASSERT_EQ(profile(session, {"--window", "500:900", "--trace", session / "part.json"}).exit_code, 0);
  const json part_trace = json::parse(get_file(session / "part.json"));
  EXPECT_EQ(part_trace["otherData"]["window"], "500:900");
  for (const json& e : slices(part_trace)) {
    EXPECT_LT(e["ts"], 900);
    EXPECT_GE(e["ts"].get<int>() + e["dur"].get<int>(), 500);
  }
}

TEST(ProfilePictures, ChartFollowsTheText) {
  const Session session;
  const Result text = profile(session, {"--chart"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("\nmatrix pipe "));
  EXPECT_THAT(text.out, HasSubstr("The matrix pipe idles "));
  const Result as_json = profile(session, {"--chart", "--json"});
  EXPECT_THAT(as_json.json().at("chart").get<std::string>(), HasSubstr("\nmatrix pipe "));
}

// What lies behind the run is not drawn, however far the window reaches.
TEST(ProfilePictures, AWindowEndsWithTheRun) {
  const Session session;
  const Result all = profile(session, {"--chart", "--window", "0:18446744073709551615", "--json"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.json().at("chart").get<std::string>(),
              HasSubstr("cycles 0 to " + std::to_string(all.json().at("cycles").get<int>())));
}

TEST(ProfilePictures, ErrorsNameTheValue) {
  const Session session;
  const Result lonely = profile(session, {"--window", "0:10"});
  EXPECT_EQ(lonely.exit_code, 1);
  EXPECT_THAT(lonely.err, HasSubstr("--window is for --html, --trace and --chart"));
  EXPECT_THAT(profile(session, {"--window", "9", "--chart"}).err, HasSubstr("window '9'; allowed is FROM:TO"));
  const Result late = profile(session, {"--window", "100000000:100000001", "--trace", session / "none.json"});
  EXPECT_THAT(late.err, HasSubstr("no instruction issues in the window"));
  EXPECT_FALSE(std::filesystem::exists(session / "none.json"));
  EXPECT_THAT(late.out, HasSubstr("predicted time"));  // the figures are good without a picture
  EXPECT_THAT(profile(session, {"--html", session / "none" / "x.html"}).err, HasSubstr("no such folder"));
  EXPECT_THAT(profile(session, {"--trace", ""}).err, HasSubstr("a file name is missing"));
  EXPECT_THAT(profile(session, {"--html", session / "x", "--trace", session / "x"}).err, HasSubstr("name one file"));
}

using ProfilePage = BrowserTest;

// With packed fp32 arithmetic, whose cycles come out of the matrix pipe: the chosen row leaves it no idle cycle.
TEST_F(ProfilePage, OpensInABrowser) {
  const Result result = profile(session_, {"--placement", "fp8_pingpong_packed", "--html", session_ / "loop.html"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string page = get_file(session_ / "loop.html");
  auto colours = screenshot("fp8_pingpong_packed", page, 1700).colours();
  EXPECT_GT(colours.size(), 20U);
  EXPECT_GT(colours[0xe5484d], 100U);  // somewhere the pipe idles
  const Result shown = dom(page);
  EXPECT_THAT(shown.err, Not(HasSubstr(kConsole)));
  for (const char* element : {"<svg id=\"chart\"", "class=\"block\"", "class=\"idle\"", "class=\"barrier\"",
                              "<table id=\"causes\"", ">qk_a<", ">pv_b<"})
    EXPECT_TRUE(shown.out.find(element) != std::string::npos) << element;
  // The SIMD of the wave that takes longest, and of each ping-pong group the wave that it runs.
  const std::size_t named = shown.out.find("on SIMD ");
  ASSERT_NE(named, std::string::npos);
  const int simd = shown.out[named + 8] - '0';
  for (const int wave : {simd, simd + 4}) {
    EXPECT_TRUE(shown.out.find(">wave " + std::to_string(wave) + "<") != std::string::npos) << wave;
  }
}

}  // namespace
}  // namespace zyfa::sim_test
