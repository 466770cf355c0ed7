// The Chrome trace of an execution, against one worked out by hand and against the format.
#include "runtime/sim/picture/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/picture/sample.h"
#include "tests/unit/picture/trace_check.h"

namespace zyfa::sim_test {
namespace {

using namespace sim::picture;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json trace_of(const Execution& execution, const TraceOptions& options = {}) {
  const auto text = trace_json(execution, options);
  if (!text) {
    ADD_FAILURE() << to_string(text.error());
    return {};
  }
  return json::parse(*text);
}

struct Slice {
  std::string name;
  std::uint64_t ts = 0, dur = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Slice& s) {
    return out << s.name << " " << s.ts << "+" << s.dur;
  }
};
// Those of the track `track` of the process `process`, by name.
std::vector<Slice> slices(const json& trace, const std::string& process, const std::string& track) {
  json pid, tid;
  for (const json& e : trace.at("traceEvents"))
    if (e["name"] == "process_name" && e["args"]["name"] == process) pid = e["pid"];
  for (const json& e : trace["traceEvents"])
    if (e["name"] == "thread_name" && e["pid"] == pid && e["args"]["name"] == track) tid = e["tid"];
  std::vector<Slice> all;
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == "X" && e["pid"] == pid && e["tid"] == tid) all.push_back({e["name"], e["ts"], e["dur"]});
  return all;
}

TEST(Trace, OfTheSampleIsValid) {
  EXPECT_THAT(trace_faults(trace_of(sample_execution())), IsEmpty());
  EXPECT_THAT(trace_faults(trace_of(sample_execution(), {.window = Window{0, 300}})), IsEmpty());
}

TEST(Trace, HasTheUnitsOfEachSimd) {
  const json trace = trace_of(sample_execution());
  EXPECT_THAT(slices(trace, "SIMD 0", "matrix pipe"),
              ElementsAre(Slice{"qk", 100, 32}, Slice{"qk", 132, 32}, Slice{"qk", 186, 32}));
  EXPECT_THAT(slices(trace, "SIMD 0", "VALU"),
              ElementsAre(Slice{"max", 104, 4}, Slice{"exp", 108, 8}, Slice{"max", 184, 4}));
  EXPECT_THAT(slices(trace, "SIMD 1", "matrix pipe"), ElementsAre(Slice{"qk", 140, 32}));
  EXPECT_THAT(slices(trace, "compute unit: issued until the result is there", "LDS"),
              ElementsAre(Slice{"read k", 118, 52}));
}

TEST(Trace, HasWavesWithTheirStagesAndWaits) {
  EXPECT_THAT(slices(trace_of(sample_execution()), "SIMD 0", "wave 0"),
              ElementsAre(Slice{"qk", 100, 36}, Slice{"v_mfma_f32_32x32x64_f8f6f4", 100, 4},
                          Slice{"wait: matrix busy", 104, 28}, Slice{"v_mfma_f32_32x32x64_f8f6f4", 132, 4},
                          Slice{"barrier", 136, 48}, Slice{"wait: barrier", 136, 48}, Slice{"max", 184, 4},
                          Slice{"v_max_f32_e32", 184, 4}));
}

TEST(Trace, TellsInstructionCommentAndStall) {
  const json trace = trace_of(sample_execution());
  for (const json& e : trace["traceEvents"]) {
    if (e["name"] != "qk" || e.value("ts", 0) != 132 || e["args"].empty()) continue;
    EXPECT_EQ(e["cat"], "qk");
    EXPECT_EQ(e["args"],
              json::parse(R"({"instruction": "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15]",
      "offset": 0, "unit": "MFMA", "stage": "qk", "comment": "S += Q.K", "wave": 0, "issue": 132, "unit_start": 132,
      "end": 164, "stalled": 28, "stall": "matrix busy"})"));
    return;
  }
  FAIL() << "no such slice";
}

TEST(Trace, SaysThatItIsPredicted) {
  const json other = trace_of(sample_execution())["otherData"];
  EXPECT_EQ(other["kind"], "predicted by the zyfa cycle model");
  EXPECT_EQ(other["kernel"], "sample_kernel");
  EXPECT_EQ(other["window"], "100:200");
  EXPECT_EQ(other["cycles a trip"], "100");
  EXPECT_THAT(other["time"].get<std::string>(), HasSubstr("one cycle"));
}

TEST(Trace, PutsWhatIsInFlightAtOnceOnTracksOfItsOwn) {
  Execution e = sample_execution();
  e.spans.insert(e.spans.begin() + 7, {.wave = 2, .instruction = 3, .issue = 144, .start = 150, .end = 210});
  const json trace = trace_of(e);
  EXPECT_THAT(trace_faults(trace), IsEmpty());
  const std::string unit = "compute unit: issued until the result is there";
  EXPECT_THAT(slices(trace, unit, "LDS, slot 1 of 2"), ElementsAre(Slice{"read k", 118, 52}));
  EXPECT_THAT(slices(trace, unit, "LDS, slot 2 of 2"), ElementsAre(Slice{"read k", 150, 60}));
}

TEST(Trace, SurvivesHostileNames) {
  const json trace = trace_of(hostile_execution());
  EXPECT_THAT(trace_faults(trace), IsEmpty());
  const std::string kernel = trace["otherData"]["kernel"];
  EXPECT_THAT(kernel, HasSubstr("<script>console.error('&\"x\"')"));
  EXPECT_THAT(kernel, HasSubstr("\x01\xEF\xBF\xBD\\"));
}

TEST(Trace, RefusesWhatDoesNotFit) {
  const auto many = trace_json(sample_execution(), {.most_spans = 10});
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(many.error().message, HasSubstr("11 instructions issue in the window 100:200; a trace holds at most 10"));
  Execution e = sample_execution();
  e.loop.reset();  // nobody asked for so much: the first of it
  const json first = json::parse(trace_json(e, {.most_spans = 5}).value());
  EXPECT_EQ(first["otherData"]["window"], "0:" + std::to_string(e.spans[5].issue));
  EXPECT_THAT(trace_faults(first), IsEmpty());
  EXPECT_FALSE(trace_json(e, {.window = Window{0, 300}, .most_spans = 5}));
  e.spans[0].wave = 9;
  EXPECT_FALSE(trace_json(e));
  EXPECT_FALSE(trace_json(sample_execution(), {.window = Window{0, 50}}));
}

// The checker sees each of these.
TEST(TraceCheck, FindsPlantedFaults) {
  const json good = trace_of(sample_execution());
  std::size_t first = 0;  // slice of a unit
  while (good["traceEvents"][first]["ph"] != "X") ++first;
  const auto faults = [&](auto&& spoil) {
    json trace = good;
    spoil(trace);
    return testing::PrintToString(trace_faults(trace));
  };
  const auto event = [&](auto&& spoil) { return faults([&](json& trace) { spoil(trace["traceEvents"][first]); }); };
  EXPECT_THAT(faults([](json& t) { t.erase("traceEvents"); }), HasSubstr("traceEvents"));
  EXPECT_THAT(faults([](json& t) { t["displayTimeUnit"] = "us"; }), HasSubstr("displayTimeUnit"));
  EXPECT_THAT(event([](json& e) { e["ts"] = 100.5; }), HasSubstr("whole ts"));
  EXPECT_THAT(event([](json& e) { e["dur"] = -1; }), HasSubstr("whole ts"));
  EXPECT_THAT(event([](json& e) { e.erase("pid"); }), HasSubstr("without name"));
  EXPECT_THAT(event([](json& e) { e["ph"] = "Q"; }), HasSubstr("neither X nor M"));
  EXPECT_THAT(event([](json& e) { e["cname"] = "pink"; }), HasSubstr("not reserved"));
  EXPECT_THAT(event([](json& e) { e["tid"] = 77U; }), HasSubstr("has no name"));
  EXPECT_THAT(event([](json& e) { e["pid"] = 77U; }), HasSubstr("process 77 has no name"));
  EXPECT_THAT(event([](json& e) { e["ts"] = 150U; }), HasSubstr("before the one ahead"));
  EXPECT_THAT(event([](json& e) { e["dur"] = 10U; }), HasSubstr("overlaps another in part"));
  EXPECT_THAT(faults([&](json& t) { t["traceEvents"][first + 1]["args"].erase("wave"); }), HasSubstr("lack one"));
}

}  // namespace
}  // namespace zyfa::sim_test
