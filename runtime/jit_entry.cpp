// libzyfa_jit's side of jit_service.h.
#include <utility>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"
#include "jit/verify/dump.h"
#include "jit/verify/verifier.h"
#include "runtime/jit_service.h"
#include "runtime/sim/profile.h"
#include "runtime/sim/profile_picture.h"
#include "runtime/sim/sim_device.h"
#include "schedules/dsl/algorithm.h"
#include "zyfa_generator_id.h"

namespace zyfa {
namespace {

Expected<jit::CodeObject> read(std::span<const std::byte> object) {
  return jit::read_code_object(std::vector<std::byte>(object.begin(), object.end()));
}

Expected<std::string> kernel_named(const jit::CodeObject& object, std::string_view symbol) {
  if (object.kernels.empty()) return make_error(ErrorCode::kNotFound, "the code object holds no kernel");
  if (symbol.empty()) return object.kernels.front().name;
  if (object.find(symbol) != nullptr) return std::string(symbol);
  std::vector<std::string> names;
  for (const jit::KernelImage& kernel : object.kernels) names.push_back("kernel " + kernel.name);
  return make_error(ErrorCode::kNotFound, "the code object has no kernel '" + std::string(symbol) + "'",
                    std::move(names));
}

class Service final : public JitService {
 public:
  Expected<schedules::CompiledKernel> compile_kernel(const schedules::KernelSpec& spec) const override {
    return schedules::compile_kernel(spec);
  }

  Expected<std::string> dump(std::span<const std::byte> bytes, Dump what, std::string_view symbol) const override {
    Expected<jit::CodeObject> object = read(bytes);
    if (!object) return tl::unexpected(std::move(object.error()));
    Expected<std::string> kernel = kernel_named(*object, symbol);
    if (!kernel) return kernel;
    switch (what) {
      case Dump::kIsa:
        return jit::dump_isa(*object, *kernel);
      case Dump::kAssembly:
        return jit::dump_assembly(*object, *kernel);
      case Dump::kMetadata:
        return jit::dump_metadata(*object);
    }
    return make_error(ErrorCode::kInvalidArgument, "unknown kind of dump");
  }

  Expected<VerifyResult> verify(std::span<const std::byte> bytes) const override {
    Expected<jit::CodeObject> object = read(bytes);
    if (!object) return tl::unexpected(std::move(object.error()));
    Expected<jit::VerifyReport> report = jit::verify_object(*object);
    if (!report) return tl::unexpected(std::move(report.error()));
    VerifyResult result;
    result.target = object->target;
    result.instructions = report->instructions;
    result.not_reached = report->not_reached;
    result.notes = std::move(report->notes);
    for (const jit::KernelImage& kernel : object->kernels) result.kernels.push_back(kernel.name);
    for (jit::Finding& finding : report->findings) {
      result.findings.push_back({.kind = std::string(jit::finding_kind_name(finding.kind)),
                                 .offset = finding.offset,
                                 .instruction = std::move(finding.instruction),
                                 .message = std::move(finding.message),
                                 .origin = std::move(finding.origin)});
    }
    return result;
  }

  Expected<std::shared_ptr<SimDevice>> make_sim_device(const SimOptions& options) const override {
    return sim::make_sim_device(options);
  }

  std::vector<ProfileParameter> profile_parameters() const override { return sim::profile_parameter_list(); }

  Status check_profile_parameters(std::span<const std::string> parameters) const override {
    return sim::check_parameters(parameters);
  }

  Expected<std::string> draw(const LaunchProfile& profile, Picture picture,
                             const PictureOptions& options) const override {
    return sim::draw_profile(profile, picture, options);
  }

  Expected<schedules::Found> search_placements(std::span<const schedules::KernelSpec> specs,
                                               const std::vector<schedules::Placement>& starts,
                                               const schedules::SearchOptions& options,
                                               const schedules::SearchCalls& calls) const override {
    schedules::SearchCalls with_algorithms = calls;
    with_algorithms.algorithms =
        [&](const schedules::Placement& placement) -> Expected<std::vector<schedules::Algorithm>> {
      std::vector<schedules::Algorithm> algorithms;
      for (const schedules::KernelSpec& spec : specs) {
        Expected<schedules::Algorithm> algorithm = schedules::algorithm_of(spec, placement);
        if (!algorithm) return tl::unexpected(std::move(algorithm.error()));
        algorithms.push_back(*std::move(algorithm));
      }
      return algorithms;
    };
    return schedules::search(starts, options, with_algorithms);
  }

  std::string llvm_version() const override { return jit::llvm_version(); }
};

}  // namespace
}  // namespace zyfa

const zyfa::JitEntry* zyfa_jit_service_v1() {
  static const zyfa::Service service;
  static const zyfa::JitEntry entry{zyfa::kGeneratorId, &service};
  return &entry;
}
