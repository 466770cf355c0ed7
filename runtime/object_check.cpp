#include "runtime/object_check.h"

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "jit/object/code_object.h"
#include "runtime/kernel_key.h"
#include "schedules/select/kernel_args.h"
#include "schedules/select/quantise_args.h"

namespace zyfa {
namespace {

// e_flags of kTarget: machine 0x4f, xnack off 0x200, sramecc on 0xc00 (LLVM AMDGPUUsage, ELF header e_flags V4).
constexpr std::uint32_t kTargetFlags = 0xe4f;
static_assert(kTarget == std::string_view("gfx950:sramecc+:xnack-"));

std::uint32_t argument_bytes(schedules::Family family) {
  const bool attends = family == schedules::Family::kAttentionForward;
  return attends ? sizeof(schedules::AttentionForwardArgs) : sizeof(schedules::QuantiseArgs);
}

struct Comparison {
  std::string_view what;
  std::uint32_t found, expected;
};

Status compare(std::string_view kernel, std::initializer_list<Comparison> comparisons) {
  for (const Comparison& comparison : comparisons) {
    if (comparison.found != comparison.expected) {
      return make_error(ErrorCode::kCorruptData,
                        "kernel '" + std::string(kernel) + "': " + std::string(comparison.what) + " is " +
                            std::to_string(comparison.found) + ", expected " + std::to_string(comparison.expected));
    }
  }
  return {};
}

Status check_registers(const jit::KernelImage& kernel, const schedules::KernelInfo& info) {
  const std::uint32_t needed = info.agprs > 0 ? kernel.accum_offset() + info.agprs : info.vgprs;
  if (info.vgprs <= kernel.accum_offset() && needed <= kernel.total_vgprs()) return {};
  return make_error(ErrorCode::kCorruptData, "kernel '" + kernel.name + "': its descriptor allocates " +
                                                 std::to_string(kernel.total_vgprs()) +
                                                 " vector registers with AGPRs from " +
                                                 std::to_string(kernel.accum_offset()) + "; the entry says it uses " +
                                                 std::to_string(info.vgprs) + " and " + std::to_string(info.agprs));
}

}  // namespace

Status check_object(std::span<const std::byte> bytes, const KernelMetadata& metadata, schedules::Family family) {
  Expected<jit::CodeObject> object = jit::read_code_object(std::vector<std::byte>(bytes.begin(), bytes.end()));
  if (!object) return tl::unexpected(std::move(object.error()));
  const std::string target = "amdgcn-amd-amdhsa--" + std::string(kTarget);
  if (object->target != target) {
    return make_error(ErrorCode::kArchMismatch,
                      "the code object is for '" + object->target + "'; expected '" + target + "'");
  }
  if (object->e_flags != kTargetFlags) {
    return make_error(ErrorCode::kArchMismatch,
                      fmt::format("the code object has e_flags 0x{:x}; expected 0x{:x}, which is {}", object->e_flags,
                                  kTargetFlags, kTarget));
  }
  const std::uint32_t version = object->abi_version + 2u;  // ELF ABI version 3 is code object version 5
  if (version != kCodeObjectVersion) {
    return make_error(ErrorCode::kArchMismatch, "the code object has version " + std::to_string(version) +
                                                    "; expected " + std::to_string(kCodeObjectVersion));
  }
  const schedules::KernelInfo& info = metadata.info;
  const jit::KernelImage* kernel = object->find(info.symbol);
  if (kernel == nullptr || !kernel->has_metadata) {
    return make_error(ErrorCode::kCorruptData,
                      "the code object has no kernel '" + info.symbol + "' with descriptor and metadata");
  }
  const std::uint32_t arguments = argument_bytes(family);
  if (Status status = compare(kernel->name, {{"descriptor LDS", kernel->descriptor_lds, info.lds_bytes},
                                             {"metadata LDS", kernel->group_bytes, info.lds_bytes},
                                             {"descriptor kernel arguments", kernel->descriptor_kernarg, arguments},
                                             {"metadata kernel arguments", kernel->kernarg_bytes, arguments},
                                             {"entry kernel arguments", info.kernarg_bytes, arguments},
                                             {"descriptor scratch", kernel->descriptor_private, 0},
                                             {"metadata scratch", kernel->private_bytes, 0},
                                             {"metadata wave size", kernel->wavefront_size, 64},
                                             {"metadata workgroup size", kernel->max_workgroup, 64 * info.waves}});
      !status) {
    return status;
  }
  return check_registers(*kernel, info);
}

Status check_entry(const cache::Entry& entry) {
  Expected<KernelMetadata> metadata = decode_kernel_metadata(entry.metadata());
  if (!metadata) return tl::unexpected(std::move(metadata.error()));
  Expected<KeyContents> key = read_key(entry.key());
  if (!key) return tl::unexpected(std::move(key.error()));
  return check_object(entry.object(), *metadata, key->spec.family);
}

}  // namespace zyfa
