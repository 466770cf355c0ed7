// Jobs for zyfa-jit simulate on kernels that stock LLVM assembled from the text below.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/correctness/tools/command.h"
#include "tests/require_tools.h"

namespace zyfa::tools::testing_support {

// out[i] += value for i = workgroup * 64 + work-item. The metadata puts `value` first and the pointer behind it, so a
// job without offsets tests that order.
inline constexpr const char* kAddText = R"(
.text
.globl add
.p2align 8
.type add,@function
add:
  s_load_dword s6, s[0:1], 0x4
  s_load_dwordx2 s[4:5], s[0:1], 0x10
  s_lshl_b32 s7, s2, 8
  v_lshlrev_b32_e32 v1, 2, v0
  v_add_u32_e32 v1, s7, v1
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32_e32 v2, s6, v2
  global_store_dword v1, v2, s[4:5]
  s_endpgm
.Lend:
.size add, .Lend-add
.rodata
.p2align 6
.amdhsa_kernel add
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_accum_offset 8
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: add
    .symbol: add.kd
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 1024
    .args:
      - {.offset: 4, .size: 4, .value_kind: by_value}
      - {.offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
...
.end_amdgpu_metadata
)";

class Simulate : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(ZYFA_CLANG).empty() || std::string_view(ZYFA_LD_LLD).empty()) {
      ZYFA_SKIP_WITHOUT_TOOL("no clang or lld");
    }
  }

  void assemble(std::string text, const std::string& from = "", const std::string& to = "") {
    if (!from.empty()) {
      const std::size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos);
      text.replace(at, from.size(), to);
    }
    put_file(session_ / "k.s", text);
    Result result =
        session_.command(ZYFA_CLANG, {"-x", "assembler", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + processor_, "-c",
                                      session_ / "k.s", "-o", session_ / "k.o"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    result = session_.command(ZYFA_LD_LLD, {"-shared", session_ / "k.o", "-o", session_ / "k.hsaco"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  Result simulate(const std::string& arguments, std::vector<std::string> options = {}) {
    put_file(session_ / "job.json",
             R"({"object":"k.hsaco","kernel":"add","grid":[2,1,1],"block":[64,1,1],"args":[)" + arguments + "]}");
    options.insert(options.begin(), {"simulate", session_ / "job.json"});
    return session_.zyfa_jit(options);
  }

  Session session_;
  std::string processor_ = "gfx950";
};

inline constexpr const char* kArguments =
    R"({"i32":1000},{"buffer":"in.bin","write":"out.npy","dtype":"int32","shape":[2,64]})";

inline std::string numbers(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const std::int32_t value = 3 * i;
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

}  // namespace zyfa::tools::testing_support
