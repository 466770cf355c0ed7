// Entries that are sound as files but must not be loaded: an object of another machine, or one that is not what its
// metadata says. Starts from a kernel that libzyfa_jit builds, and spoils one thing at a time.
#include "runtime/object_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/jit_loader.h"
#include "runtime/kernel_choice.h"
#include "runtime/kernel_key.h"

namespace zyfa {
namespace {

using ::testing::HasSubstr;

struct Built {
  std::vector<std::byte> object;
  KernelMetadata metadata;
};

const Built& built() {
  static const Built kernel = [] {
    schedules::CompiledKernel compiled =
        jit_service().value()->compile_kernel(choose_kernel({}, "naive")->spec).value();
    return Built{std::move(compiled.object), {.info = std::move(compiled.info), .llvm_version = "x", .assembler = "x"}};
  }();
  return kernel;
}

Error refusal_of(const std::vector<std::byte>& object, const KernelMetadata& metadata) {
  const Status status = check_object(object, metadata, schedules::Family::kAttentionForward);
  EXPECT_FALSE(status);
  return status ? Error{} : status.error();
}

TEST(ObjectCheck, takes_what_the_compiler_made) {
  const Status status = check_object(built().object, built().metadata, schedules::Family::kAttentionForward);
  EXPECT_TRUE(status) << to_string(status.error());
}

struct Spoiled {
  const char* name;
  std::function<void(schedules::KernelInfo&)> spoil;
  const char* says;
};

class SpoiledMetadata : public ::testing::TestWithParam<Spoiled> {};

TEST_P(SpoiledMetadata, is_refused_with_the_values) {
  KernelMetadata metadata = built().metadata;
  GetParam().spoil(metadata.info);
  const Error error = refusal_of(built().object, metadata);
  EXPECT_EQ(error.code, ErrorCode::kCorruptData);
  EXPECT_THAT(error.message, HasSubstr(GetParam().says));
}

using Info = schedules::KernelInfo;
INSTANTIATE_TEST_SUITE_P(
    All, SpoiledMetadata,
    ::testing::Values(
        Spoiled{"symbol", [](Info& info) { info.symbol += "_x"; }, "has no kernel 'zyfa_"},
        Spoiled{"lds", [](Info& info) { info.lds_bytes += 4; }, "descriptor LDS is "},
        Spoiled{"kernarg", [](Info& info) { info.kernarg_bytes += 8; }, "entry kernel arguments is 344, expected 336"},
        Spoiled{"waves", [](Info& info) { info.waves *= 2; }, "metadata workgroup size is 256, expected 512"},
        Spoiled{"vgprs", [](Info& info) { info.vgprs = 257; }, "vector registers"},
        Spoiled{"agprs", [](Info& info) { info.agprs = 256; }, "vector registers"}),
    [](const auto& test) { return test.param.name; });

TEST(ObjectCheck, refuses_other_machines) {
  for (const auto& [offset, value, says] : std::initializer_list<std::tuple<std::size_t, int, const char*>>{
           {8, 4, "version 6; expected 5"},  // e_ident[EI_ABIVERSION]
           {18, 62, "62"},                   // e_machine: x86-64
           {48, 0x4c, "0x"}}) {              // e_flags: another processor of the same machine
    std::vector<std::byte> object = built().object;
    object[offset] = static_cast<std::byte>(value);
    const Error error = refusal_of(object, built().metadata);
    EXPECT_EQ(error.code, ErrorCode::kArchMismatch) << error.message;
    EXPECT_THAT(error.message, HasSubstr(says));
  }
}

// The key names sramecc+ and xnack-: bits 0x300 of e_flags are xnack (any 0x100, off 0x200, on 0x300), bits 0xc00
// sramecc (any 0x400, off 0x800, on 0xc00).
TEST(ObjectCheck, refuses_other_target_features) {
  std::vector<std::byte> object = built().object;
  ASSERT_EQ(object[48], std::byte{0x4f});
  ASSERT_EQ(object[49], std::byte{0x0e});
  for (const int features : {0x05, 0x0f, 0x0a, 0x00, 0x06, 0x0d}) {
    object[49] = std::byte(features);
    const Error error = refusal_of(object, built().metadata);
    EXPECT_EQ(error.code, ErrorCode::kArchMismatch) << error.message;
    EXPECT_THAT(error.message, HasSubstr("expected 0xe4f, which is gfx950:sramecc+:xnack-"));
  }
  object[49] = std::byte{0x0e};
  object[50] = std::byte{0x01};
  EXPECT_EQ(refusal_of(object, built().metadata).code, ErrorCode::kArchMismatch);
}

// The same length, so that nothing else moves.
TEST(ObjectCheck, refuses_a_metadata_target_of_another_processor) {
  std::vector<std::byte> object = built().object;
  std::string text(reinterpret_cast<const char*>(object.data()), object.size());
  const std::size_t at = text.find("amdgcn-amd-amdhsa--gfx950");
  ASSERT_NE(at, std::string::npos);
  object[at + 24] = std::byte{'1'};
  EXPECT_EQ(refusal_of(object, built().metadata).code, ErrorCode::kArchMismatch);
}

TEST(ObjectCheck, refuses_every_truncation) {
  const std::vector<std::byte>& whole = built().object;
  for (std::size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 997) {
    const auto part = std::span(whole).first(size);
    EXPECT_FALSE(check_object(part, built().metadata, schedules::Family::kAttentionForward)) << size;
  }
}

// Attention takes 336 bytes of arguments, the kernels that quantise 160.
TEST(ObjectCheck, wants_the_arguments_of_the_family) {
  for (const auto family : {schedules::Family::kQuantiseStatistics, schedules::Family::kQuantise}) {
    const Status status = check_object(built().object, built().metadata, family);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorruptData);
    EXPECT_THAT(status.error().message, HasSubstr("descriptor kernel arguments is 336, expected 160"));
  }
}

std::string key_of(schedules::KernelSpec spec) {
  spec.placement = "name=x;waves=1;loop=a";
  return make_key(spec).value().bytes;
}

TEST(EntryCheck, needs_metadata_and_a_key_that_can_be_read) {
  const std::string metadata = encode(built().metadata), key = key_of({});
  const auto entry = [&](std::string_view bytes) {
    return cache::Entry::encode(key, std::as_bytes(std::span(bytes)), built().object).value();
  };
  const auto with_key = [&](std::string_view other) {
    return cache::Entry::encode(other, std::as_bytes(std::span(metadata)), built().object).value();
  };
  EXPECT_FALSE(check_entry(with_key("key")));
  EXPECT_FALSE(check_entry(with_key(key_of({.family = schedules::Family::kQuantise}))));
  EXPECT_TRUE(check_entry(entry(metadata)));
  EXPECT_FALSE(check_entry(entry(std::string_view(metadata).substr(0, metadata.size() / 2))));
  EXPECT_FALSE(check_entry(entry("")));
}

}  // namespace
}  // namespace zyfa
