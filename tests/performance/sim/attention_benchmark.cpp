// Speed of the simulator on a shipped kernel: the pingpong schedule, bf16, head dimension 128, causal, one head; 1024
// tokens on one thread, plain and strict, and 4096 tokens on every core. `flops` counts what the MFMAs execute,
// `attention_flops` the useful work: 4 x 128 for each pair of a query and a key it sees.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <thread>
#include <vector>

#include "runtime/sim/sim_device.h"
#include "schedules/compile.h"
#include "schedules/select/kernel_args.h"
#include "schedules/select/select.h"

namespace zyfa::sim_test {
namespace {

constexpr std::uint32_t kDim = 128;
constexpr std::uint64_t kRowBytes = 2 * kDim;

Expected<schedules::CompiledKernel> pingpong() {
  schedules::KernelSpec spec;
  spec.mask = schedules::MaskKind::kCausal;
  auto placement = schedules::resolve_placement("pingpong");
  if (!placement) return tl::unexpected(placement.error());
  spec.placement = *placement;
  return schedules::compile_kernel(spec);
}

// Small bf16 values of both signs, different in every row.
std::vector<std::uint16_t> values(std::uint32_t tokens, std::uint32_t seed) {
  std::vector<std::uint16_t> data(std::size_t{tokens} * kDim);
  for (std::uint16_t& x : data) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<std::uint16_t>(0x3e00 | ((seed >> 16) & 0x81ff));
  }
  return data;
}

Expected<DeviceAddress> upload(SimDevice& device, const std::vector<std::uint16_t>& data) {
  auto address = device.allocate(2 * data.size());
  if (!address) return address;
  if (Status written = device.write(*address, std::as_bytes(std::span(data))); !written)
    return tl::unexpected(written.error());
  return address;
}

Status attention(benchmark::State& state) {
  const auto compiled = pingpong();
  if (!compiled) return tl::unexpected(compiled.error());
  const auto tokens = static_cast<std::uint32_t>(state.range(1));
  const auto device = sim::make_sim_device({.checks = state.range(0) ? SimChecks::kStrict : SimChecks::kPlain,
                                            .threads = static_cast<unsigned>(state.range(2))});
  if (!device) return tl::unexpected(device.error());
  const auto kernel = (*device)->load(compiled->object, compiled->info.symbol);
  if (!kernel) return tl::unexpected(kernel.error());
  schedules::AttentionForwardArgs args{};
  schedules::TensorArgs* const tensors[] = {&args.q, &args.k, &args.v, &args.o};
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto address = upload(**device, values(tokens, i));
    if (!address) return tl::unexpected(address.error());
    *tensors[i] = {*address, kRowBytes, kRowBytes, tokens * kRowBytes};
  }
  args.query_length = args.key_length = tokens;
  args.head_ratio_magic = 1u << 31;  // one query head on one key head
  args.score_scale_log2 = static_cast<float>(1.4426950408889634 / std::sqrt(double{kDim}));
  const std::uint32_t tile = compiled->info.query_tile;
  const LaunchShape shape{.grid = {(tokens + tile - 1) / tile, 1, 1}, .block = {64 * compiled->info.waves, 1, 1}};
  for (auto _ : state) {
    Status launched = (*device)->launch(**kernel, shape, std::as_bytes(std::span(&args, 1)), nullptr);
    if (!launched) return launched;
  }
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["flops"] = benchmark::Counter(static_cast<double>((*device)->last_statistics().mfma_flops), rate);
  state.counters["attention_flops"] = benchmark::Counter(4.0 * kDim * tokens * (tokens + 1.0) / 2, rate);
  return {};
}

void pingpong_attention(benchmark::State& state) {
  const Status status = attention(state);
  if (!status) state.SkipWithError(to_string(status.error()).c_str());
}
BENCHMARK(pingpong_attention)
    ->ArgNames({"strict", "tokens", "threads"})
    ->Args({0, 1024, 1})
    ->Args({1, 1024, 1})
    ->Args({0, 4096, std::max(1u, std::thread::hardware_concurrency())})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zyfa::sim_test
