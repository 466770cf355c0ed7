// A process that wants one kernel and exits: prints where it came from, CLOCK_MONOTONIC in nanoseconds when the checked
// object bytes were in hand, and which of libzyfa_jit and LLVM are mapped.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "zyfa/attention.h"

namespace {

long long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<long long>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

const char* mapped() {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return "unknown";
  const char* found = "none";
  char line[4096];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    if (std::strstr(line, "libLLVM") != nullptr) found = "llvm";
    if (std::strstr(line, "libzyfa_jit") != nullptr) found = "jit";
  }
  std::fclose(maps);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const auto problem = zyfa::parse_problem(argc > 1 ? argv[1] : "");
  if (!problem) return 2;
  const auto attention = zyfa::Attention::compile(*problem);
  const long long done = now();
  if (!attention) {
    std::fprintf(stderr, "%s\n", to_string(attention.error()).c_str());
    return 1;
  }
  const zyfa::AttentionInfo info = (*attention)->info();
  std::printf("%s %lld %zu mapped=%s\n", std::string(zyfa::kernel_source_name(info.source)).c_str(), done,
              (*attention)->object().size(), mapped());
  return 0;
}
