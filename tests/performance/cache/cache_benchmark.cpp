// Costs of the cache for entries of 200 KB: key, memory hit, disk hit within a process, a fresh Cache's first disk hit,
// publish.
#include <benchmark/benchmark.h>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

constexpr std::size_t kSize = 200'000;

// As many fields as a kernel key has, with a schedule string of common length.
Key kernel_like_key(std::uint64_t number) {
  return KeyBuilder(1)
      .add_string("target", "gfx950:sramecc+:xnack-")
      .add_u64("code_object_version", 6)
      .add_string("family", "attention_forward")
      .add_string("element", "bf16")
      .add_string("mask", "causal")
      .add_u64("head_dim_qk", 128)
      .add_u64("head_dim_v", 128)
      .add_string("lse", "written")
      .add_string("placement", std::string(300, 'p'))
      .add_u64("kernel_argument_layout", 0x1234567890abcdef)
      .add_u64("generator", number)
      .build()
      .value();
}

void BM_BuildKey(benchmark::State& state) {
  std::uint64_t number = 0;
  for (auto _ : state) benchmark::DoNotOptimize(kernel_like_key(++number));
}
BENCHMARK(BM_BuildKey);

void BM_MemoryHit(benchmark::State& state) {
  static Cache* cache = nullptr;
  if (state.thread_index() == 0) {
    CacheConfig config;
    config.mode = CacheMode::kOff;
    cache = new Cache(config, {});
    for (std::uint64_t i = 0; i < 100; ++i) {
      benchmark::DoNotOptimize(cache->get_or_build(kernel_like_key(i), builder_of(i, kSize)));
    }
  }
  const Key key = kernel_like_key(42);
  const Builder build = builder_of(42);
  for (auto _ : state) benchmark::DoNotOptimize(cache->get_or_build(key, build));
  if (state.thread_index() == 0) delete cache;
}
BENCHMARK(BM_MemoryHit)->Threads(1)->Threads(2)->UseRealTime();

void BM_DiskHit(benchmark::State& state) {
  const TemporaryDirectory directory;
  const auto store = Store::open(directory.path("cache"), LayerAccess::kWritable).value();
  if (!store->publish(entry_of(1, kSize))) state.SkipWithError("cannot publish");
  const Key key = key_of(1);
  for (auto _ : state) benchmark::DoNotOptimize(store->read(key, nullptr, OnReject::kLeave));
}
BENCHMARK(BM_DiskHit)->Unit(benchmark::kMicrosecond);

// What a fresh process does between main() and the checked object: read the settings, open the layers, make the key,
// read.
void BM_OpenAndFirstDiskHit(benchmark::State& state) {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cache");
  if (!Store::open(root, LayerAccess::kWritable).value()->publish(entry_of(1, kSize)))
    state.SkipWithError("cannot publish");
  for (auto _ : state) {
    const auto config = config_from_environment([&](const char* name) -> const char* {
      return std::string_view(name) == "ZYFA_CACHE_PATH" ? root.c_str() : nullptr;
    });
    Cache cache(*config, {});
    benchmark::DoNotOptimize(cache.get(key_of(1)));
  }
}
BENCHMARK(BM_OpenAndFirstDiskHit)->Unit(benchmark::kMicrosecond);

void BM_Publish(benchmark::State& state) {
  const TemporaryDirectory directory;
  const auto store = Store::open(directory.path("cache"), LayerAccess::kWritable).value();
  const Entry entry = entry_of(1, kSize);
  for (auto _ : state) {
    if (!store->publish(entry)) state.SkipWithError("cannot publish");
  }
}
BENCHMARK(BM_Publish)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace zyfa::cache
