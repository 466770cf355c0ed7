#include "schedules/dsl/lower.h"

#include <algorithm>

#include "jit/isa/op_info.h"
#include "jit/llvm/assembler.h"
#include "jit/passes/passes.h"
#include "jit/verify/verifier.h"
#include "schedules/dsl/build.h"

namespace zyfa::schedules {
namespace {

// Registers a wave may use so that two workgroups of 4 waves, or one of 8, fit the CU's four SIMDs (gfx950-isa.md 5.4):
// 256 for two waves a SIMD, all of them arch VGPRs. A wave of 64 queries has its SIMD for itself.
jit::RegisterLimits limits_of(const Placement& placement) {
  return {.vgprs = 256, .agprs = static_cast<std::uint16_t>(placement.queries > 32 ? 256 : 0), .sgprs = 100};
}

Status verify(const std::vector<std::byte>& object) {
  Expected<jit::CodeObject> read = jit::read_code_object(object);
  if (!read) return tl::unexpected(read.error());
  Expected<jit::VerifyReport> report = jit::verify_object(*read);
  if (!report) return tl::unexpected(report.error());
  if (report->findings.empty()) return {};
  std::vector<std::string> details;
  for (const jit::Finding& finding : report->findings) details.push_back(to_string(finding));
  // Named first: the order in which arguments are evaluated is not fixed.
  std::string message =
      "the static verifier has " + std::to_string(details.size()) + " finding(s) on the compiled kernel";
  return make_error(ErrorCode::kCompileError, std::move(message), std::move(details));
}

}  // namespace

Expected<LoweredKernel> lower(const Plan& plan, jit::KernelDeclaration request) {
  Expected<jit::Listing> listing = build_listing(plan, request.symbol);
  if (!listing) return tl::unexpected(listing.error());
  Expected<jit::RegisterMap> registers = jit::allocate(*listing, limits_of(plan.placement));
  if (!registers) return tl::unexpected(registers.error());
  if (Status s = jit::insert_waits(*listing); !s) return tl::unexpected(s.error());
  if (Status s = jit::insert_wait_states(*listing); !s) return tl::unexpected(s.error());
  jit::align_loops(*listing);

  LoweredKernel kernel;
  kernel.declaration = std::move(request);
  kernel.declaration.vgprs = registers->vgprs_used;
  kernel.declaration.agprs = registers->agprs_used;
  kernel.declaration.sgprs = registers->sgprs_used;
  kernel.declaration.lds_bytes = plan.lds_bytes;
  kernel.declaration.workgroup_size = 64 * plan.placement.waves;
  kernel.instructions = static_cast<std::uint32_t>(std::count_if(
      listing->code.begin(), listing->code.end(),
      [](const jit::Instruction& instruction) { return jit::op_info(instruction.op).unit != jit::Unit::kPseudo; }));
  kernel.register_map = registers->to_text();
  Expected<std::vector<std::byte>> object = jit::assemble(*listing, kernel.declaration);
  if (!object) return tl::unexpected(object.error());
  if (Status s = verify(*object); !s) return tl::unexpected(s.error());
  kernel.object = std::move(*object);
  return kernel;
}

}  // namespace zyfa::schedules
