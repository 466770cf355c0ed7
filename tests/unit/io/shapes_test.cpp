// Shape files as lines and as JSON.
#include "runtime/io/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zyfa::io {
namespace {

std::vector<std::string> texts(std::string_view content) {
  const auto entries = parse_shapes(content, "s");
  EXPECT_TRUE(entries) << to_string(entries.error());
  std::vector<std::string> result;
  for (const ShapeEntry& entry : entries.value_or(std::vector<ShapeEntry>())) {
    result.push_back(entry.text + " @ " + entry.location);
  }
  return result;
}

TEST(Shapes, LinesWithCommentsAndBlanks) {
  EXPECT_THAT(texts("# models\nbf16,d=128,causal\r\n\n  bf16,d=128 # full\nbf16,d=64"),
              testing::ElementsAre("bf16,d=128,causal @ s:2", "bf16,d=128 @ s:4", "bf16,d=64 @ s:5"));
}

TEST(Shapes, Json) {
  EXPECT_THAT(texts(R"( ["bf16,d=128", " bf16,d=64 "])"),
              testing::ElementsAre("bf16,d=128 @ s: problem 1", "bf16,d=64 @ s: problem 2"));
  EXPECT_THAT(texts(R"({"problems": ["bf16,d=128"]})"), testing::ElementsAre("bf16,d=128 @ s: problem 1"));
}

TEST(Shapes, EmptyIsLegalHere) {
  EXPECT_TRUE(texts("").empty());
  EXPECT_TRUE(texts("# nothing\n").empty());
  EXPECT_TRUE(texts("[]").empty());
}

}  // namespace
}  // namespace zyfa::io
