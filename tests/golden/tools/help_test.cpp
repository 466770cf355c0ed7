// The help texts. After a wanted change, run this test with ZYFA_UPDATE_GOLDEN=1 and read the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tests/correctness/tools/command.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;

constexpr const char* kCommands[] = {"run",     "accuracy", "prewarm", "list", "dump",
                                     "explain", "simulate", "profile", "tune", "verify"};

class Help : public testing::TestWithParam<std::string> {};

TEST_P(Help, IsAsRecorded) {
  const std::string& command = GetParam();
  const Session session;
  const Result result = session.zyfa_jit(command.empty() ? std::vector<std::string>{"--help"}
                                                         : std::vector<std::string>{command, "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const std::string file = ZYFA_SOURCE_DIR "/tests/golden/tools/help" + (command.empty() ? "" : "_" + command) + ".txt";
  if (std::getenv("ZYFA_UPDATE_GOLDEN") != nullptr) {
    put_file(file, result.out);
  }
  EXPECT_EQ(result.out, get_file(file));
}

TEST_P(Help, TeachesWithAnExampleAndFitsTheScreen) {
  const std::string& command = GetParam();
  const Session session;
  const Result result = session.zyfa_jit(command.empty() ? std::vector<std::string>{"--help"}
                                                         : std::vector<std::string>{command, "--help"});
  EXPECT_THAT(result.out, testing::HasSubstr("\n  zyfa-jit " + (command.empty() ? "run" : command)));
  if (!command.empty()) {
    EXPECT_THAT(result.out, testing::HasSubstr("Exit codes: 0 success; 1 error"));
    EXPECT_THAT(result.out, testing::HasSubstr("--json"));
  }
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 120U) << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, Help,
                         testing::Values("", "run", "accuracy", "prewarm", "list", "dump", "explain", "simulate",
                                         "profile", "tune", "verify"));

TEST(HelpOverview, ListsEveryCommand) {
  const Session session;
  const Result result = session.zyfa_jit({"--help"});
  for (const char* command : kCommands) {
    EXPECT_THAT(result.out, testing::HasSubstr("\n  " + std::string(command) + " "));
  }
}

}  // namespace
}  // namespace zyfa::tools
