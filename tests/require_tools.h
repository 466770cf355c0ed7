// A test that needs a program of the machine (stock llvm-mc, clang, ...) skips where it is absent. Under
// ZYFA_REQUIRE_TOOLS, which tools/test and CI set, the absence is a failure: what did not run has not passed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

// Ends a test, or a SetUp() that returns void.
#define ZYFA_SKIP_WITHOUT_TOOL(message)                                        \
  do {                                                                         \
    if (std::getenv("ZYFA_REQUIRE_TOOLS") != nullptr) {                        \
      FAIL() << message << "; ZYFA_REQUIRE_TOOLS asks for it: tools/packages"; \
    }                                                                          \
    GTEST_SKIP() << message;                                                   \
  } while (false)
