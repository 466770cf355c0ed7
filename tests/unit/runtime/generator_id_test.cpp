// tools/cmake/ZyfaGeneratorId.cmake on trees of the test's own: which changes give another id.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

class GeneratorId : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "zyfa-generator-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    top_ = pattern;
    root_ = top_ / "tree";
    write("jit/passes/waits.cpp", "int wait;\n");
    write("jit/isa/opcodes.def", "X(a)\n");
    write("schedules/attention/forward.h", "int forward;\n");
    write("runtime/launch.cpp", "int launch;\n");
  }
  void TearDown() override { fs::remove_all(top_); }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  // The header's text.
  std::string id(const std::string& extra = "llvm;22") const {
    const fs::path header = top_ / "id.h";
    const std::string command = std::string(ZYFA_CMAKE) + " -DROOT=" + root_.string() + " -DOUT=" + header.string() +
                                " '-DEXTRA=" + extra + "' -P " ZYFA_SOURCE_DIR "/tools/cmake/ZyfaGeneratorId.cmake";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ostringstream text;
    text << std::ifstream(header).rdbuf();
    EXPECT_NE(text.str().find("kGeneratorId[] = \""), std::string::npos);
    return text.str();
  }

  fs::path top_, root_;
};

TEST_F(GeneratorId, changes_with_any_source_of_jit_or_schedules) {
  const std::string before = id();
  EXPECT_EQ(id(), before);
  write("jit/passes/waits.cpp", "int Wait;\n");
  const std::string source = id();
  EXPECT_NE(source, before);
  write("jit/isa/opcodes.def", "X(b)\n");
  const std::string table = id();
  EXPECT_NE(table, source);
  write("schedules/select/new.cpp", "");
  const std::string added = id();
  EXPECT_NE(added, table);
  fs::rename(root_ / "schedules/attention/forward.h", root_ / "schedules/attention/backward.h");
  EXPECT_NE(id(), added);
}

TEST_F(GeneratorId, changes_with_the_llvm_version) { EXPECT_NE(id("llvm;22.1.8"), id("llvm;22.1.9")); }

TEST_F(GeneratorId, does_not_change_with_other_folders_times_or_the_place_of_the_tree) {
  const std::string before = id();
  write("runtime/launch.cpp", "int other;\n");
  write("jit/CMakeLists.txt", "# targets\n");
  write("schedules/select/tuned_rows.inc", "a placement, which every key holds itself");
  fs::last_write_time(root_ / "jit/passes/waits.cpp", fs::file_time_type{});
  EXPECT_EQ(id(), before);
  fs::rename(root_, top_ / "moved");
  root_ = top_ / "moved";
  EXPECT_EQ(id(), before);
}

TEST_F(GeneratorId, leaves_an_unchanged_header_alone) {
  const std::string before = id();
  fs::last_write_time(top_ / "id.h", fs::file_time_type{});
  EXPECT_EQ(id(), before);
  EXPECT_EQ(fs::last_write_time(top_ / "id.h"), fs::file_time_type{});
}

}  // namespace
