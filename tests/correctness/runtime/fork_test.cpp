// fork() while other threads compile: the child compiles the same kernels at once, and nobody waits for it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "zyfa/attention.h"

namespace zyfa {
namespace {

namespace fs = std::filesystem;

int end_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  return status;
}

// Each round has a directory and so a cache of its own, so every round builds. The alarm ends a child that hangs.
TEST(Fork, ChildrenCompileWhatTheParentIsCompiling) {
  std::string root = (fs::temp_directory_path() / "zyfa-fork-XXXXXX").string();
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  for (int round = 0; round < 4; ++round) {
    const CacheOptions cache{root + "/" + std::to_string(round), CacheMode::kNormal};
    std::atomic<int> compiled = 0;
    std::vector<std::jthread> threads;
    for (const Mask mask : {Mask::kFull, Mask::kCausal}) {
      threads.emplace_back([&, mask] {
        for (const Lse lse : {Lse::kNone, Lse::kWritten}) {
          EXPECT_TRUE(Attention::compile({.mask = mask, .lse = lse}, {.placement = "naive", .cache = cache}));
          ++compiled;
        }
      });
    }
    int children = 0;
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + 7 * round));
      const pid_t child = ::fork();
      if (child == 0) {
        ::alarm(100);
        const auto kernel = Attention::compile({}, {.placement = "naive", .cache = cache});
        const auto other = Attention::compile({.mask = Mask::kCausal}, {.placement = "naive", .cache = cache});
        ::_exit(kernel && other ? 0 : 1);
      }
      ASSERT_GT(child, 0);
      EXPECT_EQ(end_of(child), 0);
      ++children;
    } while (compiled < 4 && children < 20);
    threads.clear();
    EXPECT_TRUE(flush_cache(cache));
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace zyfa
