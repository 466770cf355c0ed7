#include "tests/unit/sim/harness.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "jit/llvm/assembler.h"

namespace zyfa::sim_test {
namespace {

std::string metadata(const AsmOptions& o) {
  return fmt::format(R"(.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: {}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {}
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: {}
    .agpr_count: {}
    .max_flat_workgroup_size: {}
{}...
.end_amdgpu_metadata
)",
                     o.kernarg, o.lds, o.vgprs + o.agprs, o.agprs, o.workgroup, o.metadata);
}

std::optional<Bytes> compile(std::string_view source, const std::string& suffix, std::string_view flags) {
  const char* clang = ZYFA_CLANG;
  if (*clang == '\0') return std::nullopt;
  const auto dir = std::filesystem::temp_directory_path();
  static int serial = 0;
  const std::string stem = (dir / fmt::format("zyfa_sim_{}_{}", getpid(), serial++)).string();
  std::ofstream(stem + "." + suffix) << source;
  const std::string command =
      fmt::format("{0} {1} -target amdgcn-amd-amdhsa -mcpu=gfx950 -nogpulib {2}.{3} -o {2}.co 2> {2}.log", clang, flags,
                  stem, suffix);
  const int status = std::system(command.c_str());
  std::ifstream log(stem + ".log");
  if (status != 0) {
    ADD_FAILURE() << command << "\n" << std::string(std::istreambuf_iterator<char>(log), {});
  }
  std::ifstream file(stem + ".co", std::ios::binary);
  const std::vector<char> chars(std::istreambuf_iterator<char>(file), {});
  Bytes bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  for (const std::string& end : {"." + suffix, std::string(".co"), std::string(".log")})
    std::filesystem::remove(stem + end);
  return bytes;
}

}  // namespace

void check(const Status& status) {
  if (!status) ADD_FAILURE() << to_string(status.error());
}

Bytes assemble_kernel(std::string_view body, const AsmOptions& o) {
  const std::string text = fmt::format(R"(.amdgcn_target "amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-"
.text
.globl k
.p2align 8
.type k,@function
k:
{}
s_endpgm
.Lend:
.size k, .Lend-k
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_group_segment_fixed_size {}
.amdhsa_kernarg_size {}
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_system_sgpr_workgroup_id_x 1
.amdhsa_system_sgpr_workgroup_id_y 1
.amdhsa_system_sgpr_workgroup_id_z 1
.amdhsa_next_free_vgpr {}
.amdhsa_next_free_sgpr 96
.amdhsa_accum_offset {}
.amdhsa_float_denorm_mode_32 {}
.amdhsa_float_denorm_mode_16_64 3
.amdhsa_float_round_mode_32 {}
.amdhsa_dx10_clamp {}
.amdhsa_ieee_mode {}
.amdhsa_fp16_overflow {}
.end_amdhsa_kernel
{})",
                                       body, o.lds, o.kernarg, o.vgprs + o.agprs, o.vgprs, o.denorm32, o.round32,
                                       int{o.dx10_clamp}, int{o.ieee}, int{o.fp16_overflow}, metadata(o));
  auto object = jit::assemble_object(text);
  if (!object) {
    ADD_FAILURE() << to_string(object.error());
    return {};
  }
  auto linked = jit::link_object(*object);
  if (!linked) {
    ADD_FAILURE() << to_string(linked.error());
    return {};
  }
  return *linked;
}

std::optional<Bytes> compile_opencl(std::string_view source, std::string_view flags) {
  return compile(source, "cl", fmt::format("-x cl -cl-std=CL2.0 {}", flags));
}

std::optional<Bytes> compile_cpp(std::string_view source, std::string_view flags) {
  return compile(source, "cpp", fmt::format("-x c++ -std=c++20 -ffreestanding -nostdinc++ -fno-exceptions {}", flags));
}

std::shared_ptr<SimDevice> make_device(SimChecks checks, unsigned threads) {
  return sim::make_sim_device({.checks = checks, .threads = threads, .max_instructions = 50'000'000}).value();
}

Status run(SimDevice& device, std::span<const std::byte> object, std::string_view kernel, const LaunchShape& shape,
           const Args& args) {
  auto loaded = device.load(object, kernel);
  if (!loaded) return tl::unexpected(loaded.error());
  return device.launch(**loaded, shape, args.bytes(), nullptr);
}

std::vector<std::array<std::uint32_t, 64>> run_vector(std::string_view code,
                                                      const std::vector<std::array<std::uint32_t, 64>>& inputs,
                                                      unsigned outputs, const AsmOptions& options) {
  std::string body =
      "s_load_dwordx4 s[4:7], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    body += fmt::format("global_load_dword v{}, v1, s[4:5]\nv_add_u32 v1, 0x100, v1\n", 10 + i);
  }
  body += "s_waitcnt vmcnt(0)\n";
  body += code;
  body += "\ns_nop 15\ns_nop 15\ns_mov_b64 exec, -1\nv_lshlrev_b32 v1, 2, v0\n";
  for (unsigned i = 0; i < outputs; ++i) {
    body += fmt::format("global_store_dword v1, v{}, s[6:7]\nv_add_u32 v1, 0x100, v1\n", 40 + i);
  }
  std::vector<std::uint32_t> flat;
  for (const auto& in : inputs) flat.insert(flat.end(), in.begin(), in.end());
  std::vector<std::array<std::uint32_t, 64>> results(outputs);
  const Bytes object = assemble_kernel(body, options);
  if (object.empty()) return results;
  const auto device = make_device(options.checks);
  SimOptions device_options = device->options();
  device_options.rules = options.rules;
  check(device->set_options(device_options));
  const Buffer<std::uint32_t> in(*device, flat), out(*device, std::vector<std::uint32_t>(64 * outputs, 0));
  const Status status = run(*device, object, "k", {}, Args().add(in).add(out));
  if (!status) {
    ADD_FAILURE() << to_string(status.error()) << "\n" << code;
    return results;
  }
  const auto values = out.read();
  for (unsigned i = 0; i < outputs; ++i) std::memcpy(results[i].data(), values.data() + 64 * i, 256);
  return results;
}

std::array<std::uint32_t, 64> splat(std::uint32_t value) {
  std::array<std::uint32_t, 64> a;
  a.fill(value);
  return a;
}

}  // namespace zyfa::sim_test
