// Mutated files through every reader: whatever the bytes, a reader answers with a value that holds its own promises or
// with a typed error. Seeds are fixed, so a failure repeats; the sanitizer builds make it strict.
#include <gtest/gtest.h>

#include <random>

#include "runtime/io/job.h"
#include "runtime/io/job_run.h"
#include "runtime/io/npy.h"
#include "runtime/io/safetensors.h"
#include "runtime/io/shapes.h"
#include "tests/unit/io/files.h"

namespace zyfa::io {
namespace {

using namespace testing_support;

constexpr int kRounds = 20000;

// One to four edits: flip, overwrite, insert, erase, cut, copy a piece elsewhere, or splice a telling token.
std::string mutate(std::string text, std::mt19937& random, const std::vector<std::string>& tokens) {
  const auto below = [&](std::size_t n) {
    return n == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = below(text.size() + 1);
    switch (below(7)) {
      case 0:
        if (at < text.size()) {
          text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        }
        break;
      case 1:
        if (at < text.size()) {
          text[at] = static_cast<char>(below(256));
        }
        break;
      case 2:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 3:
        text.erase(at, 1 + below(8));
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        text.insert(at, text.substr(below(text.size() + 1), below(32)));
        break;
      default:
        text.replace(at, std::min(text.size() - at, below(12)), tokens[below(tokens.size())]);
    }
  }
  return text;
}

const std::vector<std::string> kTokens = {"-1",
                                          "0",
                                          "18446744073709551615",
                                          "9223372036854775807",
                                          "4611686018427387905",
                                          "1e400",
                                          "null",
                                          "true",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          "\"",
                                          ",",
                                          ":",
                                          "[]",
                                          "{}",
                                          "()",
                                          "\\u0000",
                                          "\"dtype\":\"F64\"",
                                          "\"shape\":[]",
                                          "\xff\xff\xff\xff",
                                          std::string(4, '\0'),
                                          "True",
                                          "'<f8'",
                                          "(1,)",
                                          "\"buffer\":\"x\"",
                                          "\"bytes\":17179869184",
                                          "\"offset\":65536"};

TEST(FuzzSafetensors, AnyBytesAreSafe) {
  const std::string seed = safetensors_text(
      R"({"__metadata__":{"mask":"causal"},"k":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
      R"("q":{"dtype":"F32","shape":[1,2],"data_offsets":[4,12]},"e":{"dtype":"I64","shape":[0],"data_offsets":[12,12]}})",
      "0123456789ab");
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = mutate(seed, random, kTokens);
    const auto file = Safetensors::parse(to_bytes(text), "f");
    if (!file) {
      ASSERT_EQ(file.error().code, ErrorCode::kCorruptData);
      continue;
    }
    ++accepted;
    std::size_t total = 0;
    for (const auto& [name, tensor] : file->tensors()) {
      std::size_t elements = 1;
      for (const std::int64_t extent : tensor.shape) {
        elements *= static_cast<std::size_t>(extent);
      }
      ASSERT_EQ(elements * element_bytes(tensor.type), tensor.bytes.size());
      total += tensor.bytes.size();
      ASSERT_EQ(to_text(tensor.bytes).size(), tensor.bytes.size());  // touches every byte
    }
    ASSERT_LE(total, text.size());
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
}

TEST(FuzzNpy, AnyBytesAreSafe) {
  std::string seed = "\x93NUMPY\x01";
  seed += std::string("\0\x46\0", 3) + "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  seed.resize(10 + 0x46, ' ');
  seed += std::string(24, 'd');
  ASSERT_TRUE(parse_npy(to_bytes(seed), "a"));
  std::mt19937 random(2);
  int accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto array = parse_npy(to_bytes(mutate(seed, random, kTokens)), "a");
    if (array) {
      ++accepted;
      std::size_t elements = 1;
      for (const std::int64_t extent : array->shape) {
        elements *= static_cast<std::size_t>(extent);
      }
      ASSERT_EQ(elements * element_bytes(array->type), array->data.size());
    } else {
      ASSERT_TRUE(array.error().code == ErrorCode::kCorruptData || array.error().code == ErrorCode::kInvalidArgument);
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
}

TEST(FuzzJob, AnyBytesAreSafe) {
  const std::string seed = R"({"object":"k.hsaco","kernel":"s","grid":[2,1,1],"block":[512,1,1],"lds":0,"args":[
    {"buffer":"q.npy"},{"buffer":"a.bin","write":"b.bin","offset":16},
    {"bytes":16,"fill":255,"write":"o.npy","dtype":"bfloat16","shape":[2,4]},
    {"i32":5},{"u32":7},{"i64":1},{"f32":0.0883883},{"raw":"00ff"},{"null":true}]})";
  ObjectKernel kernel;
  kernel.kernarg_bytes = 96;
  kernel.arguments = {{"a", "global_buffer", 0, 8}, {"b", "by_value", 8, 4}, {"", "hidden_block_count_x", 80, 4}};
  std::mt19937 random(3);
  int accepted = 0, packed = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto job = parse_job(mutate(seed, random, kTokens), "folder", "j");
    if (!job) {
      ASSERT_EQ(job.error().code, ErrorCode::kCorruptData);
      continue;
    }
    ++accepted;
    ASSERT_LE(job->launch.block[0] * job->launch.block[1] * job->launch.block[2], 1024U);
    const std::vector<DeviceAddress> buffers(job->arguments.size(), 0x1000);
    for (const ObjectKernel& target : {ObjectKernel{}, kernel}) {
      const auto segment = pack_arguments(*job, target, buffers);
      packed += segment.has_value() ? 1 : 0;
      ASSERT_TRUE(segment || segment.error().code == ErrorCode::kInvalidArgument);
      ASSERT_LE(segment ? segment->size() : 0, 256U * 1024);
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
  EXPECT_GT(packed, 0);
}

TEST(FuzzShapes, AnyBytesAreSafe) {
  const std::vector<std::string> seeds = {"bf16,d=128\n# c\nbf16,d=64,causal\n", R"({"problems":["bf16,d=128","x"]})"};
  std::mt19937 random(4);
  for (int round = 0; round < kRounds; ++round) {
    const auto entries = parse_shapes(mutate(seeds[static_cast<std::size_t>(round) % 2], random, kTokens), "s");
    ASSERT_TRUE(entries || entries.error().code == ErrorCode::kCorruptData);
  }
}

}  // namespace
}  // namespace zyfa::io
