#include "runtime/kernel_store.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/jit_loader.h"
#include "runtime/kernel_key.h"
#include "runtime/object_check.h"
#include "runtime/process_locks.h"
#include "runtime/stopwatch.h"

namespace zyfa {
namespace {

const char* mode_text(CacheMode mode) {
  switch (mode) {
    case CacheMode::kFromEnvironment:
      return nullptr;
    case CacheMode::kNormal:
      return "normal";
    case CacheMode::kReadOnly:
      return "readonly";
    case CacheMode::kOff:
      return "off";
    case CacheMode::kRequire:
      return "require";
  }
  return nullptr;
}

Expected<cache::CacheConfig> configure(const CacheOptions& options) {
  return cache::config_from_environment([&](const char* name) -> const char* {
    if (std::string_view(name) == "ZYFA_CACHE_PATH" && !options.path.empty()) return options.path.c_str();
    if (std::string_view(name) == "ZYFA_CACHE" && mode_text(options.mode) != nullptr) return mode_text(options.mode);
    return std::getenv(name);
  });
}

// Everything but a rejected entry is told once by the cache; those are counted and healed without a word.
void warn(const cache::CacheEvent& event) {
  if (event.kind == cache::CacheEventKind::kEntryRejected) return;
  std::fprintf(stderr, "zyfa: warning: %s\n", event.error.message.c_str());
}

std::string hint_for_key(const cache::Key& key) {
  Expected<KeyContents> contents = read_key(key.bytes);
  if (!contents) return "zyfa-jit prewarm --shapes FILE";
  return prewarm_hint(problem_of(contents->spec));
}

struct OpenCache {
  cache::CacheConfig config;
  std::shared_ptr<cache::Cache> cache;
};

// Never destroyed: kernels may be compiled while the process exits, from the destructors of a user's statics.
std::vector<OpenCache>& open_caches() {
  static auto* caches = new std::vector<OpenCache>;  // a handful
  return *caches;
}

void finish_caches() {
  const std::lock_guard lock(process_locks().caches);
  for (const OpenCache& open : open_caches()) open.cache->finish();
}

bool same(const cache::CacheConfig& a, const cache::CacheConfig& b) {
  return a.mode == b.mode && a.read_only_layers == b.read_only_layers && a.writable_layer == b.writable_layer;
}

Expected<cache::BuiltEntry> build(const schedules::KernelSpec& spec, CompileTimes& times) {
  const auto building = enter_build();
  Stopwatch watch;
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  times.open = watch.lap();
  Expected<schedules::CompiledKernel> compiled = (*service)->compile_kernel(spec);
  if (!compiled) return tl::unexpected(std::move(compiled.error()));
  times.build = watch.lap();
  const KernelMetadata metadata{.info = std::move(compiled->info),
                                .llvm_version = (*service)->llvm_version(),
                                .assembler = "llvm-mc",
                                .register_map = std::move(compiled->register_map),
                                .schedule_chart = std::move(compiled->schedule_chart)};
  return cache::BuiltEntry{encode(metadata), std::move(compiled->object)};
}

KernelSource source_of(cache::CacheSource source) {
  switch (source) {
    case cache::CacheSource::kMemory:
      return KernelSource::kMemory;
    case cache::CacheSource::kDisk:
      return KernelSource::kDisk;
    case cache::CacheSource::kBuilt:
      break;
  }
  return KernelSource::kBuilt;
}

}  // namespace

Expected<std::shared_ptr<cache::Cache>> open_cache(const CacheOptions& options) {
  Expected<cache::CacheConfig> config = configure(options);
  if (!config) return tl::unexpected(std::move(config.error()));
  const std::lock_guard lock(process_locks().caches);
  std::vector<OpenCache>& caches = open_caches();
  for (const OpenCache& open : caches) {
    if (same(open.config, *config)) return open.cache;
  }
  auto opened = std::make_shared<cache::Cache>(
      *config, cache::CacheOptions{
                   .validator = check_entry, .observer = warn, .prewarm_hint = hint_for_key, .publish_hook = {}});
  if (caches.empty()) static_cast<void>(std::atexit(finish_caches));
  caches.push_back({std::move(*config), opened});
  return opened;
}

std::string prewarm_hint(const AttentionProblem& problem) {
  return "zyfa-jit prewarm --shapes FILE, with the line \"" + to_string(problem) + "\" in FILE";
}

Expected<Kernel> obtain_kernel(cache::Cache& cache, KernelChoice choice) {
  Kernel kernel;
  Expected<cache::Key> key = make_key(choice.spec);
  if (!key) return tl::unexpected(std::move(key.error()));
  Stopwatch watch;
  Expected<cache::Lookup> lookup = cache.get_or_build(*key, [&] { return build(choice.spec, kernel.times); });
  if (!lookup) return tl::unexpected(std::move(lookup.error()));
  kernel.times.lookup = watch.lap() - kernel.times.open - kernel.times.build;
  Expected<KernelMetadata> metadata = decode_kernel_metadata(lookup->entry->metadata());
  if (!metadata) return tl::unexpected(std::move(metadata.error()));
  kernel.choice = std::move(choice);
  kernel.key = std::move(*key);
  kernel.entry = std::move(lookup->entry);
  kernel.metadata = std::move(*metadata);
  kernel.source = source_of(lookup->source);
  kernel.layer = std::move(lookup->layer);
  return kernel;
}

}  // namespace zyfa
