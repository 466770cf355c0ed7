// Kernels compiled by clang: code that is right must give no finding, and damaging it must.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/unit/jit_verify/kernel_text.h"

namespace zyfa::jit::testing {
namespace {

constexpr const char* kTypes = R"(
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define BARRIER() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16 __attribute__((ext_vector_type(16)));
typedef __bf16 b8 __attribute__((ext_vector_type(8)));
typedef half h8 __attribute__((ext_vector_type(8)));
typedef int i8 __attribute__((ext_vector_type(8)));
int lane(void) { return (int)__builtin_amdgcn_workitem_id_x(); }
)";

struct Source {
  const char* name;
  const char* text;
};

const Source kSources[] = {
    {"Saxpy", R"(kernel void k(global float* y, global const float* x, float a, int n) {
  int i = (int)__builtin_amdgcn_workgroup_id_x() * 256 + lane();
  if (i < n) y[i] += a * x[i];
})"},
    {"LoopSum", R"(kernel void k(global float* y, global const float4* x, int n) {
  float4 s = 0;
  for (int i = lane(); i < n; i += 256) s += x[i] * x[i + 1];
  y[lane()] = s.x + s.y + s.z + s.w;
})"},
    {"DivergentBranches", R"(kernel void k(global int* y, global const int* x, int n) {
  int i = lane(), v = x[i], r = 0;
  if (v > 3) { r = y[v]; if (v & 1) r += x[r & 255]; else r -= n; }
  else if (v < -3) { for (int j = 0; j < v + n; ++j) r += y[j] ^ v; }
  y[i] = r;
})"},
    {"LdsReduce",
     R"(kernel __attribute__((reqd_work_group_size(256, 1, 1))) void k(global float* y, global const float* x) {
  local float s[256];
  int i = lane();
  s[i] = x[i];
  BARRIER();
  for (int d = 128; d > 0; d >>= 1) { if (i < d) s[i] += s[i + d]; BARRIER(); }
  if (i == 0) y[0] = s[0];
})"},
    {"LdsTranspose",
     R"(kernel __attribute__((reqd_work_group_size(256, 1, 1))) void k(global float4* y, global const float4* x) {
  local float4 s[16][17];
  int i = lane();
  s[i / 16][i % 16] = x[i];
  BARRIER();
  y[i] = s[i % 16][i / 16];
})"},
    {"MfmaBf16", R"(kernel void k(global f16* c, global const b8* a, global const b8* b, int n) {
  f16 acc = c[lane()];
  for (int i = 0; i < n; ++i) acc = __builtin_amdgcn_mfma_f32_32x32x16_bf16(a[i * 64 + lane()], b[i * 64 + lane()], acc, 0, 0, 0);
  c[lane()] = acc * 2.0f;
})"},
    {"MfmaF16Small", R"(kernel void k(global f4* c, global const h8* a, global const h8* b, int n) {
  f4 acc = 0, other = 1;
  for (int i = 0; i < n; ++i) {
    acc = __builtin_amdgcn_mfma_f32_16x16x32_f16(a[i * 64 + lane()], b[i * 64 + lane()], acc, 0, 0, 0);
    other = __builtin_amdgcn_mfma_f32_16x16x32_f16(b[i * 64 + lane()], a[i * 64 + lane()], acc + other, 0, 0, 0);
  }
  c[lane()] = acc + __builtin_amdgcn_exp2f(other.x);
})"},
    {"MfmaFp8", R"(kernel void k(global f16* c, global const i8* a, global const i8* b, int n, int sa, int sb) {
  f16 acc = 0;
  for (int i = 0; i < n; ++i)
    acc = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(a[i * 64 + lane()], b[i * 64 + lane()], acc, 0, 0, 0, sa, 0, sb);
  f16 last = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(a[lane()], b[lane()], acc, 0, 0, 0, 0, 0, 0);
  c[lane()] = acc * last;
})"},
    {"MfmaSmallFp8", R"(kernel void k(global f4* c, global const i8* a, global const i8* b) {
  f4 acc = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a[lane()], b[lane()], (f4)0, 0, 0, 0, 0, 0, 0);
  acc = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a[lane() + 64], b[lane() + 64], acc * acc, 0, 0, 0, 0, 0, 0);
  c[lane()] = acc;
})"},
    {"Softmax", R"(kernel void k(global f16* c, global const b8* a, global const b8* b, int n) {
  f16 out = 0;
  float m = -1e30f, l = 0;
  for (int i = 0; i < n; ++i) {
    f16 s = __builtin_amdgcn_mfma_f32_32x32x16_bf16(a[i * 64 + lane()], b[lane()], (f16)0, 0, 0, 0);
    float t = m;
    __attribute__((opencl_unroll_hint(16))) for (int j = 0; j < 16; ++j) t = __builtin_fmaxf(t, s[j]);
    float scale = __builtin_amdgcn_exp2f(m - t);
    b8 p[2];
    __attribute__((opencl_unroll_hint(16))) for (int j = 0; j < 16; ++j) { float e = __builtin_amdgcn_exp2f(s[j] - t); l += e; p[j / 8][j % 8] = (__bf16)e; }
    out *= scale; l *= scale; m = t;
    out = __builtin_amdgcn_mfma_f32_32x32x16_bf16(a[i * 64 + lane() + 8], p[0], out, 0, 0, 0);
    out = __builtin_amdgcn_mfma_f32_32x32x16_bf16(a[i * 64 + lane() + 16], p[1], out, 0, 0, 0);
  }
  c[lane()] = out / l;
})"},
    {"LaneTricks", R"(kernel void k(global int* y, global const int* x, int n) {
  int i = lane(), v = x[i];
  int f = __builtin_amdgcn_readfirstlane(v);
  int r = __builtin_amdgcn_readlane(v, f & 63);
  int d = __builtin_amdgcn_update_dpp(0, v, 0x111, 0xf, 0xf, 0);
  int b = __builtin_amdgcn_ds_bpermute(i * 4 + r, v + d);
  unsigned long m = __builtin_amdgcn_ballot_w64(v > n);
  y[i] = f + r + d + b + (int)m + x[(f & 15) + n];
})"},
    {"Converts", R"(kernel void k(global int* y, global const float* x, global const half* h) {
  int i = lane();
  int p = __builtin_amdgcn_cvt_pk_fp8_f32(x[i], x[i + 1], 0, 0);
  p = __builtin_amdgcn_cvt_pk_fp8_f32(x[i + 2], x[i + 3], p, 1);
  int q = __builtin_amdgcn_cvt_sr_fp8_f32(x[i], p, y[i], 2);
  y[i] = p ^ q;
  y[i + 64] = (int)(h[i] + h[i + 1] * h[i + 2]) + (int)(x[i] / x[i + 5]);
})"},
    {"Atomics", R"(kernel void k(global int* y, volatile global int* c) {
  local int s;
  if (lane() == 0) s = 0;
  BARRIER();
  __atomic_fetch_add(&s, y[lane()], __ATOMIC_RELAXED);
  BARRIER();
  int old = __atomic_fetch_add(c, s, __ATOMIC_RELAXED);
  if (old > 5) y[old & 63] = __atomic_exchange_n(c + 1, old, __ATOMIC_RELAXED);
})"},
    {"ManyRegisters", R"(kernel void k(global f16* c, global const b8* a, global const b8* b, int n) {
  f16 acc[8];
  __attribute__((opencl_unroll_hint(8))) for (int j = 0; j < 8; ++j) acc[j] = c[lane() + j * 64];
  for (int i = 0; i < n; ++i)
    __attribute__((opencl_unroll_hint(8))) for (int j = 0; j < 8; ++j)
      acc[j] = __builtin_amdgcn_mfma_f32_32x32x16_bf16(a[(i + j) * 64 + lane()], b[i * 64 + lane()], acc[j], 0, 0, 0);
  __attribute__((opencl_unroll_hint(8))) for (int j = 0; j < 8; ++j) c[lane() + j * 64] = acc[j] + acc[7 - j];
})"},
    {"Switch", R"(kernel void k(global float* y, global const float* x, int n) {
  float v = x[lane()];
  for (int i = 0; i < n; ++i) {
    switch (i & 7) {
      case 0: v += x[i]; break;
      case 1: v = __builtin_amdgcn_sqrtf(v); break;
      case 2: v *= y[i]; break;
      case 3: if (v > 2) continue; v = -v; break;
      case 4: v = __builtin_amdgcn_logf(v) + __builtin_amdgcn_sinf(v); break;
      case 5: if (x[i] > 7) return; break;
      default: v = __builtin_fmaf(v, v, x[i + 3]);
    }
  }
  y[lane()] = v;
})"},
    {"AgreeingBranches", R"(kernel void k(global f4* y, global const f4* x, int n) {
  f4 t;
  if (n > 3) t = x[lane()];
  y[lane() + 7] = x[lane() + 3] * 2.0f;
  __builtin_amdgcn_s_barrier();
  if (n > 3) y[lane()] = t;
})"},
    {"BreaksOutOfLoops", R"(kernel void k(global int* y, global const int* x, int n) {
  int i = lane(), r = 0;
  while (1) {
    int v = x[i + r];
    if (v == 0) break;
    if (v < 0) { if (x[-v] == i) break; r += 1; continue; }
    r += v;
    for (int k = 0; k < v; ++k) { if (x[k] == r) goto out; r += x[k + n]; }
  }
  y[i] = r;
  return;
out:
  y[i] = -r;
})"},
    {"WideIntegersAndDoubles", R"(kernel void k(global long* y, global const long* x, global double* d, long n) {
  int i = lane();
  double s = 0;
  for (int j = 0; j < n; ++j) s = __builtin_fma(d[i + j], s, 1.0 / d[j]);
  d[i] = s;
  y[i] = x[i] / (n | 1) + x[i + 1] % (n | 3) + (x[i] * n >> 7);
})"},
    {"TwoMatrixShapes", R"(kernel void k(global f16* c, global f4* d, global const i8* a, global const b8* b) {
  f16 big = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(a[lane()], a[lane() + 64], (f16)1.0f, 0, 0, 0, 0, 0, 0);
  big = __builtin_amdgcn_mfma_f32_32x32x16_bf16(b[lane()], b[lane() + 64], big, 0, 0, 0);
  f4 small = __builtin_amdgcn_mfma_f32_16x16x32_bf16(b[lane()], b[lane() + 64], big.s4567, 0, 0, 0);
  d[lane()] = small;
  c[lane()] = big;
})"},
    {"DirectToLds",
     R"(kernel __attribute__((reqd_work_group_size(256, 1, 1))) void k(global float4* y, global const float4* x, int n) {
  local float4 s[256];
  float4 sum = 0;
  for (int i = 0; i < n; ++i) {
    __builtin_amdgcn_global_load_lds(x + i * 256 + lane(), s + (lane() & ~63), 16, 0, 0);
    BARRIER();
    __builtin_amdgcn_s_waitcnt(0);
    __builtin_amdgcn_s_barrier();
    sum += s[255 - lane()];
    BARRIER();
  }
  y[lane()] = sum;
})"},
};

class Compiled : public ::testing::TestWithParam<std::tuple<Source, const char*>> {};

std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  const auto* data = reinterpret_cast<const std::byte*>(chars.data());
  return {data, data + chars.size()};
}

CodeObject compile(const Source& source, const std::string& level) {
  const auto base = std::filesystem::temp_directory_path() /
                    ("zyfa_verify_" + std::string(source.name) + level + "_" + std::to_string(::getpid()));
  const std::string cl = base.string() + ".cl", out = base.string() + ".co";
  std::ofstream(cl) << kTypes << source.text;
  const std::string command = "clang-22 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx950 -nogpulib -w " +
                              level + " " + cl + " -o " + out;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  auto object = read_code_object(bytes_of(out));
  std::filesystem::remove(cl);
  std::filesystem::remove(out);
  if (!object) throw std::runtime_error(to_string(object.error()));
  return std::move(*object);
}

TEST_P(Compiled, GivesNoFinding) {
  const auto& [source, level] = GetParam();
  const CodeObject object = compile(source, level);
  const auto report = verify_object(object);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->findings.empty()) << listing_of(*report);
  EXPECT_GT(report->instructions, 5u);
}

INSTANTIATE_TEST_SUITE_P(Clang, Compiled,
                         ::testing::Combine(::testing::ValuesIn(kSources), ::testing::Values("-O1", "-O2", "-O3")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + (std::get<1>(info.param) + 1);
                         });

// The object also holds a callable copy of the kernel, and padding.
bool in_kernel(const CodeObject& object, const Decoded& inst) {
  const KernelImage& k = object.kernels.front();
  return inst.offset >= k.entry_offset && inst.offset < k.entry_offset + k.code_bytes;
}

// A wait that clang placed may serve a fence alone, so not each removal can be noticed, but some in every kernel must.
TEST(CompiledDamage, RemovedWaitsAreNoticed) {
  for (const Source& source : kSources) {
    const CodeObject object = compile(source, "-O2");
    const auto decoded = disassemble(object.text);
    ASSERT_TRUE(decoded);
    unsigned removed = 0, noticed = 0;
    for (std::size_t i = 0; i < decoded->size(); ++i) {
      if ((*decoded)[i].facts.cls != FactClass::kWaitcnt || !in_kernel(object, (*decoded)[i])) continue;
      std::vector<Decoded> damaged = *decoded;
      damaged[i].facts.waitcnt = 0xffff;
      const VerifyReport r = verify_kernel(object, object.kernels.front(), damaged);
      ++removed;
      noticed += !of_kind(r, FindingKind::kMissingWait).empty();
    }
    EXPECT_GT(removed, 0u) << source.name;
    EXPECT_GT(noticed, 0u) << source.name;
  }
}

TEST(CompiledDamage, RemovedNopsAreNoticed) {
  unsigned removed = 0;
  for (const Source& source : kSources) {
    if (std::string_view(source.name).find("Mfma") == std::string_view::npos) continue;
    const CodeObject object = compile(source, "-O2");
    const auto decoded = disassemble(object.text);
    ASSERT_TRUE(decoded);
    for (std::size_t i = 0; i < decoded->size(); ++i) {
      if ((*decoded)[i].mnemonic != "s_nop" || !in_kernel(object, (*decoded)[i])) continue;
      std::vector<Decoded> damaged = *decoded;
      damaged[i].facts.nop_states = 0;
      ++removed;
      const bool seen =
          !of_kind(verify_kernel(object, object.kernels.front(), damaged), FindingKind::kWaitStates).empty();
      EXPECT_TRUE(seen) << source.name << ": " << (*decoded)[i - 1].text << " | s_nop | " << (*decoded)[i + 1].text;
    }
  }
  EXPECT_GT(removed, 5u);
}

}  // namespace
}  // namespace zyfa::jit::testing
