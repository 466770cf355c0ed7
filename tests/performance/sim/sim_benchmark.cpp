// Speed of the simulator, one thread: GFLOP/s of MFMA-bound loops (the flops the MFMAs execute), lane operations of a
// VALU loop, bytes of LDS and buffer loops; most plain and strict. Read the medians of --benchmark_repetitions=5.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

// `body` 200 times in each of 8 waves, registers v8..v127 zeroed before.
void run_loop(benchmark::State& state, const std::string& body, const char* counter, double per_iteration,
              SimAccumulation model = SimAccumulation::kFmaChain) {
  const std::string code =
      "v_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 4, v0\n.set i, 2\n.rept 126\nv_mov_b32 v[i], 0\n.set i, i+1\n.endr\n"
      "s_load_dwordx2 s[12:13], s[0:1], 0\ns_mov_b32 m0, 0\ns_movk_i32 s14, 0x2000\ns_mov_b32 s15, 0x20000\n"
      "v_mov_b32 v100, 0x7f7f7f7f\nv_mov_b32 v101, v100\n"  // scales of 1.0
      "ds_write_b128 v1, v[8:11]\ns_waitcnt lgkmcnt(0)\ns_barrier\ns_movk_i32 s8, 200\nloop:\n" +
      body + "s_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\n";
  const Bytes object = assemble_kernel(code, {.lds = 8192, .workgroup = 512});
  const auto device = make_device(state.range(0) ? SimChecks::kStrict : SimChecks::kPlain);
  SimOptions options = device->options();
  options.rules.accumulation = model;
  check(device->set_options(options));
  const auto kernel = device->load(object, "k");
  if (!kernel) return state.SkipWithError(to_string(kernel.error()).c_str());
  const Buffer<std::uint32_t> buffer(*device, std::vector<std::uint32_t>(2048, 0));
  const Args args = Args().add(buffer);
  for (auto _ : state) {
    const Status status = device->launch(**kernel, {.block = {512, 1, 1}}, args.bytes(), nullptr);
    if (!status) return state.SkipWithError(to_string(status.error()).c_str());
  }
  state.counters[counter] = benchmark::Counter(per_iteration * 200 * 8, benchmark::Counter::kIsIterationInvariantRate);
}

void mfma_bf16(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 4; ++i) {
    body +=
        fmt::format("v_mfma_f32_32x32x16_bf16 v[{0}:{1}], v[8:11], v[12:15], v[{0}:{1}]\n", 16 + 16 * i, 31 + 16 * i);
  }
  run_loop(state, body, "flops", 4.0 * 2 * 32 * 32 * 16);
}
void mfma_fp8(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 4; ++i) {
    body +=
        fmt::format("v_mfma_f32_32x32x64_f8f6f4 v[{0}:{1}], v[2:9], v[8:15], v[{0}:{1}]\n", 16 + 16 * i, 31 + 16 * i);
  }
  run_loop(state, body, "flops", 4.0 * 2 * 32 * 32 * 64);
}
void mfma_scaled_fp8(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 4; ++i) {
    body += fmt::format("v_mfma_scale_f32_32x32x64_f8f6f4 v[{0}:{1}], v[2:9], v[8:15], v[{0}:{1}], v100, v101\n",
                        16 + 16 * i, 31 + 16 * i);
  }
  run_loop(state, body, "flops", 4.0 * 2 * 32 * 32 * 64);
}
// The FP8 loop by accumulation model: 0 fma chain, 1 exact, 2 chunked.
void mfma_fp8_model(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 4; ++i) {
    body +=
        fmt::format("v_mfma_f32_32x32x64_f8f6f4 v[{0}:{1}], v[2:9], v[8:15], v[{0}:{1}]\n", 16 + 16 * i, 31 + 16 * i);
  }
  run_loop(state, body, "flops", 4.0 * 2 * 32 * 32 * 64, static_cast<SimAccumulation>(state.range(1)));
}
void valu(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 8; ++i) {
    body +=
        fmt::format("v_fma_f32 v{0}, v{1}, v{1}, v{0}\nv_max3_f32 v{2}, v{0}, v{1}, v{2}\nv_add_u32 v{3}, v{0}, v{3}\n",
                    16 + i, 32 + i, 48 + i, 64 + i);
  }
  run_loop(state, body, "lane_ops", 24.0 * 64);
}
void exponential(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 8; ++i) body += fmt::format("v_exp_f32 v{}, v{}\n", 16 + i, 32 + i);
  run_loop(state, body, "lane_ops", 8.0 * 64);
}
void lds_read(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 4; ++i) body += fmt::format("ds_read_b128 v[{}:{}], v1\n", 16 + 4 * i, 19 + 4 * i);
  run_loop(state, body + "s_waitcnt lgkmcnt(0)\n", "bytes", 4.0 * 1024);
}

void lds_write(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 4; ++i) body += "ds_write_b128 v1, v[16:19]\n";
  run_loop(state, body + "s_waitcnt lgkmcnt(0)\n", "bytes", 4.0 * 1024);
}
void lds_atomic(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 4; ++i) body += "ds_add_u32 v1, v16\n";
  run_loop(state, body + "s_waitcnt lgkmcnt(0)\n", "bytes", 4.0 * 256);
}

void lds_transposed_read(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 4; ++i) body += fmt::format("ds_read_b64_tr_b8 v[{}:{}], v1\n", 16 + 2 * i, 17 + 2 * i);
  run_loop(state, body + "s_waitcnt lgkmcnt(0)\n", "bytes", 4.0 * 512);
}
// s[12:15]: a raw buffer of 8 KB; {v} in the instruction is a tuple of 4 registers.
void memory_loop(benchmark::State& state, std::string_view instruction) {
  std::string body;
  for (int i = 0; i < 4; ++i)
    body +=
        fmt::format(fmt::runtime(instruction), fmt::arg("v", fmt::format("v[{}:{}]", 16 + 4 * i, 19 + 4 * i))) + "\n";
  run_loop(state, body + "s_waitcnt vmcnt(0)\n", "bytes", 4.0 * 1024);
}
void buffer_load(benchmark::State& state) { memory_loop(state, "buffer_load_dwordx4 {v}, v1, s[12:15], 0 offen"); }
void buffer_load_lds(benchmark::State& state) { memory_loop(state, "buffer_load_dwordx4 v1, s[12:15], 0 offen lds"); }
void buffer_store(benchmark::State& state) { memory_loop(state, "buffer_store_dwordx4 {v}, v1, s[12:15], 0 offen"); }
void global_load(benchmark::State& state) { memory_loop(state, "global_load_dwordx4 {v}, v1, s[12:13]"); }

BENCHMARK(mfma_bf16)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(mfma_fp8)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(mfma_scaled_fp8)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(mfma_fp8_model)->ArgNames({"strict", "model"})->ArgsProduct({{0}, {0, 1, 2}});
BENCHMARK(valu)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(exponential)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(lds_read)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(lds_write)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(lds_atomic)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(lds_transposed_read)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(buffer_load)->ArgName("strict")->Arg(0)->Arg(1);
BENCHMARK(buffer_load_lds)->ArgName("strict")->Arg(0);
BENCHMARK(buffer_store)->ArgName("strict")->Arg(0);
BENCHMARK(global_load)->ArgName("strict")->Arg(0)->Arg(1);

}  // namespace
}  // namespace zyfa::sim_test
