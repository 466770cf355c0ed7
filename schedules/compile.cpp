#include "schedules/compile.h"

#include <cstddef>

#include "jit/llvm/assembler.h"
#include "jit/passes/passes.h"
#include "jit/verify/verifier.h"
#include "schedules/attention/forward.h"
#include "schedules/dsl/build.h"
#include "schedules/dsl/plan.h"
#include "schedules/select/kernel_args.h"
#include "schedules/select/placement.h"

namespace zyfa::schedules {
namespace {

std::string symbol_of(const KernelSpec& spec, const Placement& placement) {
  std::string symbol = "zyfa_attention_forward_bf16_d" + std::to_string(spec.head_dim_qk);
  symbol += spec.mask == MaskKind::kCausal ? "_causal" : "_full";
  if (spec.lse == LseOutput::kWritten) symbol += "_lse";
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
  return arguments;
}

// Registers a wave may use so that the placement's waves fit the CU's four SIMDs (gfx950-isa.md 5.4): 256 for up to two
// waves a SIMD, all of them arch VGPRs.
constexpr jit::RegisterLimits kLimits{.vgprs = 256, .agprs = 0, .sgprs = 100};

Status verify_or_explain(const std::vector<std::byte>& object) {
  Expected<jit::CodeObject> read = jit::read_code_object(object);
  if (!read) return tl::unexpected(read.error());
  Expected<jit::VerifyReport> report = jit::verify_object(*read);
  if (!report) return tl::unexpected(report.error());
  if (report->findings.empty()) return {};
  std::vector<std::string> details;
  for (const jit::Finding& finding : report->findings) details.push_back(to_string(finding));
  return make_error(ErrorCode::kCompileError,
                    "the static verifier has " + std::to_string(details.size()) + " finding(s) on the compiled kernel",
                    std::move(details));
}

}  // namespace

Expected<CompiledKernel> compile_kernel(const KernelSpec& spec) {
  Expected<Placement> placement = parse_placement(spec.placement);
  if (!placement) return tl::unexpected(placement.error());
  Expected<Algorithm> algorithm = attention_forward(spec);
  if (!algorithm) return tl::unexpected(algorithm.error());
  Expected<Plan> plan = make_plan(*algorithm, *placement);
  if (!plan) return tl::unexpected(plan.error());

  CompiledKernel kernel;
  kernel.schedule_chart = chart(*plan);
  kernel.info.symbol = symbol_of(spec, *placement);
  Expected<jit::Listing> listing = build_listing(*plan, kernel.info.symbol);
  if (!listing) return tl::unexpected(listing.error());
  Expected<jit::RegisterMap> registers = jit::allocate(*listing, kLimits);
  if (!registers) return tl::unexpected(registers.error());
  if (Status s = jit::insert_waits(*listing); !s) return tl::unexpected(s.error());
  if (Status s = jit::insert_wait_states(*listing); !s) return tl::unexpected(s.error());

  kernel.register_map = registers->to_text();
  kernel.info.waves = placement->waves;
  kernel.info.query_tile = kWaveQueries * placement->waves;
  kernel.info.vgprs = registers->vgprs_used;
  kernel.info.agprs = registers->agprs_used;
  kernel.info.sgprs = registers->sgprs_used;
  kernel.info.lds_bytes = plan->lds_bytes;
  kernel.info.kernarg_bytes = sizeof(AttentionForwardArgs);
  kernel.info.instructions = static_cast<std::uint32_t>(listing->code.size());
  const jit::KernelDeclaration declaration{.symbol = kernel.info.symbol,
                                           .vgprs = kernel.info.vgprs,
                                           .agprs = kernel.info.agprs,
                                           .sgprs = kernel.info.sgprs,
                                           .lds_bytes = kernel.info.lds_bytes,
                                           .kernarg_bytes = kernel.info.kernarg_bytes,
                                           .workgroup_size = 64 * placement->waves,
                                           .arguments = kernel_arguments()};
  Expected<std::vector<std::byte>> object = jit::assemble(*listing, declaration);
  if (!object) return tl::unexpected(object.error());
  if (Status s = verify_or_explain(*object); !s) return tl::unexpected(s.error());
  kernel.object = std::move(*object);
  return kernel;
}

}  // namespace zyfa::schedules
