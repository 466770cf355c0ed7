// One process's kernels: from a choice to checked object bytes, through the cache or libzyfa_jit.
#pragma once

#include <memory>
#include <string>

#include "cache/cache.h"
#include "runtime/kernel_choice.h"
#include "runtime/kernel_metadata.h"
#include "zyfa/attention.h"
#include "zyfa/cache.h"

namespace zyfa {

// The cache of these options; one per distinct configuration and process, never destroyed; leaving main() finishes its
// publishes. Reads the environment.
// kInvalidArgument: a variable or the path is malformed.
[[nodiscard]] Expected<std::shared_ptr<cache::Cache>> open_cache(const CacheOptions& options);

struct Kernel {
  KernelChoice choice;
  cache::Key key;
  std::shared_ptr<const cache::Entry> entry;
  KernelMetadata metadata;
  KernelSource source = KernelSource::kBuilt;
  std::string layer;
  CompileTimes times;  // lookup, open, build
};

// What a person does against a kernel that no cache has.
[[nodiscard]] std::string prewarm_hint(const AttentionProblem& problem);

// What Attention::compile() does before a device comes in; same errors.
[[nodiscard]] Expected<Kernel> obtain_kernel(cache::Cache& cache, KernelChoice choice);

}  // namespace zyfa
