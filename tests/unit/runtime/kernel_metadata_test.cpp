// Entry metadata: what is written is read, and nothing out of range is let through.
#include "runtime/kernel_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/entry.h"

namespace zyfa {
namespace {

KernelMetadata sample() {
  return {.info = {.symbol = "attention_forward",
                   .waves = 8,
                   .query_tile = 256,
                   .vgprs = 250,
                   .agprs = 4,
                   .sgprs = 60,
                   .lds_bytes = 65536,
                   .kernarg_bytes = 168,
                   .instructions = 2345},
          .llvm_version = "22.1.8",
          .assembler = "llvm-mc",
          .register_map = "v0 q\nv64 s\n",
          .schedule_chart = "a | b\n"};
}

Expected<KernelMetadata> decode(std::string_view bytes) {
  return decode_kernel_metadata(std::as_bytes(std::span(bytes)));
}

TEST(KernelMetadata, decode_undoes_encode) {
  const KernelMetadata metadata = sample();
  const Expected<KernelMetadata> decoded = decode(encode(metadata));
  ASSERT_TRUE(decoded) << to_string(decoded.error());
  EXPECT_EQ(encode(*decoded), encode(metadata));
  EXPECT_EQ(decoded->info.symbol, "attention_forward");
  EXPECT_EQ(decoded->info.waves, 8u);
  EXPECT_EQ(decoded->info.query_tile, 256u);
  EXPECT_EQ(decoded->info.vgprs, 250u);
  EXPECT_EQ(decoded->info.agprs, 4u);
  EXPECT_EQ(decoded->info.sgprs, 60u);
  EXPECT_EQ(decoded->info.lds_bytes, 65536u);
  EXPECT_EQ(decoded->info.kernarg_bytes, 168u);
  EXPECT_EQ(decoded->info.instructions, 2345u);
  EXPECT_EQ(decoded->llvm_version, "22.1.8");
  EXPECT_EQ(decoded->assembler, "llvm-mc");
  EXPECT_EQ(decoded->register_map, metadata.register_map);
  EXPECT_EQ(decoded->schedule_chart, metadata.schedule_chart);
}

TEST(KernelMetadata, every_number_is_required_and_bounded) {
  const cache::MetadataPairs pairs =
      cache::decode_metadata(std::as_bytes(std::span(std::string_view(encode(sample()))))).value();
  for (const std::string name :
       {"symbol", "waves", "query_tile", "vgprs", "agprs", "sgprs", "lds_bytes", "kernarg_bytes", "instructions"}) {
    cache::MetadataPairs without;
    for (const auto& pair : pairs) {
      if (pair.first != name) without.push_back(pair);
    }
    ASSERT_EQ(without.size() + 1, pairs.size()) << name;
    const Expected<KernelMetadata> missing = decode(cache::encode_metadata(without));
    ASSERT_FALSE(missing) << name;
    EXPECT_EQ(missing.error().code, ErrorCode::kCorruptData);
    EXPECT_THAT(missing.error().message, ::testing::HasSubstr(name));
    if (name == "symbol") continue;
    for (const char* bad : {"", "x", "-1", "4294967295", "4294967296", "8 ", "0x8"}) {
      cache::MetadataPairs changed = pairs;
      for (auto& pair : changed) {
        if (pair.first == name) pair.second = bad;
      }
      EXPECT_FALSE(decode(cache::encode_metadata(changed))) << name << "=" << bad;
    }
  }
}

TEST(KernelMetadata, a_kernel_of_no_waves_or_no_queries_is_refused) {
  KernelMetadata metadata = sample();
  metadata.info.waves = 0;
  EXPECT_FALSE(decode(encode(metadata)));
  metadata = sample();
  metadata.info.query_tile = 0;
  EXPECT_FALSE(decode(encode(metadata)));
}

}  // namespace
}  // namespace zyfa
