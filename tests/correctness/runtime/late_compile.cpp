// A process whose last compile() calls come from the destructor of a static that is older than the library's own:
// prints how each ended. The first argument's kernel is compiled in main() too, the second's is not.
#include <cstdio>
#include <string>

#include "zyfa/attention.h"

namespace {

void compile(const char* when, const zyfa::AttentionProblem& problem) {
  const auto attention = zyfa::Attention::compile(problem);
  const std::string end = attention ? std::string(zyfa::kernel_source_name((*attention)->info().source))
                                    : "error " + std::to_string(static_cast<int>(attention.error().code));
  std::printf("%s=%s ", when, end.c_str());
}

struct Late {
  zyfa::AttentionProblem known, other;
  ~Late() {
    compile("known", known);
    compile("other", other);
    std::puts("end");
    std::fflush(stdout);
  }
};

Late late;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  late.known = zyfa::parse_problem(argv[1]).value();
  late.other = zyfa::parse_problem(argv[2]).value();
  compile("main", late.known);
  return 0;
}
