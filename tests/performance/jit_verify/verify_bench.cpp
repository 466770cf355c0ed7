// Time of the static verifier on an attention-like kernel of about 3,000 instructions: loads to LDS, transpose reads,
// matrix work with softmax between, in one long loop. Target: 5 ms.
#include <benchmark/benchmark.h>

#include <stdexcept>

#include "tests/unit/jit_verify/kernel_text.h"

namespace zyfa::jit::testing {
namespace {

std::string n(int i) { return std::to_string(i); }
std::string tuple(int first, int count) { return "v[" + n(first) + ":" + n(first + count - 1) + "]"; }

// Sixteen stages of loads, QK, softmax and PV; each waits for what it uses.
std::string kernel_text() {
  std::string s = defines_everything() + "v_mbcnt_lo_u32_b32 v101, -1, 0\ns_mov_b32 s60, 8\nloop:\n";
  for (int stage = 0; stage < 16; ++stage) {
    for (int i = 0; i < 4; ++i)
      s += "s_add_u32 m0, s20, " + n(i * 1024) + "\ns_nop 0\nbuffer_load_dwordx4 v100, s[8:11], 0 offen lds\n";
    for (int i = 0; i < 8; ++i)
      s += "ds_read_b64_tr_b16 " + tuple(64 + 2 * i, 2) + ", v101 offset:" + n(i * 512) + "\n";
    s += "s_waitcnt vmcnt(4) lgkmcnt(4)\ns_barrier\n";
    for (int i = 0; i < 4; ++i)
      s += "v_mfma_f32_32x32x16_bf16 v[0:15], " + tuple(64 + 4 * (i % 2), 4) + ", v[84:87], v[0:15]\n";
    s += "s_waitcnt lgkmcnt(0)\n" + nops(12);
    for (int i = 0; i < 16; ++i) s += "v_max3_f32 v102, v102, " + ("v" + n(i)) + ", v103\n";
    for (int i = 0; i < 16; ++i) {
      const std::string v = "v" + n(i);
      s += "v_fma_f32 " + v + ", " + v + ", v104, v102\nv_exp_f32 " + v + ", " + v +
           "\ns_nop 0\nv_add_f32 v105, v105, " + v + "\n";
    }
    for (int i = 0; i < 8; ++i) s += "v_cvt_pk_bf16_f32 v" + n(88 + i) + ", v" + n(2 * i) + ", v" + n(2 * i + 1) + "\n";
    s += "s_nop 1\n";
    for (int i = 0; i < 4; ++i) {
      s += "v_mfma_f32_32x32x16_bf16 " + tuple(16 + 16 * (i % 2), 16) + ", " + tuple(72 + 4 * (i % 2), 4) + ", " +
           tuple(88 + 4 * (i % 2), 4) + ", " + tuple(16 + 16 * (i % 2), 16) + "\n";
    }
    s += nops(7);
    for (int i = 0; i < 16; ++i) s += "v_mul_f32 v" + n(i) + ", v105, v" + n(48 + i) + "\n";
    for (int i = 0; i < 16; ++i) s += "v_mov_b32 v" + n(i) + ", 0\n";
  }
  return s + "s_waitcnt vmcnt(0)\ns_sub_u32 s60, s60, 1\ns_cmp_lg_u32 s60, 0\ns_cbranch_scc1 loop\ns_endpgm\n";
}

void verify(benchmark::State& state) {
  Subject subject = subject_of(machine_code(kernel_text()));
  VerifyReport report;
  for (auto _ : state) {
    report = verify_kernel(subject.object, subject.kernel, subject.decoded);
    benchmark::DoNotOptimize(report);
  }
  if (!report.findings.empty()) throw std::runtime_error(to_string(report.findings.front()));
  state.counters["instructions"] = report.instructions;
}
BENCHMARK(verify)->Unit(benchmark::kMillisecond)->Repetitions(5)->ReportAggregatesOnly(true);

}  // namespace
}  // namespace zyfa::jit::testing

BENCHMARK_MAIN();
