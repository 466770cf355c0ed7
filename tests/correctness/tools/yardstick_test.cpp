// tools/yardstick: that the tables of predicted cycles in docs/performance-model.md are what the current kernels give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/correctness/tools/command.h"
#include "tests/require_tools.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr const char* kDocument = ZYFA_SOURCE_DIR "/docs/performance-model.md";

class Yardstick : public testing::Test {
 protected:
  void SetUp() override {
    if (session_.command("/bin/sh", {"-c", "command -v python3"}).exit_code != 0) {
      ZYFA_SKIP_WITHOUT_TOOL("python3 is not installed");
    }
  }
  Result run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {ZYFA_SOURCE_DIR "/tools/yardstick", "--zyfa-jit", ZYFA_BUILD_DIR "/bin/zyfa-jit"});
    return session_.command("python3", arguments);
  }
  Session session_;
};

TEST_F(Yardstick, TablesAreWhatTheKernelsGive) {
  const Result result = run({"--check"});
  EXPECT_EQ(result.exit_code, 0) << "run tools/yardstick and read the difference\n" << result.out << result.err;
}

TEST_F(Yardstick, AChangedFigureIsFoundAndWrittenAnew) {
  const std::string text = get_file(kDocument);
  const std::string begin = "<!-- table: ablation -->\n";
  const std::size_t at = text.find('\n', text.find(begin) + begin.size() + 1);
  ASSERT_NE(at, std::string::npos);
  std::string changed = text;
  changed.insert(at, "9");
  const std::string file = session_ / "model.md";
  put_file(file, changed);
  const Result found = run({"--check", "--document", file, "--only", "ablation"});
  EXPECT_EQ(found.exit_code, 1);
  EXPECT_THAT(found.out, HasSubstr("table ablation of"));
  EXPECT_EQ(get_file(file), changed);
  EXPECT_EQ(run({"--document", file, "--only", "ablation"}).exit_code, 0);
  EXPECT_EQ(get_file(file), text);
}

TEST_F(Yardstick, LeavesTablesAloneWithoutTheirFolderAndRefusesADocumentWithout) {
  const std::string file = session_ / "model.md", text = get_file(kDocument);
  put_file(file, text);
  const Result none = run({"--document", file, "--only", "peers", "--only", "peer-targets", "--only", "captures"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("all tables were up to date"));
  EXPECT_EQ(get_file(file), text);
  put_file(file, "no tables");
  const Result refused = run({"--document", file});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("has 0 tables named ablation"));
}

}  // namespace
}  // namespace zyfa::tools
