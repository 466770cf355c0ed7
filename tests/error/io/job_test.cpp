// Job and shape files that are wrong: the message names the place, the value and what is allowed.
#include "runtime/io/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/io/shapes.h"

namespace zyfa::io {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(const std::string& text) {
  const auto job = parse_job(text, "", "job.json");
  EXPECT_FALSE(job) << "accepted " << text;
  if (job) {
    return "";
  }
  EXPECT_EQ(job.error().code, ErrorCode::kCorruptData);
  return job.error().message;
}

std::string argument_refusal(const std::string& argument) {
  return refusal(R"({"object":"o","kernel":"k","grid":[1,1,1],"block":[64,1,1],"args":[{"i32":1},)" + argument + "]}");
}

std::string field_refusal(const std::string& fields) {
  return refusal(R"({"object":"o","kernel":"k",)" + fields + "}");
}

TEST(JobErrors, NotAnObject) {
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("no object; must be a string"));
}

TEST(JobErrors, TopLevelFields) {
  EXPECT_THAT(field_refusal(R"("grid":[1,1,1],"block":[1,1,1],"arg":[])"),
              HasSubstr("unknown key 'arg'; allowed are object, kernel, grid, block, lds, args"));
  EXPECT_THAT(field_refusal(R"("block":[1,1,1])"), HasSubstr("no grid"));
  EXPECT_THAT(field_refusal(R"("grid":[1,1],"block":[1,1,1])"), HasSubstr("grid is [1,1]; must be three integers"));
  EXPECT_THAT(field_refusal(R"("grid":[1,0,1],"block":[1,1,1])"), HasSubstr("grid has 0; must be an integer from 1"));
  EXPECT_THAT(field_refusal(R"("grid":[1,-1,1],"block":[1,1,1])"), HasSubstr("grid has -1"));
  EXPECT_THAT(field_refusal(R"("grid":[1,4294967296,1],"block":[1,1,1])"), HasSubstr("to 4294967295"));
  EXPECT_THAT(field_refusal(R"("grid":[1,1,1],"block":[512,3,1])"), HasSubstr("at most 1024 work-items"));
  EXPECT_THAT(field_refusal(R"("grid":[1,1,1],"block":[4294967295,4294967295,4294967295])"),
              HasSubstr("at most 1024 work-items"));
  EXPECT_THAT(field_refusal(R"("grid":[1,1,1],"block":[1,1,1],"lds":163841)"), HasSubstr("0 to 163840"));
  EXPECT_THAT(field_refusal(R"("grid":[1,1,1],"block":[1,1,1],"args":{})"), HasSubstr("args is {}"));
  EXPECT_THAT(refusal(R"({"object":5,"kernel":"k","grid":[1,1,1],"block":[1,1,1]})"), HasSubstr("object is 5"));
  EXPECT_THAT(refusal(R"({"object":"","kernel":"k","grid":[1,1,1],"block":[1,1,1]})"), HasSubstr("not empty"));
  EXPECT_THAT(refusal(R"({"object":"a\u0000b","kernel":"k","grid":[1,1,1],"block":[1,1,1]})"), HasSubstr("NUL"));
}

TEST(JobErrors, ArgumentsNameTheirIndex) {
  EXPECT_THAT(argument_refusal("3"), StartsWith("job.json: args[1] is 3; must be an object"));
  EXPECT_THAT(argument_refusal("{}"), StartsWith("job.json: args[1]: must have one of buffer, bytes, i32"));
  EXPECT_THAT(argument_refusal(R"({"i32":1,"u32":1})"), HasSubstr("unknown key 'u32'; allowed are i32, offset"));
  EXPECT_THAT(argument_refusal(R"({"i32":2147483648})"),
              HasSubstr("must be an integer from -2147483648 to 2147483647"));
  EXPECT_THAT(argument_refusal(R"({"i32":1.5})"), HasSubstr("i32 is 1.5"));
  EXPECT_THAT(argument_refusal(R"({"u32":-1})"), HasSubstr("u32 has -1"));
  EXPECT_THAT(argument_refusal(R"({"i64":9223372036854775808})"), HasSubstr("i64 is 9223372036854775808"));
  EXPECT_THAT(argument_refusal(R"({"f32":"1"})"), HasSubstr("f32 is \"1\"; must be a number"));
  EXPECT_THAT(argument_refusal(R"({"f32":1e39})"), HasSubstr("must fit a 32-bit float"));
  EXPECT_THAT(argument_refusal(R"({"raw":"abc"})"), HasSubstr("raw has 3 digits; must be an even number"));
  EXPECT_THAT(argument_refusal(R"({"raw":"ab0g"})"), HasSubstr("'0g' at digit 2"));
  EXPECT_THAT(argument_refusal(R"({"null":false})"), HasSubstr("null is false; must be true"));
  EXPECT_THAT(argument_refusal(R"({"u32":1,"offset":65537})"), HasSubstr("offset has 65537"));
  EXPECT_THAT(argument_refusal(R"({"buffer":"a","fill":1})"), HasSubstr("unknown key 'fill'"));
  EXPECT_THAT(argument_refusal(R"({"bytes":-1})"), HasSubstr("bytes has -1"));
  EXPECT_THAT(argument_refusal(R"({"bytes":1152921504606846976})"), HasSubstr("bytes has 1152921504606846976"));
  EXPECT_THAT(argument_refusal(R"({"bytes":4,"fill":256})"),
              HasSubstr("fill has 256; must be an integer from 0 to 255"));
  EXPECT_THAT(argument_refusal(R"({"bytes":4,"dtype":"float33"})"),
              HasSubstr("dtype is 'float33'; must be one of bool"));
  EXPECT_THAT(argument_refusal(R"({"bytes":4,"dtype":"float32","shape":[2]})"),
              HasSubstr("dtype and shape label 8 bytes, but the buffer has 4"));
  EXPECT_THAT(argument_refusal(R"({"bytes":4,"shape":[-4]})"), HasSubstr("shape has -4"));
}

TEST(ShapeErrors, OtherForms) {
  const auto message = [](std::string_view text) {
    const auto entries = parse_shapes(text, "s");
    EXPECT_FALSE(entries);
    return entries ? std::string() : entries.error().message;
  };
  EXPECT_THAT(message(std::string_view("a\0b", 3)), HasSubstr("NUL"));
  EXPECT_THAT(message("[1]"), HasSubstr("s: problem 1 is 1; must be a text"));
  EXPECT_THAT(message("{\"shapes\":[]}"), HasSubstr("must be an array of problem texts"));
  EXPECT_THAT(message("[\"a\""), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace zyfa::io
