// Kernel keys: every field counts, nothing of the environment does, and the specification can be read back.
#include "runtime/kernel_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "runtime/kernel_choice.h"
#include "schedules/select/argument_layout.h"
#include "zyfa/inspect.h"

namespace zyfa {
namespace {

using schedules::KernelSpec;

const KernelSpec kSpec{.placement = "name=x;loop=qk"};

cache::Key key_of(const KernelSpec& spec, const KeyEnvironment& environment) {
  Expected<cache::Key> key = make_key(spec, environment);
  EXPECT_TRUE(key) << to_string(key.error());
  return key.value_or(cache::Key{});
}

TEST(KernelKey, every_field_changes_the_key) {
  const KeyEnvironment base = KeyEnvironment::this_build();
  std::map<std::string, cache::Key> keys{{"unchanged", key_of(kSpec, base)}};
  const auto with_spec = [&](const char* field, const std::function<void(KernelSpec&)>& change) {
    KernelSpec spec = kSpec;
    change(spec);
    keys.emplace(field, key_of(spec, base));
  };
  const auto with_environment = [&](const char* field, const std::function<void(KeyEnvironment&)>& change) {
    KeyEnvironment environment = base;
    change(environment);
    keys.emplace(field, key_of(kSpec, environment));
  };
  with_spec("head_dim_qk", [](KernelSpec& spec) { spec.head_dim_qk = 192; });
  with_spec("head_dim_v", [](KernelSpec& spec) { spec.head_dim_v = 192; });
  with_spec("mask", [](KernelSpec& spec) { spec.mask = schedules::MaskKind::kCausal; });
  with_spec("lse", [](KernelSpec& spec) { spec.lse = schedules::LseOutput::kWritten; });
  with_spec("block_exponents", [](KernelSpec& spec) { spec.block_exponents = schedules::BlockExponents::kNone; });
  with_spec("row_sum", [](KernelSpec& spec) { spec.row_sum = schedules::RowSum::kDense; });
  with_spec("another row_sum", [](KernelSpec& spec) { spec.row_sum = schedules::RowSum::kSparse; });
  with_spec("placement", [](KernelSpec& spec) { spec.placement += ",pv"; });
  with_environment("schema", [](KeyEnvironment& environment) { ++environment.schema; });
  with_environment("target", [](KeyEnvironment& environment) { environment.target = "gfx950:sramecc+:xnack+"; });
  with_environment("code_object_version", [](KeyEnvironment& environment) { ++environment.code_object_version; });
  with_environment("argument_layout", [](KeyEnvironment& environment) { environment.argument_layout ^= 1; });
  with_environment("generator", [](KeyEnvironment& environment) { environment.generator.back() ^= 1; });
  for (const auto& [first, a] : keys) {
    for (const auto& [second, b] : keys) {
      if (first == second) continue;
      EXPECT_NE(a.bytes, b.bytes) << first << " and " << second;
      EXPECT_NE(a.name(), b.name()) << first << " and " << second;
    }
  }
}

// The layout of the other family's arguments does not count.
TEST(KernelKey, holds_the_argument_layout_of_its_family) {
  const KeyEnvironment base = KeyEnvironment::this_build();
  KeyEnvironment changed = base;
  changed.quantise_layout ^= 1;
  EXPECT_NE(base.quantise_layout, base.argument_layout);
  EXPECT_EQ(key_of(kSpec, changed).bytes, key_of(kSpec, base).bytes);
  for (const schedules::Family family : {schedules::Family::kQuantiseStatistics, schedules::Family::kQuantise}) {
    KernelSpec spec = kSpec;
    spec.family = family;
    EXPECT_NE(key_of(spec, changed).bytes, key_of(spec, base).bytes);
    changed.argument_layout ^= 1;
    KeyEnvironment other = base;
    other.argument_layout ^= 1;
    EXPECT_EQ(key_of(spec, other).bytes, key_of(spec, base).bytes);
  }
}

TEST(KernelKey, reads_back_what_it_was_made_from) {
  for (schedules::MaskKind mask : {schedules::MaskKind::kFull, schedules::MaskKind::kCausal}) {
    for (schedules::LseOutput lse : {schedules::LseOutput::kNone, schedules::LseOutput::kWritten}) {
      const KernelSpec spec{.head_dim_qk = 192, .mask = mask, .lse = lse, .placement = "name=y;loop=pv"};
      const Expected<KeyContents> contents = read_key(make_key(spec)->bytes);
      ASSERT_TRUE(contents) << to_string(contents.error());
      EXPECT_EQ(contents->spec, spec);
      EXPECT_EQ(contents->generator, generator_id());
    }
  }
}

TEST(KernelKey, reads_the_row_sum_back) {
  for (const schedules::RowSum sum :
       {schedules::RowSum::kAuto, schedules::RowSum::kSparse, schedules::RowSum::kDense}) {
    const KernelSpec spec{.element = schedules::ElementType::kFp8E4M3, .row_sum = sum, .placement = "name=y;loop=pv"};
    const Expected<KeyContents> contents = read_key(make_key(spec)->bytes);
    ASSERT_TRUE(contents) << to_string(contents.error());
    EXPECT_EQ(contents->spec, spec);
  }
}

TEST(KernelKey, refuses_words_of_another_version) {
  const std::string bytes = make_key(kSpec)->bytes;
  std::string changed = bytes;
  const std::size_t at = changed.find("bf16");
  ASSERT_NE(at, std::string::npos);
  changed.replace(at, 4, "fp99");
  const Expected<KeyContents> contents = read_key(changed);
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().code, ErrorCode::kCorruptData);
  EXPECT_THAT(contents.error().message, ::testing::HasSubstr("fp99"));
  EXPECT_FALSE(read_key(bytes.substr(0, bytes.size() / 2)));
}

// FNV-1a of "a:<8 bytes 0>:<8 bytes 4>;" worked out by an independent program.
TEST(ArgumentLayout, hash_sees_name_offset_size_and_order) {
  using schedules::ArgumentField, schedules::hash_layout;
  const ArgumentField a{"a", 0, 4}, b{"b", 4, 4};
  const auto hash = [](std::initializer_list<ArgumentField> fields) {
    return hash_layout(std::span(fields.begin(), fields.size()));
  };
  EXPECT_EQ(hash({}), 0xcbf29ce484222325u);
  EXPECT_EQ(hash({a}), 0x6516382e593eb615u);
  EXPECT_NE(hash({a, b}), hash({b, a}));
  EXPECT_NE(hash({a}), hash({{"b", 0, 4}}));
  EXPECT_NE(hash({a}), hash({{"a", 4, 4}}));
  EXPECT_NE(hash({a}), hash({{"a", 0, 8}}));
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text.push_back(static_cast<char>(c));
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

TEST(KernelKey, is_equal_in_another_process_with_another_environment) {
  const std::string here = explain_key({.mask = Mask::kCausal, .lse = Lse::kWritten}).value();
  EXPECT_THAT(here, ::testing::ContainsRegex("key=[0-9a-f]+\n$"));
  const std::string program = ZYFA_PRINT_KEY " bf16,d=128,causal,lse";
  EXPECT_EQ(output_of(program), here);
  EXPECT_EQ(output_of("cd / && env -i PATH=/nowhere HOME=/nonexistent LC_ALL=tr_TR.UTF-8 TZ=Asia/Tokyo "
                      "ZYFA_CACHE_PATH=/nonexistent ZYFA_CACHE=off " +
                      program),
            here);
  EXPECT_NE(output_of(ZYFA_PRINT_KEY " bf16,d=128,causal"), here);
}

}  // namespace
}  // namespace zyfa
