#include "schedules/compile.h"

#include <cstddef>

#include "schedules/attention/forward.h"
#include "schedules/attention/fp8.h"
#include "schedules/dsl/lower.h"
#include "schedules/dsl/plan.h"
#include "schedules/select/kernel_args.h"
#include "schedules/select/placement.h"
#include "schedules/select/select.h"

namespace zyfa::schedules {
namespace {

std::string symbol_of(const KernelSpec& spec, const Placement& placement) {
  std::string symbol = "zyfa_attention_forward_" + std::string(name_of(spec.element));
  symbol += "_d" + std::to_string(spec.head_dim_qk);
  symbol += spec.mask == MaskKind::kCausal ? "_causal" : "_full";
  if (spec.lse == LseOutput::kWritten) symbol += "_lse";
  if (spec.element != ElementType::kBf16) {
    symbol += "_" + std::string(name_of(spec.probability)) + "_" + std::string(name_of(spec.block_exponents));
    symbol += "_" + std::string(name_of(spec.form));
    if (spec.byte_rounding != ByteRounding::kNearest) symbol += "_" + std::string(name_of(spec.byte_rounding));
  }
  return symbol + "_" + placement.name;
}

std::vector<jit::KernelArgument> kernel_arguments() {
  std::vector<jit::KernelArgument> arguments;
  const auto tensor = [&](const std::string& name, std::uint32_t at) {
    arguments.push_back({name, at, 8, true});
    arguments.push_back({name + "_token_stride", at + 8, 8, false});
    arguments.push_back({name + "_head_stride", at + 16, 8, false});
    arguments.push_back({name + "_batch_stride", at + 24, 8, false});
  };
  using Args = AttentionForwardArgs;
  tensor("q", offsetof(Args, q));
  tensor("k", offsetof(Args, k));
  tensor("v", offsetof(Args, v));
  tensor("o", offsetof(Args, o));
  arguments.push_back({"lse", offsetof(Args, lse_address), 8, true});
  arguments.push_back({"lse_head_stride", offsetof(Args, lse_head_stride), 8, false});
  arguments.push_back({"lse_batch_stride", offsetof(Args, lse_batch_stride), 8, false});
  arguments.push_back({"query_length", offsetof(Args, query_length), 4, false});
  arguments.push_back({"key_length", offsetof(Args, key_length), 4, false});
  arguments.push_back({"head_ratio_magic", offsetof(Args, head_ratio_magic), 4, false});
  arguments.push_back({"score_scale_log2", offsetof(Args, score_scale_log2), 4, false});
  const auto descale = [&](const std::string& name, std::uint32_t at) {
    arguments.push_back({name, at, 8, true});
    arguments.push_back({name + "_batch_stride", at + 8, 8, false});
    arguments.push_back({name + "_head_stride", at + 16, 8, false});
  };
  descale("q_descale", offsetof(Args, q_descale));
  descale("k_descale", offsetof(Args, k_descale));
  descale("v_descale", offsetof(Args, v_descale));
  tensor("q_near", offsetof(Args, q_near));
  tensor("k_near", offsetof(Args, k_near));
  tensor("v_near", offsetof(Args, v_near));
  return arguments;
}

}  // namespace

Expected<CompiledKernel> compile_kernel(const KernelSpec& spec) {
  Expected<Placement> placement = parse_placement(spec.placement);
  if (!placement) return tl::unexpected(placement.error());
  Expected<Algorithm> algorithm =
      spec.element == ElementType::kBf16 ? attention_forward(spec) : attention_forward_fp8(spec);
  if (!algorithm) return tl::unexpected(algorithm.error());
  Expected<Plan> plan = make_plan(*algorithm, *placement);
  if (!plan) return tl::unexpected(plan.error());

  jit::KernelDeclaration request;
  request.symbol = symbol_of(spec, *placement);
  request.kernarg_bytes = sizeof(AttentionForwardArgs);
  request.arguments = kernel_arguments();
  Expected<LoweredKernel> lowered = lower(*plan, std::move(request));
  if (!lowered) return tl::unexpected(lowered.error());

  const jit::KernelDeclaration& declared = lowered->declaration;
  CompiledKernel kernel;
  kernel.object = std::move(lowered->object);
  kernel.register_map = std::move(lowered->register_map);
  kernel.schedule_chart = chart(*plan);
  kernel.info = {.symbol = declared.symbol,
                 .waves = placement->waves,
                 .query_tile = kWaveQueries * placement->waves,
                 .vgprs = declared.vgprs,
                 .agprs = declared.agprs,
                 .sgprs = declared.sgprs,
                 .lds_bytes = declared.lds_bytes,
                 .kernarg_bytes = declared.kernarg_bytes,
                 .instructions = lowered->instructions};
  return kernel;
}

}  // namespace zyfa::schedules
