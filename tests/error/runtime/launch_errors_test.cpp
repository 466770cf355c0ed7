// Every way to get launch arguments wrong: a typed error that names the argument, its value and what is allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "runtime/launch.h"

namespace zyfa {
namespace {

using ::testing::HasSubstr;

struct Wrong {
  const char* name;
  std::function<void(LaunchArgs&)> break_it;
  const char* says;
  AttentionProblem problem = {};
};

LaunchArgs good(const AttentionProblem& problem) {
  LaunchArgs args{.q = TensorView::contiguous(0x10000, 2, 64, 6, 128),
                  .k = TensorView::contiguous(0x20000, 2, 96, 2, 128),
                  .v = TensorView::contiguous(0x30000, 2, 96, 2, 128),
                  .out = TensorView::contiguous(0x40000, 2, 64, 6, 128)};
  if (problem.lse == Lse::kWritten) args.lse = LseView::contiguous(0x50000, 2, 6, 64);
  if (problem.compute == Compute::kFp8) {
    args.workspace = {.address = 0x100000, .bytes = workspace_bytes(problem, args).value()};
  }
  return args;
}

class LaunchErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(LaunchErrors, name_the_value_and_what_is_allowed) {
  const Wrong& wrong = GetParam();
  LaunchArgs args = good(wrong.problem);
  ASSERT_TRUE(prepare_launch(wrong.problem, {8, 256}, args));
  wrong.break_it(args);
  const auto launch = prepare_launch(wrong.problem, {8, 256}, args);
  ASSERT_FALSE(launch);
  EXPECT_EQ(launch.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(launch.error().message, HasSubstr(wrong.says));
}

constexpr AttentionProblem kLse{.lse = Lse::kWritten};

INSTANTIATE_TEST_SUITE_P(
    Shapes, LaunchErrors,
    ::testing::Values(
        Wrong{"heads", [](LaunchArgs& a) { a.q.heads = a.out.heads = 5; },
              "q.heads is 5 and k.heads is 2; q.heads must be a multiple of k.heads"},
        Wrong{"no_key_heads", [](LaunchArgs& a) { a.k.heads = a.v.heads = 0; }, "q.heads is 6 and k.heads is 0"},
        Wrong{"q_dim", [](LaunchArgs& a) { a.q.dim = 64; }, "q.dim is 64; it must be 128, the problem's head_dim_qk"},
        Wrong{"k_dim", [](LaunchArgs& a) { a.k.dim = 192; }, "k.dim is 192; it must be 128"},
        Wrong{"v_dim", [](LaunchArgs& a) { a.v.dim = 64; }, "v.dim is 64; it must be 128, the problem's head_dim_v"},
        Wrong{"out_dim", [](LaunchArgs& a) { a.out.dim = 64; }, "out.dim is 64; it must be 128"},
        Wrong{"k_batch", [](LaunchArgs& a) { a.k.batch = 1; }, "k.batch is 1; it must be 2, as q.batch"},
        Wrong{"v_batch", [](LaunchArgs& a) { a.v.batch = 3; }, "v.batch is 3; it must be 2, as q.batch"},
        Wrong{"v_tokens", [](LaunchArgs& a) { a.v.tokens = 95; }, "v.tokens is 95; it must be 96, as k.tokens"},
        Wrong{"v_heads", [](LaunchArgs& a) { a.v.heads = 1; }, "v.heads is 1; it must be 2, as k.heads"},
        Wrong{"out_tokens", [](LaunchArgs& a) { a.out.tokens = 63; }, "out.tokens is 63; it must be 64, as q.tokens"},
        Wrong{"out_heads", [](LaunchArgs& a) { a.out.heads = 2; }, "out.heads is 2; it must be 6, as q.heads"},
        Wrong{"negative_batch", [](LaunchArgs& a) { a.q.batch = -1; }, "q.batch is -1; allowed are 0 to 65535"},
        Wrong{"batch_limit", [](LaunchArgs& a) { a.q.batch = 65536; }, "q.batch is 65536; allowed are 0 to 65535"},
        Wrong{"heads_limit", [](LaunchArgs& a) { a.q.heads = 32769; }, "q.heads is 32769; allowed are 0 to 32768"},
        Wrong{"query_limit", [](LaunchArgs& a) { a.q.tokens = (1 << 30) + 1; },
              "q.tokens is 1073741825; allowed are 0 to 1073741824"},
        Wrong{"key_limit", [](LaunchArgs& a) { a.k.tokens = a.v.tokens = (1 << 30) + 1; }, "k.tokens is 1073741825"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Strides, LaunchErrors,
    ::testing::Values(
        Wrong{"last", [](LaunchArgs& a) { a.k.dim_stride = 2; },
              "k.dim_stride is 2; the last dim must be contiguous (1)"},
        Wrong{"negative", [](LaunchArgs& a) { a.v.token_stride = -256; },
              "v.token_stride is -256; strides must not be negative"},
        Wrong{"negative_head", [](LaunchArgs& a) { a.q.head_stride = -8; }, "q.head_stride is -8"},
        Wrong{"odd", [](LaunchArgs& a) { a.k.head_stride = 132; },
              "k.head_stride is 132; it must be a multiple of 8 elements (16 bytes)"},
        Wrong{"overlapping_tokens", [](LaunchArgs& a) { a.q.token_stride = 120; },
              "q.token_stride is 120; rows must not overlap: at least dim, 128 elements"},
        Wrong{"huge_token", [](LaunchArgs& a) { a.k.token_stride = 1 << 25; },
              "k.token_stride is 33554432; it must be below 33554432 elements"},
        Wrong{"past_address_space", [](LaunchArgs& a) { a.q.batch_stride = std::int64_t{1} << 47; },
              "q at address 65536 reaches past the 48-bit address space"},
        Wrong{"overflowing", [](LaunchArgs& a) { a.q.batch_stride = std::numeric_limits<std::int64_t>::max() - 7; },
              "q at address 65536 reaches past the 48-bit address space"},
        Wrong{"broadcast_out", [](LaunchArgs& a) { a.out.head_stride = 0; },
              "out.head_stride is 0; rows must not overlap"},
        Wrong{"broadcast_out_batch", [](LaunchArgs& a) { a.out.batch_stride = 0; }, "out.batch_stride is 0"},
        Wrong{"out_heads_on_tokens",  // every stride alone is wide enough
              [](LaunchArgs& a) {
                a.q = a.out = TensorView::contiguous(0x10000, 1, 2, 2, 128);
                a.k = a.v = TensorView::contiguous(0x20000, 1, 2, 2, 128);
                a.out.token_stride = a.out.head_stride = 128;
              },
              "stride is 128; rows must not overlap: at least what "},
        Wrong{"out_batches_on_heads", [](LaunchArgs& a) { a.out.batch_stride = 5 * 128; },
              "out.batch_stride is 640; rows must not overlap: at least what head_stride reaches, 768 elements"},
        Wrong{"out_last_head_one_access_short", [](LaunchArgs& a) { a.out.token_stride = 6 * 128 - 8; },
              "out.token_stride is 760; rows must not overlap: at least what head_stride reaches, 768 elements"},
        Wrong{"out_tokens_inside_heads",  // [B, H, S, D], heads one access short
              [](LaunchArgs& a) {
                a.out.token_stride = 128;
                a.out.head_stride = 64 * 128 - 8;
              },
              "out.head_stride is 8184; rows must not overlap: at least what token_stride reaches, 8192 elements"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Addresses, LaunchErrors,
    ::testing::Values(Wrong{"null_q", [](LaunchArgs& a) { a.q.address = 0; },
                            "q.address is null; only an empty tensor may be null"},
                      Wrong{"null_v", [](LaunchArgs& a) { a.v.address = 0; }, "v.address is null"},
                      Wrong{"null_out", [](LaunchArgs& a) { a.out.address = 0; }, "out.address is null"},
                      Wrong{"odd_k", [](LaunchArgs& a) { a.k.address += 8; },
                            "k.address is 131080; it must be a multiple of 16 bytes"},
                      Wrong{"beyond", [](LaunchArgs& a) { a.out.address = std::uint64_t{0} - 16; }, "out at address"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    LseAndScale, LaunchErrors,
    ::testing::Values(
        Wrong{"lse_unasked", [](LaunchArgs& a) { a.lse.address = 0x60000; },
              "lse.address is 393216, but the problem writes no LSE"},
        Wrong{"lse_missing", [](LaunchArgs& a) { a.lse = {}; }, "lse.batch is 0; it must be 2, as q.batch", kLse},
        Wrong{"lse_null", [](LaunchArgs& a) { a.lse.address = 0; }, "lse.address is null", kLse},
        Wrong{"lse_odd", [](LaunchArgs& a) { a.lse.address += 2; }, "it must be a multiple of 4 bytes", kLse},
        Wrong{"lse_heads", [](LaunchArgs& a) { a.lse.heads = 2; }, "lse.heads is 2; it must be 6, as q.heads", kLse},
        Wrong{"lse_tokens", [](LaunchArgs& a) { a.lse.tokens = 96; }, "lse.tokens is 96; it must be 64", kLse},
        Wrong{"lse_last", [](LaunchArgs& a) { a.lse.token_stride = 2; }, "lse.token_stride is 2; rows must be", kLse},
        Wrong{"lse_overlap", [](LaunchArgs& a) { a.lse.head_stride = 63; },
              "lse.head_stride is 63; rows must not overlap: at least tokens, 64 elements", kLse},
        Wrong{"lse_batches_on_heads", [](LaunchArgs& a) { a.lse.batch_stride = 5 * 64; },
              "lse.batch_stride is 320; rows must not overlap: at least what head_stride reaches, 384 elements", kLse},
        Wrong{"lse_heads_and_batches_equal", [](LaunchArgs& a) { a.lse.batch_stride = a.lse.head_stride = 64; },
              "rows must not overlap: at least what ", kLse},
        Wrong{"lse_negative", [](LaunchArgs& a) { a.lse.batch_stride = -64; }, "lse.batch_stride is -64", kLse},
        Wrong{"scale_nan", [](LaunchArgs& a) { a.softmax_scale = std::numeric_limits<float>::quiet_NaN(); },
              "softmax_scale is nan; it must be finite"},
        Wrong{"scale_infinite", [](LaunchArgs& a) { a.softmax_scale = std::numeric_limits<float>::infinity(); },
              "softmax_scale is inf"},
        Wrong{"scale_overflow", [](LaunchArgs& a) { a.softmax_scale = 3e38f; },
              "it must be finite, also when multiplied by log2(e)"}),
    [](const auto& test) { return test.param.name; });

constexpr AttentionProblem kFp8{.dtype = DType::kFp8E4M3};
constexpr AttentionProblem kQuantised{.compute = Compute::kFp8};

INSTANTIATE_TEST_SUITE_P(
    EightBit, LaunchErrors,
    ::testing::Values(
        Wrong{"odd_stride", [](LaunchArgs& a) { a.k.head_stride = 136; },
              "k.head_stride is 136; it must be a multiple of 16 elements (16 bytes)", kFp8},
        Wrong{"odd_address", [](LaunchArgs& a) { a.v.address += 8; }, "it must be a multiple of 16 bytes", kFp8},
        Wrong{"odd_out", [](LaunchArgs& a) { a.out.head_stride = 132; },
              "out.head_stride is 132; it must be a multiple of 8 elements (16 bytes)", kFp8},
        Wrong{"huge_token", [](LaunchArgs& a) { a.k.token_stride = 1 << 26; },
              "k.token_stride is 67108864; it must be below 67108864 elements", kFp8},
        Wrong{"descale_heads", [](LaunchArgs& a) { a.q_descale = {.address = 0x60000, .batch = 2, .heads = 6}; },
              "q_descale is [2, 6]; it must be [1, 1] or [B, Hk], here [2, 2]", kFp8},
        Wrong{"descale_batch", [](LaunchArgs& a) { a.v_descale = {.address = 0x60000, .batch = 1, .heads = 2}; },
              "v_descale is [1, 2]; it must be [1, 1] or [B, Hk]", kFp8},
        Wrong{"descale_odd", [](LaunchArgs& a) { a.k_descale.address = 0x60002; },
              "k_descale.address is 393218; it must be a multiple of 4 bytes", kFp8},
        Wrong{"descale_beyond",
              [](LaunchArgs& a) {
                a.k_descale = {.address = 0x60000, .batch = 2, .heads = 2, .batch_stride = std::int64_t{1} << 62};
              },
              "k_descale at address 393216 reaches past the 48-bit address space", kFp8},
        Wrong{
            "descale_before",
            [](LaunchArgs& a) { a.k_descale = {.address = 0x60000, .batch = 2, .heads = 2, .head_stride = -0x18001}; },
            "k_descale at address 393216 reaches past the 48-bit address space", kFp8},
        Wrong{"scale_overflow", [](LaunchArgs& a) { a.softmax_scale = 3e37f; },
              "; for FP8 it must be finite, also when multiplied by 8 log2(e)", kFp8},
        Wrong{"scale_overflow_of_fp8_compute", [](LaunchArgs& a) { a.softmax_scale = -3e37f; },
              "; for FP8 it must be finite, also when multiplied by 8 log2(e)", kQuantised},
        Wrong{"descale_of_bf16_and_fp8_compute", [](LaunchArgs& a) { a.k_descale.address = 0x60000; },
              "k_descale.address is 393216, but the inputs are not 8-bit; leave descales out", kQuantised},
        Wrong{"descale_of_bf16", [](LaunchArgs& a) { a.q_descale.address = 0x60000; },
              "q_descale.address is 393216, but the inputs are not 8-bit; leave descales out"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Workspaces, LaunchErrors,
    ::testing::Values(Wrong{"null", [](LaunchArgs& a) { a.workspace.address = 0; },
                            "workspace.address is null; these shapes need ", kQuantised},
                      Wrong{"none", [](LaunchArgs& a) { a.workspace = {}; }, "bytes (Attention::workspace_bytes())",
                            kQuantised},
                      Wrong{"odd", [](LaunchArgs& a) { a.workspace.address += 128; },
                            "workspace.address is 1048704; it must be a multiple of 256 bytes", kQuantised},
                      Wrong{"small", [](LaunchArgs& a) { a.workspace.bytes = 1000; },
                            "workspace.bytes is 1000; these shapes need ", kQuantised},
                      Wrong{"beyond", [](LaunchArgs& a) { a.workspace.address = (std::uint64_t{1} << 48) - 256; },
                            "workspace at address 281474976710400 reaches past the 48-bit address space", kQuantised},
                      Wrong{"wrapping", [](LaunchArgs& a) { a.workspace.address = ~std::uint64_t{255}; },
                            "reaches past the 48-bit address space", kQuantised}),
    [](const auto& test) { return test.param.name; });

TEST(Workspaces, one_byte_less_than_needed_is_refused_with_the_number) {
  LaunchArgs args = good(kQuantised);
  const std::size_t needed = args.workspace.bytes;
  EXPECT_GE(needed, 2 * (64 * 6 + 2 * 96 * 2) * 128u);  // a byte an element of q, k and v
  args.workspace.bytes = needed - 1;
  const auto launch = prepare_launch(kQuantised, {8, 256}, args);
  ASSERT_FALSE(launch);
  EXPECT_THAT(launch.error().message,
              HasSubstr("is " + std::to_string(needed - 1) + "; these shapes need " + std::to_string(needed)));
}

TEST(Workspaces, bytes_are_refused_for_shapes_that_do_not_fit) {
  LaunchArgs args = good({});
  args.k.heads = args.v.heads = 4;
  const auto bytes = workspace_bytes(kQuantised, args);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(bytes.error().message, HasSubstr("q.heads is 6 and k.heads is 4"));
}

}  // namespace
}  // namespace zyfa
