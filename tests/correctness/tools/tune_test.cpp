// zyfa-jit tune: what it finds runs and is no slower by the model, its log goes on, bad requests are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "tests/correctness/tools/command.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> request(std::vector<std::string> more) {
  std::vector<std::string> arguments{"tune", "--problem", "fp8e4m3,d=128,causal", "--tokens", "512", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Tune, FindsAPlacementThatRunsAndIsNoSlower) {
  const Session session;
  const Result result = session.zyfa_jit(request({"--trials", "40", "--log", session / "log"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = result.json();
  EXPECT_EQ(json["trials"], 40);
  EXPECT_LE(json["best"]["cycles"], json["start"]["cycles"]);
  EXPECT_GT(json["best"]["cycles"], 512 / 128 * 1024 / 2);  // a SIMD's matrix cycles for one of its waves' queries
  EXPECT_EQ(json["best"]["why"], "");
  EXPECT_GT(json["best"]["toggles"], 0);
  const std::vector<std::string> log = lines_of(session / "log");
  ASSERT_EQ(log.size(), 41U);
  double best = json["start"]["cycles"];
  for (std::size_t i = 1; i < log.size(); ++i) {
    const auto trial = nlohmann::json::parse(log[i]);
    EXPECT_EQ(trial["number"], i);
    EXPECT_NE(trial["cycles"].is_null(), trial["why"] == "") << log[i];
    if (trial["best"] == true) {
      EXPECT_LE(trial["cycles"], best);
      best = trial["cycles"];
    }
  }
  EXPECT_EQ(best, json["best"]["cycles"]);
  // Its text form is what other commands take.
  const Result explained = session.zyfa_jit(
      {"explain", "--problem", "fp8e4m3,d=128,causal", "--placement", json["best"]["placement"].get<std::string>()});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
}

TEST(Tune, GoesOnFromItsLog) {
  const Session session;
  const Result whole = session.zyfa_jit(request({"--trials", "16", "--log", session / "whole"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  // A run that was killed after nine trials and in the middle of a line.
  const std::vector<std::string> lines = lines_of(session / "whole");
  std::string cut;
  for (std::size_t i = 0; i < 10; ++i) {
    cut += lines[i] + "\n";
  }
  put_file(session / "cut", cut + lines[10].substr(0, 20));
  const Result rest = session.zyfa_jit(request({"--trials", "16", "--log", session / "cut"}));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.json()["from_log"], 9);
  EXPECT_EQ(rest.json()["best"], whole.json()["best"]);
  EXPECT_EQ(lines_of(session / "cut"), lines);
  const Result again = session.zyfa_jit(request({"--trials", "16", "--log", session / "cut"}));
  EXPECT_EQ(again.json()["from_log"], 16);
  EXPECT_EQ(lines_of(session / "cut"), lines);
}

TEST(Tune, RefusesALogOfAnotherRun) {
  const Session session;
  ASSERT_EQ(session.zyfa_jit(request({"--trials", "1", "--log", session / "log"})).exit_code, 0);
  const Result other = session.zyfa_jit(request({"--trials", "1", "--seed", "2", "--log", session / "log"}));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("is of another run: seed was 1, now it is 2; give another file"));
  put_file(session / "text", "no log\n");
  const Result text = session.zyfa_jit(request({"--trials", "1", "--log", session / "text"}));
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.err, HasSubstr("text line 1: this is no log of zyfa-jit tune"));
  const std::string head = lines_of(session / "log").front();
  put_file(session / "broken", head + "\n{\"placement\": 3}\n");
  const Result broken = session.zyfa_jit(request({"--trials", "1", "--log", session / "broken"}));
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr("broken line 2: this is no trial"));
  const Result folder = session.zyfa_jit(request({"--trials", "1", "--log", session / "no/log"}));
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_THAT(folder.err, HasSubstr("no such folder"));
}

// What is not a log of ours stays as it was.
TEST(Tune, WritesOverNothing) {
  const Session session;
  const auto refused = [&](const std::string& name, const char* says) {
    const Result result = session.zyfa_jit(request({"--trials", "1", "--log", name}));
    EXPECT_EQ(result.exit_code, 1) << name;
    EXPECT_THAT(result.err, HasSubstr(says)) << name;
  };
  put_file(session / "text", "a text without a line end");
  refused(session / "text", "text line 1: this is no log of zyfa-jit tune");
  EXPECT_EQ(get_file(session / "text"), "a text without a line end");
  refused("/dev/full", "/dev/full: not a regular file");
  refused("/dev/zero", "/dev/zero: not a regular file");
  ASSERT_EQ(::mkfifo((session / "pipe").c_str(), 0600), 0);
  refused(session / "pipe", "pipe: not a regular file");
  refused("/tmp", "/tmp is a folder");
  refused("", "a file name is missing");

  put_file(session / "held", "");
  const int held = ::open((session / "held").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  refused(session / "held", "held: another run writes this log");
  ::close(held);
}

TEST(Tune, DropsAHeadThatWasCutOffAndALongTornLine) {
  const Session session;
  ASSERT_EQ(session.zyfa_jit(request({"--trials", "2", "--log", session / "log"})).exit_code, 0);
  const std::string whole = get_file(session / "log");
  put_file(session / "head", whole.substr(0, 30));
  ASSERT_EQ(session.zyfa_jit(request({"--trials", "2", "--log", session / "head"})).exit_code, 0);
  EXPECT_EQ(get_file(session / "head"), whole);
  put_file(session / "torn", whole + "{\"number\":3,\"change\":\"" + std::string(5000, 'x'));
  ASSERT_EQ(session.zyfa_jit(request({"--trials", "2", "--log", session / "torn"})).exit_code, 0);
  EXPECT_EQ(get_file(session / "torn"), whole);
}

// So that the request, put right, may have the same log.
TEST(Tune, ARefusedRequestLeavesNothingInItsLog) {
  const Session session;
  const Result bad = session.zyfa_jit(request({"--trials", "1", "--start", "bogus", "--log", session / "log"}));
  EXPECT_EQ(bad.exit_code, 1);
  const Result good = session.zyfa_jit(request({"--trials", "1", "--log", session / "log"}));
  EXPECT_EQ(good.exit_code, 0) << good.err;
}

TEST(Tune, StartsFromAFile) {
  const Session session;
  const Result row = session.zyfa_jit(request({"--trials", "1"}));
  put_file(session / "start", row.json()["start"]["placement"].get<std::string>());
  const Result file = session.zyfa_jit(request({"--trials", "1", "--start", "@" + (session / "start").string()}));
  ASSERT_EQ(file.exit_code, 0) << file.err;
  EXPECT_EQ(file.json()["start"], row.json()["start"]);
}

struct Bad {
  std::vector<std::string> arguments;
  const char* says;
  int exit_code = 1;
};

class TuneErrors : public testing::TestWithParam<Bad> {};

TEST_P(TuneErrors, AreTold) {
  const Session session;
  std::vector<std::string> arguments{"tune"};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const Result result = session.zyfa_jit(arguments);
  EXPECT_EQ(result.exit_code, GetParam().exit_code) << result.out;
  EXPECT_THAT(result.err, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Requests, TuneErrors,
    testing::Values(Bad{{"--problem", "bf16,d=64"}, "d=64", 2},
                    Bad{{"--problem", "bf16,d=128", "--tokens", "0"}, "tokens is 0; allowed are 1 to 131072"},
                    Bad{{"--problem", "bf16,d=128", "--trials", "0"}, "trials is 0; at least 1 is needed"},
                    Bad{{"--problem", "bf16,d=128", "--trials", "-1"}, "Value -1 not in range"},
                    Bad{{"--problem", "bf16,d=128", "--seed", "-1"}, "Value -1 not in range"},
                    Bad{{"--problem", "bf16,d=128", "--start", "bogus"}, "bogus"},
                    Bad{{"--problem", "bf16,d=128", "--start", "@/no/file"}, "/no/file: cannot open"},
                    Bad{{"--problem", "bf16,d=128", "--tokens", "64", "--start",
                         "name=p;waves=4;groups=1;loop=load_k,load_v,read_k,qk,mask,max,rescale,exp,read_v,pv"},
                        "too early"},
                    Bad{{"--problem", "bf16,d=128", "--tokens", "64", "--set", "bogus=1"}, "bogus"},
                    Bad{{"--problem", "bf16,d=128", "--tokens", "64", "--set", "trans_cycles=99"}, "99"}));

}  // namespace
}  // namespace zyfa::tools
