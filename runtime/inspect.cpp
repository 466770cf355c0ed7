// zyfa/inspect.h: listing and finding cache entries, and the calls that libzyfa_jit serves.
#include "zyfa/inspect.h"

#include <algorithm>
#include <utility>

#include "cache/key.h"
#include "jit/object/code_object.h"
#include "runtime/jit_loader.h"
#include "runtime/kernel_key.h"
#include "runtime/kernel_store.h"

namespace zyfa {
namespace {

constexpr std::size_t kMinKeyDigits = 4;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

// An entry read from a layer and understood by this version.
Expected<KernelObject> describe(const cache::Entry& entry, const std::string& name) {
  Expected<KeyContents> key = read_key(entry.key());
  if (!key) return tl::unexpected(std::move(key.error()));
  Expected<KernelMetadata> metadata = decode_kernel_metadata(entry.metadata());
  if (!metadata) return tl::unexpected(std::move(metadata.error()));
  KernelObject kernel;
  kernel.entry = {.key = name,
                  .path = {},
                  .layer = {},
                  .problem = zyfa::describe(key->spec),
                  .schedule = std::move(key->spec.placement),
                  .symbol = std::move(metadata->info.symbol),
                  .generator = std::move(key->generator),
                  .llvm_version = std::move(metadata->llvm_version),
                  .file_bytes = entry.file_bytes().size()};
  kernel.object = copy_of(entry.object());
  kernel.register_map = std::move(metadata->register_map);
  kernel.schedule_chart = std::move(metadata->schedule_chart);
  return kernel;
}

void place_in(const cache::Store& layer, CachedKernel& entry) {
  entry.layer = layer.root();
  entry.path = layer.root() + "/v" + std::to_string(cache::kEntryVersion) + "/" + entry.key + ".zyfa";
}

// Calls use(layer, name) for every entry of every layer whose name starts with `prefix`.
template <typename Use>
Status for_each_entry(const cache::Cache& cache, std::string_view prefix, Use use) {
  for (const cache::Store* layer : cache.layers()) {
    Expected<std::vector<cache::ListedEntry>> listed = layer->list();
    if (!listed) return tl::unexpected(std::move(listed.error()));
    for (const cache::ListedEntry& entry : *listed) {
      if (entry.name.starts_with(prefix)) use(*layer, entry.name);
    }
  }
  return {};
}

Expected<KernelObject> read_entry(const cache::Store& layer, const std::string& name) {
  const std::optional<cache::Hash128> hash = cache::hash_from_hex(name);
  if (!hash) return make_error(ErrorCode::kCorruptData, "'" + name + "' is no entry name");
  cache::EntryExpected<std::optional<cache::Entry>> entry = layer.read_named(*hash, cache::OnReject::kLeave);
  if (!entry) return tl::unexpected(std::move(entry.error().error));
  if (!entry->has_value()) return make_error(ErrorCode::kNotFound, "the entry " + name + " is gone");
  Expected<KernelObject> kernel = describe(**entry, name);
  if (kernel) place_in(layer, kernel->entry);
  return kernel;
}

}  // namespace

Expected<std::vector<CachedKernel>> list_cache(const CacheOptions& options) {
  Expected<std::shared_ptr<cache::Cache>> cache = open_cache(options);
  if (!cache) return tl::unexpected(std::move(cache.error()));
  std::vector<CachedKernel> kernels;
  const Status status = for_each_entry(**cache, {}, [&](const cache::Store& layer, const std::string& name) {
    if (Expected<KernelObject> kernel = read_entry(layer, name)) kernels.push_back(std::move(kernel->entry));
  });
  if (!status) return tl::unexpected(status.error());
  return kernels;
}

Expected<KernelObject> find_cached_kernel(std::string_view key, const CacheOptions& options) {
  if (key.size() < kMinKeyDigits || key.size() > cache::kHashHexDigits || !is_hex(key)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "'" + std::string(key) + "' is no key; give its first 4 to 32 " + "lower-case hex digits");
  }
  Expected<std::shared_ptr<cache::Cache>> cache = open_cache(options);
  if (!cache) return tl::unexpected(std::move(cache.error()));
  std::vector<std::pair<std::string, const cache::Store*>> matches;  // a key of several layers counts once
  const Status status = for_each_entry(**cache, key, [&](const cache::Store& layer, const std::string& name) {
    const bool known = std::ranges::any_of(matches, [&](const auto& match) { return match.first == name; });
    if (!known) matches.emplace_back(name, &layer);
  });
  if (!status) return tl::unexpected(status.error());
  if (matches.size() == 1) return read_entry(*matches.front().second, matches.front().first);
  if (matches.empty()) {
    std::vector<std::string> details;
    for (const cache::Store* layer : (*cache)->layers()) details.push_back("looked in " + layer->root());
    return make_error(ErrorCode::kNotFound, "no cache entry's key starts with '" + std::string(key) + "'",
                      std::move(details));
  }
  std::vector<std::string> details;
  for (const auto& match : matches) details.push_back(match.first);
  return make_error(
      ErrorCode::kInvalidArgument,
      std::to_string(matches.size()) + " cache entries start with '" + std::string(key) + "'; give more digits",
      std::move(details));
}

namespace {

Expected<KernelObject> obtain_object(cache::Cache& cache, KernelChoice choice) {
  Expected<Kernel> kernel = obtain_kernel(cache, std::move(choice));
  if (!kernel) return tl::unexpected(std::move(kernel.error()));
  Expected<KernelObject> object = describe(*kernel->entry, kernel->key.name());
  if (!object) return object;
  for (const cache::Store* layer : cache.layers()) {
    if (layer->root() == kernel->layer) place_in(*layer, object->entry);
  }
  return object;
}

}  // namespace

Expected<KernelObject> find_kernel(const AttentionProblem& problem, const CacheOptions& options,
                                   std::string_view placement) {
  Expected<KernelChoice> choice = choose_kernel(problem, placement);
  if (!choice) return tl::unexpected(std::move(choice.error()));
  Expected<std::shared_ptr<cache::Cache>> cache = open_cache(options);
  if (!cache) return tl::unexpected(std::move(cache.error()));
  return obtain_object(**cache, std::move(*choice));
}

Expected<std::vector<KernelObject>> find_helper_kernels(const AttentionProblem& problem, const CacheOptions& options) {
  Expected<KernelChoice> supported = choose_kernel(problem);
  if (!supported) return tl::unexpected(std::move(supported.error()));
  Expected<std::shared_ptr<cache::Cache>> cache = open_cache(options);
  if (!cache) return tl::unexpected(std::move(cache.error()));
  std::vector<KernelObject> objects;
  for (KernelChoice& helper : choose_helpers(problem)) {
    Expected<KernelObject> object = obtain_object(**cache, std::move(helper));
    if (!object) return tl::unexpected(std::move(object.error()));
    objects.push_back(std::move(*object));
  }
  return objects;
}

Expected<std::string> dump_object(std::span<const std::byte> object, Dump what, std::string_view symbol) {
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  return (*service)->dump(object, what, symbol);
}

Expected<ObjectInfo> describe_object(std::span<const std::byte> bytes) {
  Expected<jit::CodeObject> object = jit::read_code_object(copy_of(bytes));
  if (!object) return tl::unexpected(std::move(object.error()));
  ObjectInfo info{.target = std::move(object->target), .kernels = {}};
  for (jit::KernelImage& kernel : object->kernels) {
    ObjectKernel& described = info.kernels.emplace_back();
    described.symbol = std::move(kernel.name);
    described.kernarg_bytes = kernel.kernarg_bytes;
    described.lds_bytes = kernel.descriptor_lds;
    for (jit::KernelArgument& argument : kernel.arguments) {
      // The reader gives a hidden argument, which has no name, its kind as the name.
      const bool hidden = argument.name.starts_with("hidden_");
      const std::string kind = hidden ? argument.name : argument.is_pointer ? "global_buffer" : "by_value";
      described.arguments.push_back({.name = hidden ? std::string() : std::move(argument.name),
                                     .kind = kind,
                                     .offset = argument.offset,
                                     .size = argument.size});
    }
  }
  return info;
}

Expected<VerifyResult> verify_object(std::span<const std::byte> object) {
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  return (*service)->verify(object);
}

Expected<std::string> explain_key(const AttentionProblem& problem, std::string_view placement) {
  Expected<KernelChoice> choice = choose_kernel(problem, placement);
  if (!choice) return tl::unexpected(std::move(choice.error()));
  Expected<cache::Key> key = make_key(choice->spec);
  if (!key) return tl::unexpected(std::move(key.error()));
  Expected<cache::DecodedKey> decoded = cache::decode_key(cache::as_bytes(key->bytes));
  if (!decoded) return tl::unexpected(std::move(decoded.error()));
  std::string text = "schema=" + std::to_string(decoded->schema) + "\n";
  for (const cache::KeyField& field : decoded->fields) text += cache::to_string(field) + "\n";
  for (const KernelChoice& helper : choose_helpers(problem)) {
    Expected<cache::Key> helper_key = make_key(helper.spec);
    if (!helper_key) return tl::unexpected(std::move(helper_key.error()));
    text += "helper=" + helper_key->name() + " " + zyfa::describe(helper.spec) + "\n";
  }
  return text + "key=" + key->name() + "\n";
}

std::optional<TilePaths> last_tile_paths(const SimDevice& device) {
  TilePaths paths;
  for (const SimInstructionCount& count : device.last_instruction_counts()) {
    if (count.comment == "near path") paths.near += count.executed;
    if (count.comment == "far path") paths.far += count.executed;
  }
  return paths.near + paths.far == 0 ? std::nullopt : std::optional(paths);
}

VersionInfo version_info() {
  VersionInfo info{.zyfa = ZYFA_VERSION, .generator = std::string(generator_id()), .llvm = {}, .jit_path = {}};
  if (Expected<const JitService*> service = jit_service()) {
    info.llvm = (*service)->llvm_version();
    info.jit_path = jit_library_path();
  } else {
    info.jit_path = service.error().message;
  }
  return info;
}

}  // namespace zyfa
