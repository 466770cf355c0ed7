// tools/lint must not pass when it looked at nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/correctness/tools/command.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TEST(Lint, TidyOfNothingFails) {
  Session session;
  put_file(session / "compile_commands.json", R"([{"file": "/elsewhere/tools/main.cpp"}])");
  session.environment["BUILD_DIR"] = session / "";
  const Result all = session.command(ZYFA_SOURCE_DIR "/tools/lint", {"tidy"});
  EXPECT_EQ(all.exit_code, 1);
  EXPECT_THAT(all.err, HasSubstr("nothing was checked"));
  EXPECT_THAT(all.err, HasSubstr("configure here"));
}

}  // namespace
}  // namespace zyfa::tools
