// Attention::compile() and launch(): memory table, then obtain_kernel(), then the device. FP8 from BF16 inputs is
// several kernels: those that quantise, and attention.
#include "zyfa/attention.h"

#include <mutex>
#include <utility>

#include "runtime/kernel_store.h"
#include "runtime/launch.h"
#include "runtime/loaded_table.h"
#include "runtime/stopwatch.h"

namespace zyfa {
namespace {

enum class Found : std::uint8_t { kInMemory, kJustMade };

class AttentionImpl final : public Attention {
 public:
  AttentionImpl(std::shared_ptr<const LoadedState> state, std::shared_ptr<Device> device, Found found)
      : state_(std::move(state)), device_(std::move(device)), from_memory_(found == Found::kInMemory) {}

  Status launch(const LaunchArgs& args, Stream stream) const override {
    if (device_ == nullptr) {
      return make_error(ErrorCode::kInvalidArgument,
                        "this kernel was compiled without a device; give CompileOptions::device to launch it");
    }
    Expected<std::optional<PreparedLaunch>> prepared = prepare_launch(state_->problem, state_->shape, args);
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    if (!prepared->has_value()) return {};
    const PreparedLaunch& launch = **prepared;
    for (const QuantiseLaunch& helper : std::span(launch.quantisation).first(launch.quantise_count)) {
      if (Status status = queue(state_->helpers[helper.kernel], helper.shape, helper.args, stream); !status) {
        return status;
      }
    }
    return queue(state_->attention, launch.shape, launch.args, stream);
  }

  Expected<std::size_t> workspace_bytes(const LaunchArgs& args) const override {
    return zyfa::workspace_bytes(state_->problem, args);
  }

  AttentionInfo info() const override {
    const Kernel& kernel = state_->attention.kernel;
    const schedules::KernelInfo& info = kernel.metadata.info;
    AttentionInfo result{.problem = state_->problem,
                         .key = kernel.key.name(),
                         .schedule_row = kernel.choice.row,
                         .schedule = kernel.choice.spec.placement,
                         .symbol = info.symbol,
                         .waves = info.waves,
                         .query_tile = info.query_tile,
                         .vgprs = info.vgprs,
                         .agprs = info.agprs,
                         .sgprs = info.sgprs,
                         .lds_bytes = info.lds_bytes,
                         .kernarg_bytes = info.kernarg_bytes,
                         .instructions = info.instructions,
                         .object_bytes = kernel.entry->object().size(),
                         .source = from_memory_ ? KernelSource::kMemory : kernel.source,
                         .layer = kernel.layer,
                         .llvm_version = kernel.metadata.llvm_version,
                         .times = state_->times,
                         .helpers = {}};
    for (const ReadyKernel& helper : state_->helpers) {
      result.helpers.push_back({.description = describe(helper.kernel.choice.spec),
                                .key = helper.kernel.key.name(),
                                .symbol = helper.kernel.metadata.info.symbol,
                                .source = from_memory_ ? KernelSource::kMemory : helper.kernel.source});
    }
    result.times.publish = milliseconds(state_->cache->stats().publish_time);
    return result;
  }

  std::span<const std::byte> object() const override { return state_->attention.kernel.entry->object(); }

 private:
  template <typename Args>
  Status queue(const ReadyKernel& kernel, const LaunchShape& shape, const Args& args, Stream stream) const {
    return device_->launch(*kernel.loaded, shape, std::as_bytes(std::span(&args, 1)), stream);
  }

  std::shared_ptr<const LoadedState> state_;
  std::shared_ptr<Device> device_;
  bool from_memory_;
};

// An entry can pass every check and still be refused by the device runtime (a driver older than the object). It is
// rebuilt once; what a fresh build gives is final.
Expected<std::shared_ptr<LoadedKernel>> load(Device& device, cache::Cache& cache, Kernel& kernel) {
  Expected<std::shared_ptr<LoadedKernel>> loaded = device.load(kernel.entry->object(), kernel.metadata.info.symbol);
  if (loaded || kernel.source == KernelSource::kBuilt) return loaded;
  cache.discard(kernel.key);
  Expected<Kernel> rebuilt = obtain_kernel(cache, kernel.choice);
  if (!rebuilt) return tl::unexpected(std::move(rebuilt.error()));
  kernel = std::move(*rebuilt);
  return device.load(kernel.entry->object(), kernel.metadata.info.symbol);
}

// One kernel from the cache or built, and on the device where there is one. Adds to the steps of `times`.
Expected<ReadyKernel> make_ready(cache::Cache& cache, KernelChoice choice, Device* device, CompileTimes& times) {
  Expected<Kernel> kernel = obtain_kernel(cache, std::move(choice));
  if (!kernel) return tl::unexpected(std::move(kernel.error()));
  ReadyKernel ready{.kernel = {}, .loaded = nullptr};
  if (device != nullptr) {
    Stopwatch watch;
    Expected<std::shared_ptr<LoadedKernel>> loaded = load(*device, cache, *kernel);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    times.load += watch.lap();
    ready.loaded = std::move(*loaded);
  }
  times.lookup += kernel->times.lookup;
  times.open += kernel->times.open;
  times.build += kernel->times.build;
  ready.kernel = std::move(*kernel);
  return ready;
}

// The problem brings all of its kernels; the cache knows the one that it missed.
Error with_hint(Error error, const AttentionProblem& problem) {
  if (error.code == ErrorCode::kCacheMiss && problem.compute == Compute::kFp8) {
    error.details.push_back("all kernels of the problem: " + prewarm_hint(problem));
  }
  return error;
}

Expected<std::shared_ptr<const LoadedState>> make_state(const AttentionProblem& problem,
                                                        const CompileOptions& options) {
  Stopwatch total;
  Expected<KernelChoice> choice = choose_kernel(problem, options.placement);
  if (!choice) return tl::unexpected(std::move(choice.error()));
  Expected<std::shared_ptr<cache::Cache>> cache = open_cache(options.cache);
  if (!cache) return tl::unexpected(std::move(cache.error()));
  auto state = std::make_shared<LoadedState>();
  Expected<ReadyKernel> attention = make_ready(**cache, std::move(*choice), options.device.get(), state->times);
  if (!attention) return tl::unexpected(with_hint(std::move(attention.error()), problem));
  state->attention = std::move(*attention);
  for (KernelChoice& helper : choose_helpers(problem)) {
    Expected<ReadyKernel> ready = make_ready(**cache, std::move(helper), options.device.get(), state->times);
    if (!ready) return tl::unexpected(with_hint(std::move(ready.error()), problem));
    state->helpers.push_back(std::move(*ready));
  }
  const schedules::KernelInfo& info = state->attention.kernel.metadata.info;
  state->shape = {.waves = info.waves, .query_tile = info.query_tile};
  state->device = options.device;
  state->cache = *cache;
  state->problem = problem;
  state->times.total = total.lap();
  return state;
}

}  // namespace

std::string_view kernel_source_name(KernelSource source) {
  switch (source) {
    case KernelSource::kMemory:
      return "memory";
    case KernelSource::kDisk:
      return "disk";
    case KernelSource::kBuilt:
      return "built";
  }
  return "unknown";
}

Expected<std::shared_ptr<Attention>> Attention::compile(const AttentionProblem& problem,
                                                        const CompileOptions& options) {
  LoadedTable& table = LoadedTable::instance();
  const LoadedTable::KeyView key{problem, options.placement, options.cache.path, options.cache.mode,
                                 options.device.get()};
  if (std::shared_ptr<const LoadedState> state = table.find(key, options.device)) {
    state->cache->count_memory_hit();
    return std::make_shared<AttentionImpl>(std::move(state), options.device, Found::kInMemory);
  }
  Expected<std::shared_ptr<const LoadedState>> made = make_state(problem, options);
  if (!made) return tl::unexpected(std::move(made.error()));
  table.insert(key, *made);
  return std::make_shared<AttentionImpl>(std::move(*made), options.device, Found::kJustMade);
}

}  // namespace zyfa
