#include "schedules/compile.h"

#include <cstddef>

#include "schedules/attention/forward.h"
#include "schedules/attention/fp8.h"
#include "schedules/dsl/lower.h"
#include "schedules/dsl/plan.h"
#include "schedules/quantise/quantise.h"
#include "schedules/select/kernel_args.h"
#include "schedules/select/placement.h"
#include "schedules/select/quantise_args.h"
#include "schedules/select/select.h"

namespace zyfa::schedules {
namespace {

std::string attention_symbol(const KernelSpec& spec, const Placement& placement) {
  std::string symbol = "zyfa_attention_forward_" + std::string(name_of(spec.element));
  symbol += "_d" + std::to_string(spec.head_dim_qk);
  symbol += spec.mask == MaskKind::kCausal ? "_causal" : "_full";
  if (spec.lse == LseOutput::kWritten) symbol += "_lse";
  if (spec.element != ElementType::kBf16) {
    symbol += "_" + std::string(name_of(spec.probability)) + "_" + std::string(name_of(spec.block_exponents));
    symbol += "_" + std::string(name_of(spec.form));
    if (spec.near_keys != NearKeys::kSame) symbol += "_near";
    if (spec.row_sum != RowSum::kAuto) symbol += "_" + std::string(name_of(spec.row_sum));
    if (spec.byte_rounding != ByteRounding::kNearest) symbol += "_" + std::string(name_of(spec.byte_rounding));
  }
  return symbol + "_" + placement.name;
}

std::string quantise_symbol(const KernelSpec& spec, const Placement& placement) {
  std::string symbol = "zyfa_" + std::string(name_of(spec.family)) + "_" + std::string(name_of(spec.operand)) + "_" +
                       std::string(name_of(spec.element)) + "_d" + std::to_string(spec.head_dim_qk);
  if (spec.rotation == Rotation::kHadamard) symbol += "_hadamard";
  if (spec.smoothing == Smoothing::kMean) symbol += "_mean";
  if (spec.scales == ScaleScope::kTensor) symbol += "_tensor";
  if (spec.feeds == ScoreForm::kFolded) symbol += "_folded";
  return symbol + "_" + placement.name;
}

class ArgumentList {
 public:
  void tensor(const std::string& name, std::size_t at) {
    add(name, at, 8, true);
    add(name + "_token_stride", at + offsetof(TensorArgs, token_stride), 8);
    add(name + "_head_stride", at + offsetof(TensorArgs, head_stride), 8);
    add(name + "_batch_stride", at + offsetof(TensorArgs, batch_stride), 8);
  }
  void descale(const std::string& name, std::size_t at) {
    add(name, at, 8, true);
    add(name + "_batch_stride", at + offsetof(DescaleArgs, batch_stride), 8);
    add(name + "_head_stride", at + offsetof(DescaleArgs, head_stride), 8);
  }
  void pointer(const std::string& name, std::size_t at) { add(name, at, 8, true); }
  void value(const std::string& name, std::size_t at, std::uint32_t size) { add(name, at, size); }

  std::vector<jit::KernelArgument> arguments;

 private:
  void add(const std::string& name, std::size_t at, std::uint32_t size, bool is_pointer = false) {
    arguments.push_back({name, static_cast<std::uint32_t>(at), size, is_pointer});
  }
};

std::vector<jit::KernelArgument> attention_arguments() {
  using Args = AttentionForwardArgs;
  ArgumentList list;
  list.tensor("q", offsetof(Args, q));
  list.tensor("k", offsetof(Args, k));
  list.tensor("v", offsetof(Args, v));
  list.tensor("o", offsetof(Args, o));
  list.pointer("lse", offsetof(Args, lse_address));
  list.value("lse_head_stride", offsetof(Args, lse_head_stride), 8);
  list.value("lse_batch_stride", offsetof(Args, lse_batch_stride), 8);
  list.value("query_length", offsetof(Args, query_length), 4);
  list.value("key_length", offsetof(Args, key_length), 4);
  list.value("head_ratio_magic", offsetof(Args, head_ratio_magic), 4);
  list.value("score_scale_log2", offsetof(Args, score_scale_log2), 4);
  list.descale("q_descale", offsetof(Args, q_descale));
  list.descale("k_descale", offsetof(Args, k_descale));
  list.descale("v_descale", offsetof(Args, v_descale));
  list.tensor("q_near", offsetof(Args, q_near));
  list.tensor("k_near", offsetof(Args, k_near));
  list.tensor("v_near", offsetof(Args, v_near));
  return std::move(list.arguments);
}

std::vector<jit::KernelArgument> quantise_arguments() {
  using Args = QuantiseArgs;
  ArgumentList list;
  list.tensor("input", offsetof(Args, input));
  list.tensor("codes", offsetof(Args, codes));
  list.pointer("partials", offsetof(Args, partials));
  list.value("partials_head_stride", offsetof(Args, partials_head_stride), 8);
  list.value("partials_batch_stride", offsetof(Args, partials_batch_stride), 8);
  list.descale("descale", offsetof(Args, descale));
  list.descale("key_descale", offsetof(Args, key_descale));
  list.value("tokens", offsetof(Args, tokens), 4);
  list.value("group_tokens", offsetof(Args, group_tokens), 4);
  list.value("heads", offsetof(Args, heads), 4);
  list.value("partial_count", offsetof(Args, partial_count), 4);
  list.value("entry_count", offsetof(Args, entry_count), 4);
  list.value("score_mantissa", offsetof(Args, score_mantissa), 4);
  return std::move(list.arguments);
}

// What the object declares, but for what lowering fills in; the quantiser keeps inputs that are denormal.
jit::KernelDeclaration declaration_of(const KernelSpec& spec, const Placement& placement) {
  jit::KernelDeclaration declaration;
  if (spec.family == Family::kAttentionForward) {
    declaration.symbol = attention_symbol(spec, placement);
    declaration.kernarg_bytes = sizeof(AttentionForwardArgs);
    declaration.arguments = attention_arguments();
  } else {
    declaration.symbol = quantise_symbol(spec, placement);
    declaration.kernarg_bytes = sizeof(QuantiseArgs);
    declaration.arguments = quantise_arguments();
    declaration.f32_denormals = true;
  }
  return declaration;
}

// Tokens of a workgroup at a time.
std::uint32_t token_tile(const KernelSpec& spec, const Placement& placement) {
  return (spec.family == Family::kAttentionForward ? placement.queries : kQuantiseBlockTokens) * placement.waves;
}

}  // namespace

Expected<Algorithm> algorithm_of(const KernelSpec& spec, const Placement& placement) {
  if (spec.family != Family::kAttentionForward && placement.queries != Placement().queries) {
    return make_error(ErrorCode::kScheduleError, "placement '" + placement.name +
                                                     "' has queries=" + std::to_string(placement.queries) +
                                                     " for a quantiser, which has none; allowed: 32, the default");
  }
  switch (spec.family) {
    case Family::kQuantiseStatistics:
      return quantise_statistics(spec);
    case Family::kQuantise:
      return quantise(spec);
    case Family::kAttentionForward:
      break;
  }
  return spec.element == ElementType::kBf16 ? attention_forward(spec, placement)
                                            : attention_forward_fp8(spec, placement);
}

Expected<CompiledKernel> compile_kernel(const KernelSpec& spec) {
  Expected<Placement> placement = parse_placement(spec.placement);
  if (!placement) return tl::unexpected(placement.error());
  Expected<Algorithm> algorithm = algorithm_of(spec, *placement);
  if (!algorithm) return tl::unexpected(algorithm.error());
  Expected<Plan> plan = make_plan(*algorithm, *placement);
  if (!plan) return tl::unexpected(plan.error());
  Expected<LoweredKernel> lowered = lower(*plan, declaration_of(spec, *placement));
  if (!lowered) return tl::unexpected(lowered.error());

  const jit::KernelDeclaration& declared = lowered->declaration;
  CompiledKernel kernel;
  kernel.object = std::move(lowered->object);
  kernel.register_map = std::move(lowered->register_map);
  kernel.schedule_chart = chart(*plan);
  kernel.info = {.symbol = declared.symbol,
                 .waves = placement->waves,
                 .query_tile = token_tile(spec, *placement),
                 .vgprs = declared.vgprs,
                 .agprs = declared.agprs,
                 .sgprs = declared.sgprs,
                 .lds_bytes = declared.lds_bytes,
                 .kernarg_bytes = declared.kernarg_bytes,
                 .instructions = lowered->instructions};
  return kernel;
}

}  // namespace zyfa::schedules
