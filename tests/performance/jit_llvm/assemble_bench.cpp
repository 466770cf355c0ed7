// Time of each step from listing to checked code object, with LLVM loaded and its tables made.
// Run with --benchmark_repetitions=9 --benchmark_report_aggregates_only=true for medians.
#include <cstdio>
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"
#include "tests/unit/jit_llvm/sample_listing.h"

namespace zyfa::jit {
namespace {

template <typename T>
T value_or_exit(Expected<T> value) {
  if (!value) {
    std::fprintf(stderr, "%s\n", to_string(value.error()).c_str());
    std::exit(1);
  }
  return std::move(*value);
}

struct Prepared {
  Listing listing;
  KernelDeclaration declaration;
  std::string text;
  std::vector<std::byte> object, linked;

  explicit Prepared(std::uint32_t instructions)
      : listing(sample::attention_like(instructions)), declaration(sample::declaration(listing.symbol)) {
    text = print_assembly(listing, declaration);
    object = value_or_exit(assemble_object(text));
    linked = value_or_exit(link_object(object));
  }
};

void BM_Assemble(benchmark::State& state) {
  const Prepared p(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(assemble(p.listing, p.declaration)));
}
void BM_Print(benchmark::State& state) {
  const Prepared p(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(print_assembly(p.listing, p.declaration));
}
void BM_Mc(benchmark::State& state) {
  const Prepared p(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(assemble_object(p.text)));
}
void BM_Link(benchmark::State& state) {
  const Prepared p(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(link_object(p.object)));
}
void BM_Read(benchmark::State& state) {
  const Prepared p(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(read_code_object(p.linked)));
}
void BM_Disassemble(benchmark::State& state) {
  const Prepared p(static_cast<std::uint32_t>(state.range(0)));
  const CodeObject object = value_or_exit(read_code_object(p.linked));
  const auto code = object.text.first(object.kernels.front().code_bytes);
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(disassemble(code)));
}

BENCHMARK(BM_Assemble)->Arg(3000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Print)->Arg(3000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Mc)->Arg(3000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Link)->Arg(3000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Read)->Arg(3000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Disassemble)->Arg(3000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zyfa::jit

BENCHMARK_MAIN();
