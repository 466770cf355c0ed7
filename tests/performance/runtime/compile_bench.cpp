// How long a caller waits for a kernel: in memory, on disk in a fresh process, and built with LLVM loaded.
#include <benchmark/benchmark.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>

#include "runtime/jit_loader.h"
#include "runtime/kernel_choice.h"
#include "zyfa/attention.h"

namespace zyfa {
namespace {

const AttentionProblem kProblem{.mask = Mask::kCausal, .lse = Lse::kWritten};

std::string cache_directory() {
  static const std::string directory = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "zyfa-bench-XXXXXX").string();
    return std::string(mkdtemp(pattern.data()));
  }();
  return directory;
}

void memory_hit(benchmark::State& state) {
  const CompileOptions options{.cache = {.path = cache_directory()}};
  for (auto _ : state) {
    auto attention = Attention::compile(kProblem, options);
    if (!attention) return state.SkipWithError(attention.error().message.c_str());
    benchmark::DoNotOptimize(attention);
  }
}
BENCHMARK(memory_hit);

long long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<long long>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

struct ChildRun {
  std::string source;  // empty: it failed
  double wall_seconds = 0, cpu_seconds = 0;
};

// From before the new process exists to its object bytes in hand; its own exit is not part of the wall time.
ChildRun run_disk_hit() {
  int ends[2] = {};
  if (pipe(ends) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::string program = ZYFA_DISK_HIT, problem = to_string(kProblem);
  std::string environment = "ZYFA_CACHE_PATH=" + cache_directory();
  char* arguments[] = {program.data(), problem.data(), nullptr};
  char* variables[] = {environment.data(), nullptr};
  pid_t child = 0;
  const long long start = now();
  const int failed = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, variables);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  FILE* output = fdopen(ends[0], "r");
  char source[16] = {};
  long long done = 0;
  const bool printed = std::fscanf(output, "%15s %lld", source, &done) == 2;
  std::fclose(output);
  if (failed != 0) return {};
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (!printed || status != 0) return {};
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {.source = source,
          .wall_seconds = static_cast<double>(done - start) * 1e-9,
          .cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

void disk_hit_in_a_fresh_process(benchmark::State& state) {
  const CacheOptions cache{.path = cache_directory()};
  if (!Attention::compile(kProblem, {.cache = cache}) || !flush_cache(cache)) {
    return state.SkipWithError("the cache cannot be filled");
  }
  double cpu_seconds = 0;
  for (auto _ : state) {
    const ChildRun run = run_disk_hit();
    if (run.source != "disk") return state.SkipWithError("it was no disk hit");
    state.SetIterationTime(run.wall_seconds);
    cpu_seconds += run.cpu_seconds;
  }
  state.counters["process_cpu_ms"] = benchmark::Counter(cpu_seconds * 1e3, benchmark::Counter::kAvgIterations);
}
BENCHMARK(disk_hit_in_a_fresh_process)->UseManualTime()->Unit(benchmark::kMillisecond);

// Listing, passes, assembly, link and verification; LLVM is loaded.
void build(benchmark::State& state, const char* placement) {
  const Expected<const JitService*> service = jit_service();
  const Expected<KernelChoice> choice = choose_kernel(kProblem, placement);
  if (!service || !choice) return state.SkipWithError("libzyfa_jit or the schedule is missing");
  std::uint32_t instructions = 0;
  for (auto _ : state) {
    auto kernel = (*service)->compile_kernel(choice->spec);
    if (!kernel) return state.SkipWithError(kernel.error().message.c_str());
    instructions = kernel->info.instructions;
  }
  state.counters["instructions"] = instructions;
}
BENCHMARK_CAPTURE(build, pingpong, "pingpong")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, naive, "naive")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zyfa

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(zyfa::cache_directory());
  return 0;
}
