// Prints explain_key() of the problem given, for tests that compare processes.
#include <cstdio>

#include "zyfa/inspect.h"

int main(int argc, char** argv) {
  const auto problem = zyfa::parse_problem(argc > 1 ? argv[1] : "");
  if (!problem) return 2;
  const auto text = zyfa::explain_key(*problem);
  if (!text) return 1;
  std::fputs(text->c_str(), stdout);
  return 0;
}
