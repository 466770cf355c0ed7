// Packing of launch arguments against bytes worked out by hand, and the arithmetic of the head ratio.
#include "runtime/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace zyfa {
namespace {

constexpr KernelShape kShape{.waves = 8, .query_tile = 256};

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

LaunchArgs dense(std::int64_t batch, std::int64_t queries, std::int64_t keys, std::int64_t heads,
                 std::int64_t key_heads) {
  return {.q = TensorView::contiguous(0x10000, batch, queries, heads, 128),
          .k = TensorView::contiguous(0x20000, batch, keys, key_heads, 128),
          .v = TensorView::contiguous(0x30000, batch, keys, key_heads, 128),
          .out = TensorView::contiguous(0x40000, batch, queries, heads, 128)};
}

PreparedLaunch prepared(const AttentionProblem& problem, const LaunchArgs& args, KernelShape shape = kShape) {
  const Expected<std::optional<PreparedLaunch>> launch = prepare_launch(problem, shape, args);
  EXPECT_TRUE(launch) << to_string(launch.error());
  EXPECT_TRUE(launch && launch->has_value());
  return launch && *launch ? **launch : PreparedLaunch{};
}

// B 2, Sq 300, Sk 7, H 6, Hk 2. Each line is one field, little-endian.
TEST(Packing, matches_bytes_worked_out_by_hand) {
  LaunchArgs args = dense(2, 300, 7, 6, 2);
  args.q.address = 0x00007f0123456780;
  args.v.token_stride = 1 << 20;  // strided: 2 MiB between tokens
  args.v.head_stride = 256;
  args.v.batch_stride = 0;  // one V for both batches
  args.lse = LseView::contiguous(0x50004, 2, 6, 300);
  args.lse.batch_stride = 0x200000000;
  args.softmax_scale = 0.25f;
  const PreparedLaunch launch = prepared({.lse = Lse::kWritten}, args);
  EXPECT_EQ(hex(std::as_bytes(std::span(&launch.args, 1))),
            "80674523017f0000"                               // q address
            "0006000000000000"                               // q token stride 6 * 128 * 2 = 0x600
            "0001000000000000"                               // q head stride 128 * 2
            "0008070000000000"                               // q batch stride 300 * 0x600 = 0x70800
            "0000020000000000"                               // k address
            "0002000000000000"                               // k token stride 2 * 128 * 2
            "0001000000000000"                               // k head stride
            "000e000000000000"                               // k batch stride 7 * 0x200
            "0000030000000000"                               // v address
            "0000200000000000"                               // v token stride 2 MiB
            "0002000000000000"                               // v head stride 256 * 2
            "0000000000000000"                               // v batch stride
            "0000040000000000"                               // out address
            "0006000000000000"                               // out token stride
            "0001000000000000"                               // out head stride
            "0008070000000000"                               // out batch stride
            "0400050000000000"                               // lse address
            "b004000000000000"                               // lse head stride 300 * 4 = 0x4b0
            "0000000008000000"                               // lse batch stride 0x200000000 * 4
            "2c010000"                                       // Sq 300
            "07000000"                                       // Sk 7
            "abaaaa2a"                                       // ceil(2^31 / 3) = 715827883 = 0x2aaaaaab
            "3baab83e"                                       // 0.25 * log2(e) = 0.36067376 = 0x3eb8aa3b
                + std::string(2 * (3 * 24 + 3 * 32), '0'));  // three descales and three near tensors: none
}

// Elements of one byte in, of two bytes out. B 2, Sq 300, Sk 7, H 6, Hk 2.
TEST(Packing, of_8_bit_inputs_matches_bytes_worked_out_by_hand) {
  LaunchArgs args = dense(2, 300, 7, 6, 2);
  args.q_descale = {.address = 0x60004};  // one value
  args.k_descale = {.address = 0x70000, .batch = 2, .heads = 2, .batch_stride = 10, .head_stride = 3};
  args.v_descale = {.address = 0, .batch = 9, .heads = 9, .batch_stride = 1, .head_stride = 1};  // 1.0
  const PreparedLaunch launch = prepared({.dtype = DType::kFp8E4M3}, args);
  const auto bytes = std::as_bytes(std::span(&launch.args, 1));
  EXPECT_EQ(hex(bytes.first(128)),
            "0000010000000000"  // q address
            "0003000000000000"  // q token stride 6 * 128
            "8000000000000000"  // q head stride 128
            "0084030000000000"  // q batch stride 300 * 0x300 = 0x38400
            "0000020000000000"  // k address
            "0001000000000000"  // k token stride 2 * 128
            "8000000000000000"  // k head stride
            "0007000000000000"  // k batch stride 7 * 0x100
            "0000030000000000"  // v
            "0001000000000000"
            "8000000000000000"
            "0007000000000000"
            "0000040000000000"  // out address
            "0006000000000000"  // out token stride 6 * 128 * 2
            "0001000000000000"
            "0008070000000000");
  EXPECT_EQ(hex(bytes.subspan(168)),
            "0400060000000000"  // q_descale address
            "0000000000000000"  // batch stride
            "0000000000000000"  // head stride
            "0000070000000000"  // k_descale address
            "2800000000000000"  // batch stride 10 * 4
            "0c00000000000000"  // head stride 3 * 4
            "0000000000000000"  // v_descale: null
            "0000000000000000"
            "0000000000000000" +
                std::string(2 * 96, '0'));
}

// MLA: q and k of 192 and v of 128.
TEST(Packing, of_8_bit_inputs_takes_strides_of_16_elements_and_any_stride_of_descales) {
  const AttentionProblem problem{.dtype = DType::kFp8E4M3, .head_dim_qk = 192};
  LaunchArgs args = dense(2, 5, 7, 2, 2);
  args.q = TensorView::contiguous(0x10000, 2, 5, 2, 192);
  args.k = TensorView::contiguous(0x20000, 2, 7, 2, 192);
  args.k.head_stride = 192 + 16;
  args.k.token_stride = 2 * 208;
  args.k_descale = {.address = 0x70004, .batch = 2, .heads = 2, .batch_stride = 0, .head_stride = -1};
  const PreparedLaunch launch = prepared(problem, args);
  EXPECT_EQ(launch.args.k.head_stride, 208u);
  EXPECT_EQ(launch.args.k_descale.batch_stride, 0u);
  EXPECT_EQ(launch.args.k_descale.head_stride, ~std::uint64_t{3});  // -4
  EXPECT_FLOAT_EQ(launch.args.score_scale_log2, 0.10411756f);       // log2(e) / sqrt(192)
}

// Outputs whose rows are disjoint in ways that no packed tensor has.
TEST(Packing, takes_every_disjoint_output) {
  struct Layout {
    const char* name;
    std::int64_t token, head, batch;
  };
  for (const Layout& layout : {Layout{"BSHD", 768, 128, 300 * 768}, Layout{"BHSD", 128, 300 * 128, 6 * 300 * 128},
                               Layout{"SBHD", 2 * 768, 128, 768}, Layout{"HBSD", 128, 2 * 300 * 128, 300 * 128},
                               Layout{"every other row, the last without its gap", 6 * 256 - 128, 256, 300 * 1536}}) {
    LaunchArgs args = dense(2, 300, 7, 6, 2);
    args.out.token_stride = layout.token;
    args.out.head_stride = layout.head;
    args.out.batch_stride = layout.batch;
    EXPECT_TRUE(prepare_launch({}, kShape, args)) << layout.name;
  }
  LaunchArgs single = dense(1, 300, 7, 1, 1);  // strides of axes of one index are never used
  single.out.head_stride = single.out.batch_stride = 0;
  EXPECT_TRUE(prepare_launch({}, kShape, single));
  LaunchArgs lse = dense(2, 300, 7, 6, 2);
  lse.lse = LseView::contiguous(0x50004, 2, 6, 300);
  lse.lse.batch_stride = 300;  // [H, B, S]
  lse.lse.head_stride = 600;
  EXPECT_TRUE(prepare_launch({.lse = Lse::kWritten}, kShape, lse));
  LaunchArgs inputs = dense(2, 300, 7, 6, 2);  // inputs may share rows between heads and batches
  inputs.q.head_stride = inputs.q.batch_stride = inputs.k.head_stride = inputs.v.batch_stride = 0;
  EXPECT_TRUE(prepare_launch({}, kShape, inputs));
}

TEST(Packing, default_scale_is_one_over_sqrt_of_the_query_head_dim) {
  const PreparedLaunch launch = prepared({}, dense(1, 1, 1, 1, 1));
  // log2(e) / sqrt(128) = 0.12751743...
  EXPECT_FLOAT_EQ(launch.args.score_scale_log2, 0.12751743f);
}

TEST(Packing, grid_is_query_tiles_by_heads_by_batch) {
  struct Row {
    std::int64_t queries;
    std::uint32_t tiles;
  };
  for (const Row& row : {Row{1, 1}, Row{255, 1}, Row{256, 1}, Row{257, 2}, Row{4096, 16}}) {
    const PreparedLaunch launch = prepared({}, dense(3, row.queries, 64, 5, 5));
    EXPECT_THAT(launch.shape.grid, ::testing::ElementsAre(row.tiles, 5, 3)) << row.queries;
    EXPECT_THAT(launch.shape.block, ::testing::ElementsAre(512, 1, 1));
    EXPECT_EQ(launch.shape.dynamic_lds, 0u);
  }
  LaunchArgs longest = dense(1, std::int64_t{1} << 30, 1, 1, 1);
  EXPECT_EQ(prepared({}, longest, {.waves = 1, .query_tile = 32}).shape.grid[0], 1u << 25);
}

TEST(Packing, strides_of_axes_of_one_are_ignored) {
  LaunchArgs args = dense(1, 1, 1, 1, 1);
  for (TensorView* view : {&args.q, &args.k, &args.v, &args.out}) {
    view->batch_stride = -1;
    view->head_stride = 3;
    view->token_stride = std::int64_t{1} << 62;
  }
  const PreparedLaunch launch = prepared({}, args);
  for (const schedules::TensorArgs& tensor : {launch.args.q, launch.args.k, launch.args.v, launch.args.o}) {
    EXPECT_EQ(tensor.batch_stride, 0u);
    EXPECT_EQ(tensor.head_stride, 0u);
    EXPECT_EQ(tensor.token_stride, 256u);
  }
}

TEST(Packing, lse_fields_are_zero_without_lse) {
  const PreparedLaunch launch = prepared({}, dense(2, 4, 4, 2, 1));
  EXPECT_EQ(launch.args.lse_address, 0u);
  EXPECT_EQ(launch.args.lse_head_stride, 0u);
  EXPECT_EQ(launch.args.lse_batch_stride, 0u);
}

TEST(Packing, empty_problems_need_no_launch_and_no_addresses) {
  for (LaunchArgs args : {dense(0, 5, 5, 4, 2), dense(2, 0, 5, 4, 2), dense(2, 5, 5, 0, 0)}) {
    for (TensorView* view : {&args.q, &args.out}) view->address = 0;
    if (args.k.batch == 0 || args.k.heads == 0) args.k.address = args.v.address = 0;
    const Expected<std::optional<PreparedLaunch>> launch = prepare_launch({}, kShape, args);
    ASSERT_TRUE(launch) << to_string(launch.error());
    EXPECT_FALSE(launch->has_value());
  }
}

TEST(Packing, no_keys_is_a_launch_and_needs_no_key_addresses) {
  LaunchArgs args = dense(2, 5, 0, 4, 2);
  args.k.address = args.v.address = 0;
  const PreparedLaunch launch = prepared({}, args);
  EXPECT_EQ(launch.args.key_length, 0);
  EXPECT_EQ(launch.args.query_length, 5);
}

constexpr AttentionProblem kQuantised{.head_dim_qk = 192, .compute = Compute::kFp8};

LaunchArgs quantised_args() {
  LaunchArgs args = dense(2, 5, 7, 6, 2);
  args.q = TensorView::contiguous(0x10000, 2, 5, 6, 192);
  args.k = TensorView::contiguous(0x20000, 2, 7, 2, 192);
  args.workspace = {.address = 0x1000000, .bytes = workspace_bytes(kQuantised, args).value()};
  return args;
}

TEST(Quantised, attention_reads_dense_codes_and_descales_in_the_workspace) {
  const LaunchArgs args = quantised_args();
  const PreparedLaunch launch = prepared(kQuantised, args);
  struct Expected {
    const schedules::TensorArgs& tensor;
    std::uint64_t token, head, batch, bytes;
  };
  const schedules::AttentionForwardArgs& packed = launch.args;
  const auto inside = [&](std::uint64_t address, std::uint64_t bytes) {
    return address >= args.workspace.address && address + bytes <= args.workspace.address + args.workspace.bytes;
  };
  for (const Expected& e : {Expected{packed.q, 6 * 192, 192, 5 * 6 * 192, 2 * 5 * 6 * 192},
                            Expected{packed.k, 2 * 192, 192, 7 * 2 * 192, 2 * 7 * 2 * 192},
                            Expected{packed.v, 2 * 128, 128, 7 * 2 * 128, 2 * 7 * 2 * 128}}) {
    EXPECT_EQ(e.tensor.token_stride, e.token);
    EXPECT_EQ(e.tensor.head_stride, e.head);
    EXPECT_EQ(e.tensor.batch_stride, e.batch);
    EXPECT_EQ(e.tensor.address % 16, 0u);
    EXPECT_TRUE(inside(e.tensor.address, e.bytes));
  }
  for (const schedules::DescaleArgs& descale : {packed.q_descale, packed.k_descale, packed.v_descale}) {
    EXPECT_TRUE(inside(descale.address + descale.batch_stride + descale.head_stride, 4));
    EXPECT_EQ(descale.head_stride, 4u);
    EXPECT_EQ(descale.batch_stride, 8u);
  }
  EXPECT_EQ(packed.o.address, args.out.address);
  EXPECT_EQ(packed.o.token_stride, 6u * 128 * 2);
  EXPECT_EQ(packed.q_near.address, 0u);
  EXPECT_FLOAT_EQ(packed.score_scale_log2, 0.10411756f);  // log2(e) / sqrt(192)
}

TEST(Quantised, the_near_keys_come_from_the_inputs) {
  AttentionProblem problem = kQuantised;
  problem.fp8.near_keys = NearKeys::kBf16;
  const LaunchArgs args = quantised_args();
  const schedules::AttentionForwardArgs packed = prepared(problem, args).args;
  EXPECT_EQ(packed.q_near.address, args.q.address);
  EXPECT_EQ(packed.k_near.address, args.k.address);
  EXPECT_EQ(packed.v_near.address, args.v.address);
  EXPECT_EQ(packed.q_near.token_stride, 6u * 192 * 2);
  EXPECT_EQ(packed.v_near.batch_stride, 7u * 2 * 128 * 2);
}

TEST(Quantised, every_kernel_of_the_plan_is_one_that_compile_obtains) {
  const std::size_t kernels = quantise_specs(kQuantised).size();
  EXPECT_GT(kernels, 0u);
  const PreparedLaunch launch = prepared(kQuantised, quantised_args());
  ASSERT_GT(launch.quantise_count, 0u);
  for (std::size_t i = 0; i < launch.quantise_count; ++i) EXPECT_LT(launch.quantisation[i].kernel, kernels);
  EXPECT_EQ(prepared({}, dense(1, 1, 1, 1, 1)).quantise_count, 0u);
  EXPECT_TRUE(quantise_specs({}).empty());
}

TEST(WorkspaceBytes, are_zero_without_work_or_quantisation) {
  EXPECT_EQ(workspace_bytes({}, dense(2, 5, 7, 4, 2)).value(), 0u);
  EXPECT_EQ(workspace_bytes({.dtype = DType::kFp8E4M3}, dense(2, 5, 7, 4, 2)).value(), 0u);
  const AttentionProblem quantised{.compute = Compute::kFp8};
  EXPECT_GT(workspace_bytes(quantised, dense(2, 5, 7, 4, 2)).value(), 0u);
  for (const LaunchArgs& empty : {dense(0, 5, 7, 4, 2), dense(2, 0, 7, 4, 2), dense(2, 5, 7, 0, 0)}) {
    EXPECT_EQ(workspace_bytes(quantised, empty).value(), 0u);
    EXPECT_FALSE(prepare_launch(quantised, kShape, empty).value());  // and no workspace is asked for
  }
}

// The bytes tell nothing of addresses and strides.
TEST(WorkspaceBytes, depend_on_shapes_alone) {
  const AttentionProblem quantised{.compute = Compute::kFp8};
  LaunchArgs args = dense(2, 5, 7, 4, 2);
  const std::size_t bytes = workspace_bytes(quantised, args).value();
  args.q.address = args.k.address = args.v.address = args.out.address = 0;
  args.k.token_stride = 1 << 20;
  EXPECT_EQ(workspace_bytes(quantised, args).value(), bytes);
}

// mulhi(2h + 1, magic) must be h / r for every head and every ratio.
TEST(HeadRatioMagic, divides_exactly_for_every_head_and_ratio) {
  std::uint64_t wrong = 0;
  for (std::uint32_t ratio = 1; ratio <= 32768; ratio += ratio < 512 ? 1 : 61) {
    const std::uint64_t magic = head_ratio_magic(ratio);
    for (std::uint32_t head = 0; head < 32768; ++head) {
      wrong += static_cast<std::uint32_t>(((2 * head + 1) * magic) >> 32) != head / ratio;
    }
  }
  EXPECT_EQ(wrong, 0u);
  const std::uint64_t magic = head_ratio_magic(32768);
  EXPECT_EQ(((2 * 32767 + 1) * magic) >> 32, 0u);
}

}  // namespace
}  // namespace zyfa
