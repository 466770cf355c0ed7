// Field positions: gfx950-isa.md 5.1. The binary words are computed here independently of LLVM and compared with what
// it wrote, so a directive that LLVM reads differently is found at assembly time.
#include "jit/object/descriptor.h"

#include <algorithm>

#include <fmt/format.h>

namespace zyfa::jit {
namespace {

constexpr std::uint32_t kMaxLds = 163840;
// SGPRs are allocated in sixteens and cost nothing up to 102; the granule field rounds in eights, so declare plenty.
constexpr std::uint32_t kDeclaredSgprs = 98;  // 104 with the reserved ones: whole granules
constexpr std::uint32_t kReservedSgprs = 6;   // VCC, flat_scratch, xnack_mask
constexpr std::uint16_t kKernargPointer = 1 << 3;

std::uint32_t field(std::uint32_t word, unsigned low, unsigned width) { return word >> low & ((1u << width) - 1); }

tl::unexpected<Error> bad(std::string message) { return make_error(ErrorCode::kInvalidArgument, std::move(message)); }

bool is_identifier(std::string_view name) {
  const auto ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 1024 && std::all_of(name.begin(), name.end(), ok) &&
         !(name.front() >= '0' && name.front() <= '9');
}

// "L12" is what labels print as.
bool is_label_name(std::string_view name) {
  return name.size() > 1 && name.front() == 'L' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status check_arguments(const KernelDeclaration& d) {
  std::uint64_t end = 0;
  for (const KernelArgument& argument : d.arguments) {
    if (!is_identifier(argument.name)) {
      return bad(fmt::format("kernel argument name \"{}\" is not an identifier of letters, digits, '_' and '.'",
                             argument.name));
    }
    if (argument.offset < end || argument.size == 0) {
      return bad(fmt::format("kernel argument {} at offset {} with {} bytes overlaps the one before it or is empty",
                             argument.name, argument.offset, argument.size));
    }
    end = std::uint64_t{argument.offset} + argument.size;
  }
  if (end > d.kernarg_bytes) {
    return bad(fmt::format("kernel arguments end at byte {} of a {} byte argument segment", end, d.kernarg_bytes));
  }
  return {};
}

}  // namespace

Status check_declaration(const KernelDeclaration& d) {
  if (!is_identifier(d.symbol) || is_label_name(d.symbol)) {
    return bad(fmt::format("kernel symbol \"{}\" is not an identifier of letters, digits, '_' and '.' (and not L<n>)",
                           d.symbol));
  }
  struct Limit {
    std::string_view what;
    std::uint32_t value, low, high;
  };
  const Limit limits[] = {{"arch VGPRs", d.vgprs, 0, 256},
                          {"AGPRs", d.agprs, 0, 256},
                          {"SGPRs", d.sgprs, 0, 102},
                          {"LDS bytes", d.lds_bytes, 0, kMaxLds},
                          {"work-items", d.workgroup_size, 1, 1024},
                          {"argument bytes", d.kernarg_bytes, 0, 65536}};
  for (const Limit& limit : limits) {
    if (limit.value < limit.low || limit.value > limit.high) {
      return bad(fmt::format("kernel {} declares {} {}; allowed are {} to {}", d.symbol, limit.value, limit.what,
                             limit.low, limit.high));
    }
  }
  return check_arguments(d);
}

KernelImage expected_image(const KernelDeclaration& d) {
  const std::uint32_t accum_offset = std::max(4u, (d.vgprs + 3) / 4 * 4);
  const std::uint32_t total = accum_offset + d.agprs;
  const std::uint32_t sgprs = std::max(d.sgprs, kDeclaredSgprs) + kReservedSgprs;
  const auto bit = [](bool on, unsigned at) { return static_cast<std::uint32_t>(on) << at; };

  KernelImage image;
  image.name = d.symbol;
  image.descriptor_lds = d.lds_bytes;
  image.descriptor_kernarg = d.kernarg_bytes;
  // Round to nearest even (0); f32 denormals flushed unless asked for, f16/f64 kept (3): what AMD's attention kernels
  // use. DX10_CLAMP and IEEE off.
  const std::uint32_t denormals = (d.f32_denormals ? 3u : 0u) << 16 | 3u << 18;
  image.rsrc1 = ((total + 7) / 8 - 1) | ((sgprs + 7) / 8 - 1) << 6 | denormals | bit(d.fp16_overflow, 26);
  image.rsrc2 = 2u << 1 | bit(d.workgroup_id_x, 7) | bit(d.workgroup_id_y, 8) | bit(d.workgroup_id_z, 9);
  image.rsrc3 = accum_offset / 4 - 1;
  image.properties = kKernargPointer;
  image.has_metadata = true;
  image.kernarg_bytes = d.kernarg_bytes;
  image.group_bytes = d.lds_bytes;
  image.sgprs = sgprs;
  image.vgprs = total;
  image.agprs = d.agprs;
  image.max_workgroup = d.workgroup_size;
  image.wavefront_size = 64;
  image.arguments = d.arguments;
  return image;
}

std::string descriptor_directives(const KernelImage& k) {
  std::string out = fmt::format(".section .rodata,\"a\",@progbits\n.p2align 6\n.amdhsa_kernel {}\n", k.name);
  const auto put = [&out](std::string_view name, std::uint32_t value) {
    fmt::format_to(std::back_inserter(out), "  .amdhsa_{} {}\n", name, value);
  };
  put("group_segment_fixed_size", k.descriptor_lds);
  put("private_segment_fixed_size", k.descriptor_private);
  put("kernarg_size", k.descriptor_kernarg);
  put("user_sgpr_count", field(k.rsrc2, 1, 5));
  put("user_sgpr_dispatch_ptr", field(k.properties, 1, 1));
  put("user_sgpr_queue_ptr", field(k.properties, 2, 1));
  put("user_sgpr_kernarg_segment_ptr", field(k.properties, 3, 1));
  put("user_sgpr_dispatch_id", field(k.properties, 4, 1));
  put("user_sgpr_private_segment_size", field(k.properties, 6, 1));
  put("user_sgpr_kernarg_preload_length", field(k.preload, 0, 7));
  put("user_sgpr_kernarg_preload_offset", field(k.preload, 7, 9));
  put("uses_dynamic_stack", field(k.properties, 11, 1));
  put("enable_private_segment", field(k.rsrc2, 0, 1));
  put("system_sgpr_workgroup_id_x", field(k.rsrc2, 7, 1));
  put("system_sgpr_workgroup_id_y", field(k.rsrc2, 8, 1));
  put("system_sgpr_workgroup_id_z", field(k.rsrc2, 9, 1));
  put("system_sgpr_workgroup_info", field(k.rsrc2, 10, 1));
  put("system_vgpr_workitem_id", field(k.rsrc2, 11, 2));
  put("next_free_vgpr", k.total_vgprs());
  put("accum_offset", k.accum_offset());
  const std::uint32_t sgpr_granules = (field(k.rsrc1, 6, 4) + 1) * 8;
  put("next_free_sgpr", std::min(102u, std::max(sgpr_granules, kReservedSgprs) - kReservedSgprs));
  put("float_round_mode_32", field(k.rsrc1, 12, 2));
  put("float_round_mode_16_64", field(k.rsrc1, 14, 2));
  put("float_denorm_mode_32", field(k.rsrc1, 16, 2));
  put("float_denorm_mode_16_64", field(k.rsrc1, 18, 2));
  put("dx10_clamp", field(k.rsrc1, 21, 1));
  put("ieee_mode", field(k.rsrc1, 23, 1));
  put("fp16_overflow", field(k.rsrc1, 26, 1));
  put("tg_split", field(k.rsrc3, 16, 1));
  out += ".end_amdhsa_kernel\n";
  return out;
}

std::string metadata_directives(const KernelImage& k) {
  std::string out = ".amdgpu_metadata\n---\namdhsa.kernels:\n";
  out += k.arguments.empty() ? "  - .args: []\n" : "  - .args:\n";
  for (const KernelArgument& a : k.arguments) {
    const bool hidden = a.name.starts_with("hidden_");
    fmt::format_to(std::back_inserter(out), "      - {{ .offset: {}, .size: {}, .value_kind: {}", a.offset, a.size,
                   hidden ? a.name : (a.is_pointer ? "global_buffer, .address_space: global" : "by_value"));
    if (!hidden && !a.name.empty()) fmt::format_to(std::back_inserter(out), ", .name: '{}'", a.name);
    out += " }\n";
  }
  fmt::format_to(std::back_inserter(out),
                 "    .name: '{0}'\n    .symbol: '{0}.kd'\n    .kernarg_segment_size: {1}\n"
                 "    .kernarg_segment_align: 8\n    .group_segment_fixed_size: {2}\n"
                 "    .private_segment_fixed_size: {3}\n    .wavefront_size: {4}\n    .sgpr_count: {5}\n"
                 "    .vgpr_count: {6}\n    .agpr_count: {7}\n    .max_flat_workgroup_size: {8}\n"
                 "    .sgpr_spill_count: 0\n    .vgpr_spill_count: 0\n    .uniform_work_group_size: 1\n",
                 k.name, k.kernarg_bytes, k.group_bytes, k.private_bytes, k.wavefront_size, k.sgprs, k.vgprs, k.agprs,
                 k.max_workgroup);
  fmt::format_to(std::back_inserter(out), "amdhsa.target: '{}'\namdhsa.version: [1, 2]\n...\n.end_amdgpu_metadata\n",
                 kTargetId);
  return out;
}

std::vector<std::string> image_differences(const KernelImage& actual, const KernelImage& expected) {
  std::vector<std::string> rows;
  const auto compare = [&rows](std::string_view what, std::uint64_t is, std::uint64_t wanted) {
    if (is != wanted) rows.push_back(fmt::format("{} is 0x{:x}, expected 0x{:x}", what, is, wanted));
  };
  compare("descriptor LDS size", actual.descriptor_lds, expected.descriptor_lds);
  compare("descriptor private size", actual.descriptor_private, expected.descriptor_private);
  compare("descriptor kernarg size", actual.descriptor_kernarg, expected.descriptor_kernarg);
  compare("descriptor rsrc1", actual.rsrc1, expected.rsrc1);
  compare("descriptor rsrc2", actual.rsrc2, expected.rsrc2);
  compare("descriptor rsrc3", actual.rsrc3, expected.rsrc3);
  compare("descriptor properties", actual.properties, expected.properties);
  compare("descriptor preload", actual.preload, expected.preload);
  if (!actual.has_metadata) {
    rows.emplace_back("the kernel has no metadata");
    return rows;
  }
  compare("metadata kernarg size", actual.kernarg_bytes, expected.kernarg_bytes);
  compare("metadata LDS size", actual.group_bytes, expected.group_bytes);
  compare("metadata private size", actual.private_bytes, expected.private_bytes);
  compare("metadata SGPR count", actual.sgprs, expected.sgprs);
  compare("metadata VGPR count", actual.vgprs, expected.vgprs);
  compare("metadata AGPR count", actual.agprs, expected.agprs);
  compare("metadata workgroup size", actual.max_workgroup, expected.max_workgroup);
  compare("metadata wavefront size", actual.wavefront_size, expected.wavefront_size);
  if (actual.arguments != expected.arguments) rows.emplace_back("metadata arguments differ from the declared ones");
  return rows;
}

}  // namespace zyfa::jit
