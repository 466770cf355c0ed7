#include "runtime/quantise_plan.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/kernel_choice.h"
#include "schedules/select/select.h"

namespace zyfa {
namespace {

using schedules::Family;
using schedules::KernelSpec;
using schedules::kQuantiseBlockTokens;
using schedules::Operand;
using schedules::QuantiseArgs;

using Wide = unsigned __int128;

constexpr unsigned kAddressBits = 48;  // of a flat address on gfx9
constexpr double kLog2E = 1.4426950408889634074;
// Waves of a launch, where the tensor has work for that many: four on each of 1,024 SIMDs, enough loads in flight to
// fill the memory's latency.
constexpr std::uint64_t kWaves = 4096;
// Blocks of rows that are worth the start of a wave, which reads the statistics first.
constexpr std::uint64_t kLeastBlocks = 8, kLeastSmoothingBlocks = 32;
// With one smoothed scale a tensor every wave of the quantise kernel reads the partials of all heads.
constexpr std::uint64_t kTensorSmoothingPartials = 128;

constexpr std::array kOperands{Operand::kKey, Operand::kValue, Operand::kQuery};  // k first: q's folded scale reads k's

KernelSpec spec_for(const AttentionProblem& problem, const KernelSpec& attention, Family family, Operand operand) {
  KernelSpec spec;
  spec.family = family;
  spec.operand = operand;
  spec.head_dim_qk = problem.head_dim_qk;
  const bool quantises = family == Family::kQuantise;
  if (quantises && problem.fp8.scales == ScaleGranularity::kTensor) spec.scales = schedules::ScaleScope::kTensor;
  if (operand == Operand::kValue) {
    spec.element = schedules::ElementType::kFp8E4M3;
    spec.head_dim_qk = problem.head_dim_v;
  } else {
    spec.element = attention.element;
    if (problem.fp8.rotation == Rotation::kHadamard) spec.rotation = schedules::Rotation::kHadamard;
  }
  if (operand == Operand::kKey && problem.fp8.smoothing == KeySmoothing::kMean) {
    spec.smoothing = schedules::Smoothing::kMean;
  }
  if (operand == Operand::kQuery && quantises) spec.feeds = attention.form;
  if (const schedules::Row* row = schedules::select_row(schedules::kernel_table(), spec)) {
    spec.placement = row->placement;
  }
  return spec;
}

schedules::Smoothing smoothing_of(const AttentionProblem& problem, Operand operand) {
  const bool smooths = operand == Operand::kKey && problem.fp8.smoothing == KeySmoothing::kMean;
  return smooths ? schedules::Smoothing::kMean : schedules::Smoothing::kNone;
}

// One operand's extents, how its work is cut, and where its parts lie.
struct Part {
  Operand operand{};
  std::uint64_t tokens = 0, heads = 0, dim = 0;                                   // heads: all of them
  std::uint64_t group_heads = 1;                                                  // that share a key head
  std::uint64_t partials = 1, partial_bytes = 4;                                  // of a (batch, key head)
  std::uint64_t statistics_tokens = 0, quantise_tokens = 0, quantise_groups = 1;  // tokens: of a workgroup
  std::uint64_t codes = 0, descale = 0, partial = 0;                              // offsets in the workspace
};

struct Layout {
  std::uint64_t batch = 0, key_heads = 0, bytes = 0;
  std::array<Part, kOperands.size()> parts;
};

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

void cut_work(const AttentionProblem& problem, std::uint64_t entries, Part& part) {
  const bool smooths = smoothing_of(problem, part.operand) == schedules::Smoothing::kMean;
  const std::uint64_t blocks = std::max<std::uint64_t>(divide_up(part.tokens, kQuantiseBlockTokens), 1);
  std::uint64_t wanted = std::min<std::uint64_t>(kWaves / entries, schedules::kMaxPartials);
  std::uint64_t least_blocks = kLeastBlocks;
  if (smooths) {
    // By the tokens alone: the rounding of the mean then does not depend on what else is in the batch.
    wanted = schedules::kMaxSmoothingPartials;
    if (problem.fp8.scales == ScaleGranularity::kTensor) wanted = std::min(wanted, kTensorSmoothingPartials / entries);
    least_blocks = kLeastSmoothingBlocks;
  }
  wanted = std::clamp<std::uint64_t>(wanted, 1, blocks);
  std::uint64_t group_blocks = divide_up(blocks, wanted);
  part.partials = divide_up(blocks, group_blocks);
  part.partial_bytes =
      schedules::partial_bytes(smoothing_of(problem, part.operand), static_cast<std::uint32_t>(part.dim));
  part.statistics_tokens = group_blocks * kQuantiseBlockTokens;
  const auto fair_share = static_cast<std::uint64_t>((Wide{blocks} * entries + kWaves - 1) / kWaves);
  group_blocks = std::min(blocks, std::max(fair_share, divide_up(least_blocks, part.group_heads)));
  part.quantise_groups = divide_up(blocks, group_blocks);
  part.quantise_tokens = group_blocks * kQuantiseBlockTokens;
}

tl::unexpected<Error> refuse(std::string message) {
  return make_error(ErrorCode::kInvalidArgument, std::move(message));
}

// Lays the workspace out; bytes is 0 when there is no output.
Expected<Layout> lay_out(const AttentionProblem& problem, const LaunchArgs& args) {
  struct Extent {
    const char* name;
    std::int64_t value;
  };
  for (const Extent& extent :
       {Extent{"q.batch", args.q.batch}, Extent{"q.tokens", args.q.tokens}, Extent{"q.heads", args.q.heads},
        Extent{"k.tokens", args.k.tokens}, Extent{"k.heads", args.k.heads}}) {
    if (extent.value < 0 || extent.value > (std::int64_t{1} << 30)) {
      return refuse(std::string(extent.name) + " is " + std::to_string(extent.value) + "; allowed are 0 to 2^30");
    }
  }
  Layout layout;
  if (args.q.batch == 0 || args.q.tokens == 0 || args.q.heads == 0) return layout;
  if (args.k.heads == 0 || args.q.heads % args.k.heads != 0) {
    return refuse("q.heads is " + std::to_string(args.q.heads) + " and k.heads is " + std::to_string(args.k.heads) +
                  "; q.heads must be a multiple of k.heads");
  }
  layout.batch = static_cast<std::uint64_t>(args.q.batch);
  layout.key_heads = static_cast<std::uint64_t>(args.k.heads);
  const std::uint64_t entries = layout.batch * layout.key_heads;
  Wide bytes = 0;
  const auto place = [&bytes](std::uint64_t& offset, Wide size) {
    offset = static_cast<std::uint64_t>(bytes);
    bytes += (size + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  };
  for (std::size_t i = 0; i < layout.parts.size(); ++i) {
    Part& part = layout.parts[i];
    part.operand = kOperands[i];
    const bool query = part.operand == Operand::kQuery;
    part.tokens = static_cast<std::uint64_t>(query ? args.q.tokens : args.k.tokens);
    part.heads = static_cast<std::uint64_t>(query ? args.q.heads : args.k.heads);
    part.dim = part.operand == Operand::kValue ? problem.head_dim_v : problem.head_dim_qk;
    part.group_heads = part.heads / layout.key_heads;
    cut_work(problem, entries, part);
    place(part.codes, Wide{layout.batch} * part.tokens * part.heads * part.dim);
    place(part.descale, Wide{entries} * sizeof(float));
    place(part.partial, Wide{entries} * part.partials * part.partial_bytes);
    if (bytes > Wide{1} << kAddressBits) {
      return refuse("the quantised inputs need more than the 48-bit address space: batch " +
                    std::to_string(args.q.batch) + ", " + std::to_string(args.q.tokens) + " queries of " +
                    std::to_string(args.q.heads) + " heads, " + std::to_string(args.k.tokens) + " keys of " +
                    std::to_string(args.k.heads) + " heads");
    }
  }
  layout.bytes = static_cast<std::uint64_t>(bytes);
  return layout;
}

// A stride of an axis with at most one index is never used, whatever it holds.
std::uint64_t stride_bytes(std::int64_t stride, std::int64_t extent, std::int64_t unused) {
  constexpr std::uint64_t kBf16Bytes = 2;
  return kBf16Bytes * static_cast<std::uint64_t>(extent > 1 ? stride : unused);
}

schedules::TensorArgs pack(const TensorView& view) {
  return {.address = view.address,
          .token_stride = stride_bytes(view.token_stride, view.tokens, view.dim),
          .head_stride = stride_bytes(view.head_stride, view.heads, 0),
          .batch_stride = stride_bytes(view.batch_stride, view.batch, 0)};
}

// |softmax_scale| * log2(e) as the attention kernel takes it, less its exponent; 1 stands in for a scale of 0.
float score_mantissa(const AttentionProblem& problem, std::optional<float> softmax_scale) {
  const double scale = softmax_scale ? static_cast<double>(*softmax_scale) : 1.0 / std::sqrt(problem.head_dim_qk);
  int exponent = 0;
  const float packed = std::abs(static_cast<float>(scale * kLog2E));
  return 2 * std::frexp(packed > 0 ? packed : static_cast<float>(kLog2E), &exponent);
}

class Planner {
 public:
  Planner(const AttentionProblem& problem, const LaunchArgs& args, const Layout& layout)
      : problem_(problem), args_(args), layout_(layout), base_(args.workspace.address) {}

  QuantisePlan run() {
    for (const Part& part : layout_.parts) add_statistics(part);
    for (const Part& part : layout_.parts) add_quantise(part);
    return plan_;
  }

 private:
  [[nodiscard]] const TensorView& view_of(Operand operand) const {
    return operand == Operand::kQuery ? args_.q : operand == Operand::kKey ? args_.k : args_.v;
  }

  [[nodiscard]] QuantiseArgs common(const Part& part) const {
    const std::uint64_t stride = part.partials * part.partial_bytes;
    return {.input = pack(view_of(part.operand)),
            .partials = base_ + part.partial,
            .partials_head_stride = stride,
            .partials_batch_stride = stride * layout_.key_heads,
            .tokens = static_cast<std::int32_t>(part.tokens),
            .heads = static_cast<std::int32_t>(part.group_heads)};
  }

  void add(std::uint64_t groups, const QuantiseArgs& args) {
    plan_.launches[plan_.count] = {
        .kernel = plan_.count,
        .shape = {.grid = {static_cast<std::uint32_t>(groups), static_cast<std::uint32_t>(layout_.key_heads),
                           static_cast<std::uint32_t>(layout_.batch)},
                  .block = {64, 1, 1}},
        .args = args};
    ++plan_.count;
  }

  void add_statistics(const Part& part) {
    QuantiseArgs args = common(part);
    args.group_tokens = static_cast<std::int32_t>(part.statistics_tokens);
    add(part.partials, args);
  }

  void add_quantise(const Part& part) {
    QuantiseArgs args = common(part);
    args.group_tokens = static_cast<std::int32_t>(part.quantise_tokens);
    const TensorView codes = TensorView::contiguous(
        base_ + part.codes, static_cast<std::int64_t>(layout_.batch), static_cast<std::int64_t>(part.tokens),
        static_cast<std::int64_t>(part.heads), static_cast<std::int64_t>(part.dim));
    args.codes = {.address = codes.address,
                  .token_stride = static_cast<std::uint64_t>(codes.token_stride),
                  .head_stride = static_cast<std::uint64_t>(codes.head_stride),
                  .batch_stride = static_cast<std::uint64_t>(codes.batch_stride)};
    args.partial_count = static_cast<std::uint32_t>(part.partials);
    if (problem_.fp8.scales == ScaleGranularity::kTensor) share_scale(part, args);
    const DescaleView descale{.address = base_ + part.descale,
                              .batch = static_cast<std::int64_t>(layout_.batch),
                              .heads = static_cast<std::int64_t>(layout_.key_heads),
                              .batch_stride = static_cast<std::int64_t>(layout_.key_heads),
                              .head_stride = 1};
    args.descale = {
        .address = descale.address, .batch_stride = sizeof(float) * layout_.key_heads, .head_stride = sizeof(float)};
    switch (part.operand) {
      case Operand::kQuery:
        args.key_descale = key_descale_;
        args.score_mantissa = score_mantissa(problem_, args_.softmax_scale);
        plan_.q = codes;
        plan_.q_descale = descale;
        break;
      case Operand::kKey:
        key_descale_ = args.descale;
        plan_.k = codes;
        plan_.k_descale = descale;
        break;
      case Operand::kValue:
        plan_.v = codes;
        plan_.v_descale = descale;
        break;
    }
    add(part.quantise_groups, args);
  }

  // Every workgroup reduces the partials of all batches and key heads.
  void share_scale(const Part& part, QuantiseArgs& args) const {
    const auto entries = static_cast<std::uint32_t>(layout_.batch * layout_.key_heads);
    if (smoothing_of(problem_, part.operand) == schedules::Smoothing::kMean) {
      args.entry_count = entries;
      return;
    }
    args.partials_head_stride = args.partials_batch_stride = 0;
    args.partial_count *= entries;
  }

  const AttentionProblem& problem_;
  const LaunchArgs& args_;
  const Layout& layout_;
  DeviceAddress base_;
  schedules::DescaleArgs key_descale_{};
  QuantisePlan plan_{};
};

}  // namespace

std::vector<KernelSpec> quantise_specs(const AttentionProblem& problem) {
  std::vector<KernelSpec> specs;
  if (problem.compute != Compute::kFp8) return specs;
  const KernelSpec attention = spec_of(problem);
  for (const Family family : {Family::kQuantiseStatistics, Family::kQuantise}) {
    for (const Operand operand : kOperands) specs.push_back(spec_for(problem, attention, family, operand));
  }
  return specs;
}

Expected<std::size_t> quantise_workspace_bytes(const AttentionProblem& problem, const LaunchArgs& args) {
  if (problem.compute != Compute::kFp8) return 0;
  Expected<Layout> layout = lay_out(problem, args);
  if (!layout) return tl::unexpected(std::move(layout.error()));
  return layout->bytes;
}

Expected<QuantisePlan> plan_quantisation(const AttentionProblem& problem, const LaunchArgs& args) {
  Expected<Layout> layout = lay_out(problem, args);
  if (!layout) return tl::unexpected(std::move(layout.error()));
  if (layout->bytes == 0) return QuantisePlan{};
  return Planner(problem, args, *layout).run();
}

}  // namespace zyfa
