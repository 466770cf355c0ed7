// Attention::compile() and launch(): memory table, then obtain_kernel(), then the device.
#include "zyfa/attention.h"

#include <mutex>
#include <utility>

#include "runtime/kernel_store.h"
#include "runtime/launch.h"
#include "runtime/loaded_table.h"
#include "runtime/stopwatch.h"

namespace zyfa {
namespace {

class AttentionImpl final : public Attention {
 public:
  AttentionImpl(std::shared_ptr<const LoadedState> state, std::shared_ptr<Device> device, KernelSource source)
      : state_(std::move(state)), device_(std::move(device)), source_(source) {}

  Status launch(const LaunchArgs& args, Stream stream) const override {
    if (device_ == nullptr) {
      return make_error(ErrorCode::kInvalidArgument,
                        "this kernel was compiled without a device; give CompileOptions::device to launch it");
    }
    Expected<std::optional<PreparedLaunch>> prepared = prepare_launch(state_->problem, state_->shape, args);
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    if (!prepared->has_value()) return {};
    const PreparedLaunch& launch = **prepared;
    return device_->launch(*state_->loaded, launch.shape, std::as_bytes(std::span(&launch.args, 1)), stream);
  }

  Expected<std::size_t> workspace_bytes(const LaunchArgs& /*args*/) const override { return 0; }

  AttentionInfo info() const override {
    const Kernel& kernel = state_->kernel;
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
                         .source = source_,
                         .layer = kernel.layer,
                         .llvm_version = kernel.metadata.llvm_version,
                         .times = kernel.times};
    result.times.publish = milliseconds(state_->cache->stats().publish_time);
    return result;
  }

  std::span<const std::byte> object() const override { return state_->kernel.entry->object(); }

 private:
  std::shared_ptr<const LoadedState> state_;
  std::shared_ptr<Device> device_;
  KernelSource source_;
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

Expected<std::shared_ptr<const LoadedState>> make_state(const AttentionProblem& problem,
                                                        const CompileOptions& options) {
  Stopwatch total;
  Expected<KernelChoice> choice = choose_kernel(problem, options.placement);
  if (!choice) return tl::unexpected(std::move(choice.error()));
  Expected<std::shared_ptr<cache::Cache>> cache = open_cache(options.cache);
  if (!cache) return tl::unexpected(std::move(cache.error()));
  Expected<Kernel> kernel = obtain_kernel(**cache, std::move(*choice));
  if (!kernel) return tl::unexpected(std::move(kernel.error()));
  auto state = std::make_shared<LoadedState>();
  if (options.device != nullptr) {
    Stopwatch watch;
    Expected<std::shared_ptr<LoadedKernel>> loaded = load(*options.device, **cache, *kernel);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    kernel->times.load = watch.lap();
    state->loaded = std::move(*loaded);
    state->device = options.device;
  }
  kernel->times.total = total.lap();
  state->cache = *cache;
  state->problem = problem;
  state->shape = {.waves = kernel->metadata.info.waves, .query_tile = kernel->metadata.info.query_tile};
  state->kernel = std::move(*kernel);
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
    return std::make_shared<AttentionImpl>(std::move(state), options.device, KernelSource::kMemory);
  }
  Expected<std::shared_ptr<const LoadedState>> made = make_state(problem, options);
  if (!made) return tl::unexpected(std::move(made.error()));
  const KernelSource source = (*made)->kernel.source;
  table.insert(key, *made);
  return std::make_shared<AttentionImpl>(std::move(*made), options.device, source);
}

}  // namespace zyfa
