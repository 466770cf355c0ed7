#include "runtime/launch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

namespace zyfa {
namespace {

constexpr std::int64_t kMaxBatch = 65535;  // grid z
constexpr std::int64_t kMaxHeads = 32768;  // exactness of head_ratio_magic (kernel_args.h)
constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;
constexpr std::int64_t kOutputBytes = 2;   // of an element: bf16
constexpr std::int64_t kAccessBytes = 16;  // the kernels load and store 16 bytes at a time
constexpr std::int64_t kFloatBytes = 4;    // of the LSE and of descales
// A tile of 64 tokens is addressed with 32-bit byte offsets: 63 strides and one row must stay below 2^32.
constexpr std::int64_t kMaxTokenStrideBytes = std::int64_t{1} << 26;
constexpr unsigned kAddressBits = 48;  // of a flat address on gfx9
constexpr double kLog2E = 1.4426950408889634074;
constexpr double kCodesPerBinade = 8.0;  // the largest unit that an FP8 kernel counts scores in

// Of an element of q, k and v.
std::int64_t input_bytes(const AttentionProblem& problem) { return problem.dtype == DType::kFp8E4M3 ? 1 : 2; }

std::string number(std::int64_t value) { return std::to_string(value); }

tl::unexpected<Error> refuse(std::string message) {
  return make_error(ErrorCode::kInvalidArgument, std::move(message));
}

// "k.heads is 3; ..."
tl::unexpected<Error> refuse(std::string_view tensor, std::string_view field, std::int64_t value,
                             const std::string& allowed) {
  return refuse(std::string(tensor) + "." + std::string(field) + " is " + number(value) + "; " + allowed);
}

struct Extent {
  std::string_view field;
  std::int64_t value, expected;
  std::string_view source;  // where the expected value comes from
};

Status check_extents(std::string_view tensor, std::initializer_list<Extent> extents) {
  for (const Extent& extent : extents) {
    if (extent.value != extent.expected) {
      return refuse(tensor, extent.field, extent.value,
                    "it must be " + number(extent.expected) + ", " + std::string(extent.source));
    }
  }
  return {};
}

Status check_range(std::string_view tensor, std::string_view field, std::int64_t value, std::int64_t most) {
  if (value >= 0 && value <= most) return {};
  return refuse(tensor, field, value, "allowed are 0 to " + number(most));
}

Status check_shapes(const AttentionProblem& problem, const LaunchArgs& args) {
  const TensorView &q = args.q, &k = args.k, &v = args.v, &out = args.out;
  for (Status status : {check_range("q", "batch", q.batch, kMaxBatch), check_range("q", "heads", q.heads, kMaxHeads),
                        check_range("q", "tokens", q.tokens, kMaxLength), check_range("k", "heads", k.heads, kMaxHeads),
                        check_range("k", "tokens", k.tokens, kMaxLength)}) {
    if (!status) return status;
  }
  for (Status status : {check_extents("q", {{"dim", q.dim, problem.head_dim_qk, "the problem's head_dim_qk"}}),
                        check_extents("k", {{"dim", k.dim, problem.head_dim_qk, "the problem's head_dim_qk"},
                                            {"batch", k.batch, q.batch, "as q.batch"}}),
                        check_extents("v", {{"dim", v.dim, problem.head_dim_v, "the problem's head_dim_v"},
                                            {"batch", v.batch, q.batch, "as q.batch"},
                                            {"tokens", v.tokens, k.tokens, "as k.tokens"},
                                            {"heads", v.heads, k.heads, "as k.heads"}}),
                        check_extents("out", {{"dim", out.dim, problem.head_dim_v, "the problem's head_dim_v"},
                                              {"batch", out.batch, q.batch, "as q.batch"},
                                              {"tokens", out.tokens, q.tokens, "as q.tokens"},
                                              {"heads", out.heads, q.heads, "as q.heads"}})}) {
    if (!status) return status;
  }
  if (q.heads > 0 && (k.heads == 0 || q.heads % k.heads != 0)) {
    return refuse("q.heads is " + number(q.heads) + " and k.heads is " + number(k.heads) +
                  "; q.heads must be a multiple of k.heads");
  }
  return {};
}

// A stride of an axis with at most one index is never used, whatever it holds (frameworks leave anything there).
std::int64_t effective(std::int64_t stride, std::int64_t extent, std::int64_t unused) {
  return extent > 1 ? stride : unused;
}

struct Axis {
  std::string_view field;
  std::int64_t extent, stride;
};

// Strides of axes that are walked: not negative, whole accesses, and the last byte inside the address space.
Status check_axes(std::string_view tensor, DeviceAddress address, const std::array<Axis, 3>& axes,
                  std::int64_t row_elements, std::int64_t element_bytes, std::int64_t alignment) {
  unsigned __int128 end = address;
  for (const Axis& axis : axes) {
    if (axis.extent <= 1) continue;
    if (axis.stride < 0) return refuse(tensor, axis.field, axis.stride, "strides must not be negative");
    if (axis.stride % (alignment / element_bytes) != 0) {
      return refuse(tensor, axis.field, axis.stride,
                    "it must be a multiple of " + number(alignment / element_bytes) + " elements (" +
                        number(alignment) + " bytes)");
    }
    end += static_cast<unsigned __int128>(axis.extent - 1) * static_cast<std::uint64_t>(axis.stride) *
           static_cast<std::uint64_t>(element_bytes);
  }
  end += static_cast<std::uint64_t>(row_elements * element_bytes);
  if (end > (static_cast<unsigned __int128>(1) << kAddressBits)) {
    return refuse(std::string(tensor) + " at address " + std::to_string(address) +
                  " reaches past the 48-bit address space with its strides");
  }
  return {};
}

Status check_address(std::string_view tensor, DeviceAddress address, std::int64_t alignment) {
  if (address == 0) return refuse(std::string(tensor) + ".address is null; only an empty tensor may be null");
  if (address % static_cast<std::uint64_t>(alignment) != 0) {
    return refuse(std::string(tensor) + ".address is " + std::to_string(address) + "; it must be a multiple of " +
                  number(alignment) + " bytes");
  }
  return {};
}

bool is_empty(const TensorView& view) { return view.batch == 0 || view.tokens == 0 || view.heads == 0; }

std::array<Axis, 3> axes_of(const TensorView& view) {
  return {{{"token_stride", view.tokens, view.token_stride},
           {"head_stride", view.heads, view.head_stride},
           {"batch_stride", view.batch, view.batch_stride}}};
}

Status check_tensor(std::string_view name, const TensorView& view, std::int64_t element_bytes) {
  if (view.dim_stride != 1) return refuse(name, "dim_stride", view.dim_stride, "the last dim must be contiguous (1)");
  if (is_empty(view)) return {};
  if (Status status = check_address(name, view.address, kAccessBytes); !status) return status;
  if (Status status = check_axes(name, view.address, axes_of(view), view.dim, element_bytes, kAccessBytes); !status) {
    return status;
  }
  if (view.tokens > 1 && view.token_stride < view.dim) {
    return refuse(name, "token_stride", view.token_stride,
                  "rows must not overlap: at least dim, " + number(view.dim) + " elements");
  }
  if (view.tokens > 1 && view.token_stride >= kMaxTokenStrideBytes / element_bytes) {
    return refuse(name, "token_stride", view.token_stride,
                  "it must be below " + number(kMaxTokenStrideBytes / element_bytes) +
                      " elements (2^26 bytes: offsets inside a tile have 32 bits)");
  }
  return {};
}

// What is written twice would race. By growing stride, each axis must step over everything the axes before it reach;
// check_axes() has bounded the products.
Status check_disjoint(std::string_view tensor, std::array<Axis, 3> axes, std::string_view row,
                      std::int64_t row_elements) {
  std::ranges::sort(axes, {}, &Axis::stride);
  std::string reached_by(row);
  std::int64_t reach = row_elements;
  for (const Axis& axis : axes) {
    if (axis.extent <= 1) continue;
    if (axis.stride < reach) {
      return refuse(tensor, axis.field, axis.stride,
                    "rows must not overlap: at least " + reached_by + ", " + number(reach) + " elements");
    }
    reach += (axis.extent - 1) * axis.stride;
    reached_by = "what " + std::string(axis.field) + " reaches";
  }
  return {};
}

Status check_out(const TensorView& out) {
  if (Status status = check_tensor("out", out, kOutputBytes); !status || is_empty(out)) return status;
  return check_disjoint("out", axes_of(out), "dim", out.dim);
}

Status check_lse(const AttentionProblem& problem, const TensorView& q, const LseView& lse) {
  if (problem.lse == Lse::kNone) {
    if (lse.address == 0) return {};
    return refuse("lse.address is " + std::to_string(lse.address) +
                  ", but the problem writes no LSE; compile it with Lse::kWritten or leave lse out");
  }
  if (Status status = check_extents("lse", {{"batch", lse.batch, q.batch, "as q.batch"},
                                            {"heads", lse.heads, q.heads, "as q.heads"},
                                            {"tokens", lse.tokens, q.tokens, "as q.tokens"}});
      !status) {
    return status;
  }
  if (lse.token_stride != 1) return refuse("lse", "token_stride", lse.token_stride, "rows must be contiguous (1)");
  if (lse.batch == 0 || lse.heads == 0 || lse.tokens == 0) return {};
  if (Status status = check_address("lse", lse.address, kFloatBytes); !status) return status;
  const std::array<Axis, 3> axes{
      {{"head_stride", lse.heads, lse.head_stride}, {"batch_stride", lse.batch, lse.batch_stride}, {"", 1, 0}}};
  if (Status status = check_axes("lse", lse.address, axes, lse.tokens, kFloatBytes, kFloatBytes); !status)
    return status;
  return check_disjoint("lse", axes, "tokens", lse.tokens);
}

// Unlike those of tensors, strides may be negative: one load reads one value.
Status check_descale(std::string_view name, const DescaleView& view, const AttentionProblem& problem,
                     const LaunchArgs& args) {
  if (view.address == 0) return {};
  if (problem.dtype != DType::kFp8E4M3) {
    return refuse(std::string(name) + ".address is " + std::to_string(view.address) +
                  ", but the inputs are not 8-bit; leave descales out");
  }
  const bool single = view.batch == 1 && view.heads == 1;
  if (!single && (view.batch != args.q.batch || view.heads != args.k.heads)) {
    return refuse(std::string(name) + " is [" + number(view.batch) + ", " + number(view.heads) +
                  "]; it must be [1, 1] or [B, Hk], here [" + number(args.q.batch) + ", " + number(args.k.heads) + "]");
  }
  if (view.batch == 0 || view.heads == 0) return {};
  if (Status status = check_address(name, view.address, kFloatBytes); !status) return status;
  __int128 first = static_cast<__int128>(view.address), last = first;
  for (const auto& [extent, stride] :
       {std::pair(view.batch, view.batch_stride), std::pair(view.heads, view.head_stride)}) {
    const __int128 reach = static_cast<__int128>(extent - 1) * stride * kFloatBytes;
    (reach < 0 ? first : last) += reach;
  }
  if (first < 0 || last + kFloatBytes > (static_cast<__int128>(1) << kAddressBits)) {
    return refuse(std::string(name) + " at address " + std::to_string(view.address) +
                  " reaches past the 48-bit address space with its strides");
  }
  return {};
}

Expected<float> score_scale_log2(const AttentionProblem& problem, std::optional<float> softmax_scale) {
  const double scale = softmax_scale ? static_cast<double>(*softmax_scale) : 1.0 / std::sqrt(problem.head_dim_qk);
  const float packed = static_cast<float>(scale * kLog2E);
  if (!std::isfinite(packed)) {
    return refuse("softmax_scale is " + std::to_string(scale) + "; it must be finite, also when multiplied by log2(e)");
  }
  const bool eight_bit = problem.dtype == DType::kFp8E4M3 || problem.compute == Compute::kFp8;
  if (eight_bit && !std::isfinite(static_cast<float>(kCodesPerBinade * scale * kLog2E))) {
    return refuse("softmax_scale is " + std::to_string(scale) +
                  "; for FP8 it must be finite, also when multiplied by 8 log2(e)");
  }
  return packed;
}

schedules::TensorArgs pack(const TensorView& view, std::int64_t element_bytes) {
  const auto bytes = [&](std::int64_t stride) { return static_cast<std::uint64_t>(stride * element_bytes); };
  return {.address = view.address,
          .token_stride = bytes(effective(view.token_stride, view.tokens, view.dim)),
          .head_stride = bytes(effective(view.head_stride, view.heads, 0)),
          .batch_stride = bytes(effective(view.batch_stride, view.batch, 0))};
}

std::uint64_t pack_float_stride(std::int64_t stride, std::int64_t extent) {
  return static_cast<std::uint64_t>(effective(stride, extent, 0) * kFloatBytes);
}

schedules::DescaleArgs pack(const DescaleView& view) {
  if (view.address == 0) return {};
  return {.address = view.address,
          .batch_stride = pack_float_stride(view.batch_stride, view.batch),
          .head_stride = pack_float_stride(view.head_stride, view.heads)};
}

Status check_workspace(const Workspace& workspace, std::size_t needed) {
  if (needed == 0) return {};
  if (workspace.address == 0) {
    return refuse("workspace.address is null; these shapes need " + std::to_string(needed) +
                  " bytes (Attention::workspace_bytes())");
  }
  if (Status status = check_address("workspace", workspace.address, std::int64_t{kWorkspaceAlignment}); !status)
    return status;
  if (workspace.bytes < needed) {
    return refuse("workspace.bytes is " + std::to_string(workspace.bytes) + "; these shapes need " +
                  std::to_string(needed));
  }
  constexpr std::uint64_t kEnd = std::uint64_t{1} << kAddressBits;
  if (workspace.address > kEnd || needed > kEnd - workspace.address) {
    return refuse("workspace at address " + std::to_string(workspace.address) +
                  " reaches past the 48-bit address space");
  }
  return {};
}

Status check_args(const AttentionProblem& problem, const LaunchArgs& args) {
  if (Status status = check_shapes(problem, args); !status) return status;
  const std::int64_t bytes = input_bytes(problem);
  for (Status status : {check_tensor("q", args.q, bytes), check_tensor("k", args.k, bytes),
                        check_tensor("v", args.v, bytes), check_out(args.out), check_lse(problem, args.q, args.lse),
                        check_descale("q_descale", args.q_descale, problem, args),
                        check_descale("k_descale", args.k_descale, problem, args),
                        check_descale("v_descale", args.v_descale, problem, args)}) {
    if (!status) return status;
  }
  return {};
}

// Plans the quantisation, and has the attention kernel read what it writes.
Status quantise(const AttentionProblem& problem, const LaunchArgs& args, PreparedLaunch& launch) {
  Expected<std::size_t> needed = quantise_workspace_bytes(problem, args);
  if (!needed) return tl::unexpected(std::move(needed.error()));
  if (Status status = check_workspace(args.workspace, *needed); !status) return status;
  Expected<QuantisePlan> plan = plan_quantisation(problem, args);
  if (!plan) return tl::unexpected(std::move(plan.error()));
  launch.quantisation = plan->launches;
  launch.quantise_count = plan->count;
  schedules::AttentionForwardArgs& packed = launch.args;
  if (problem.fp8.near_keys == NearKeys::kBf16) {
    packed.q_near = packed.q;
    packed.k_near = packed.k;
    packed.v_near = packed.v;
  }
  packed.q = pack(plan->q, 1);
  packed.k = pack(plan->k, 1);
  packed.v = pack(plan->v, 1);
  packed.q_descale = pack(plan->q_descale);
  packed.k_descale = pack(plan->k_descale);
  packed.v_descale = pack(plan->v_descale);
  return {};
}

}  // namespace

Expected<std::size_t> workspace_bytes(const AttentionProblem& problem, const LaunchArgs& args) {
  if (Status status = check_shapes(problem, args); !status) return tl::unexpected(std::move(status.error()));
  if (problem.compute != Compute::kFp8 || is_empty(args.q)) return std::size_t{0};
  return quantise_workspace_bytes(problem, args);
}

Expected<std::optional<PreparedLaunch>> prepare_launch(const AttentionProblem& problem, const KernelShape& kernel,
                                                       const LaunchArgs& args) {
  if (Status status = check_args(problem, args); !status) return tl::unexpected(std::move(status.error()));
  Expected<float> scale = score_scale_log2(problem, args.softmax_scale);
  if (!scale) return tl::unexpected(std::move(scale.error()));
  if (is_empty(args.q)) return std::optional<PreparedLaunch>();

  const auto queries = static_cast<std::uint32_t>(args.q.tokens);
  const auto heads = static_cast<std::uint32_t>(args.q.heads);
  PreparedLaunch launch{};
  launch.shape.grid = {(queries + kernel.query_tile - 1) / kernel.query_tile, heads,
                       static_cast<std::uint32_t>(args.q.batch)};
  launch.shape.block = {64 * kernel.waves, 1, 1};
  const std::int64_t bytes = input_bytes(problem);
  const LseView lse = problem.lse == Lse::kWritten ? args.lse : LseView{};
  launch.args = {.q = pack(args.q, bytes),
                 .k = pack(args.k, bytes),
                 .v = pack(args.v, bytes),
                 .o = pack(args.out, kOutputBytes),
                 .lse_address = lse.address,
                 .lse_head_stride = pack_float_stride(lse.head_stride, lse.heads),
                 .lse_batch_stride = pack_float_stride(lse.batch_stride, lse.batch),
                 .query_length = static_cast<std::int32_t>(args.q.tokens),
                 .key_length = static_cast<std::int32_t>(args.k.tokens),
                 .head_ratio_magic = head_ratio_magic(heads / static_cast<std::uint32_t>(args.k.heads)),
                 .score_scale_log2 = *scale,
                 .q_descale = pack(args.q_descale),
                 .k_descale = pack(args.k_descale),
                 .v_descale = pack(args.v_descale)};
  if (problem.compute == Compute::kFp8) {
    if (Status status = quantise(problem, args, launch); !status) return tl::unexpected(std::move(status.error()));
  }
  return std::optional(launch);
}

}  // namespace zyfa
