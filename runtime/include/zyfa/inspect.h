// Looking into kernels and the cache: what the CLI's dump, list, verify and explain commands are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zyfa/cache.h"
#include "zyfa/device.h"
#include "zyfa/error.h"
#include "zyfa/export.h"
#include "zyfa/problem.h"

namespace zyfa {

// One entry of the disk cache.
struct CachedKernel {
  std::string key;      // 32 hex digits
  std::string path;     // file
  std::string layer;    // directory of the layer it stands in
  std::string problem;  // text form, from the key's fields; of a kernel that quantises: what it does
  std::string schedule;
  std::string symbol;
  std::string generator;  // id of the sources that made it
  std::string llvm_version;
  std::uint64_t file_bytes = 0;
};

// Every readable entry of every layer, by layer then key. Entries that fail their checks are left out, and so are
// layers that cannot be opened. kInvalidArgument (options or environment malformed), kIoError (a directory cannot be
// read).
[[nodiscard]] ZYFA_API Expected<std::vector<CachedKernel>> list_cache(const CacheOptions& options = {});

// A kernel with everything known of it, for inspection.
struct KernelObject {
  CachedKernel entry;  // path and layer empty when it was built and not read
  std::vector<std::byte> object;
  std::string register_map;    // text table; empty for objects not made by zyfa
  std::string schedule_chart;  // text picture of the pipeline; empty for objects not made by zyfa
};

// The entry whose key starts with `key`. kNotFound (details: the layers looked in); kInvalidArgument: not 4 to 32 hex
// digits, several match (details: their keys), or options malformed; kIoError, and kCorruptData for an entry that fails
// its checks.
[[nodiscard]] ZYFA_API Expected<KernelObject> find_cached_kernel(std::string_view key,
                                                                 const CacheOptions& options = {});

// The kernel of a problem, from the cache or built. Errors as Attention::compile() without a device: kUnsupported,
// kScheduleError, kInvalidArgument, kCacheMiss, kDeviceUnavailable, kCompileError.
[[nodiscard]] ZYFA_API Expected<KernelObject> find_kernel(const AttentionProblem& problem,
                                                          const CacheOptions& options = {},
                                                          std::string_view placement = {});

// The kernels that Attention::launch() runs before that one, in their order: those that quantise for Compute::kFp8.
// Empty for other problems. Errors as find_kernel().
[[nodiscard]] ZYFA_API Expected<std::vector<KernelObject>> find_helper_kernels(const AttentionProblem& problem,
                                                                               const CacheOptions& options = {});

enum class Dump : std::uint8_t {
  kIsa,       // offset, encoding, instruction, comment, stage
  kAssembly,  // text that stock llvm-mc takes
  kMetadata,  // descriptor, metadata, sizes
};

// Dumps any gfx950 code object. Opens libzyfa_jit. `symbol` empty: the object's only (or first) kernel.
// kCorruptData, kArchMismatch, kNotFound, kDeviceUnavailable (no libzyfa_jit).
[[nodiscard]] ZYFA_API Expected<std::string> dump_object(std::span<const std::byte> object, Dump what,
                                                         std::string_view symbol = {});

// One argument that a code object's metadata declares.
struct ObjectArgument {
  std::string name;  // may be empty
  std::string kind;  // ".value_kind": "global_buffer", "by_value", "hidden_group_size_x", ...
  std::uint32_t offset = 0, size = 0;
};

struct ObjectKernel {
  std::string symbol;
  std::uint32_t kernarg_bytes =
      0;                        // from the metadata, 0 without one; kernels in the field declare 0 in the descriptor
  std::uint32_t lds_bytes = 0;  // static, from the descriptor
  std::vector<ObjectArgument> arguments;
};

struct ObjectInfo {
  std::string target;
  std::vector<ObjectKernel> kernels;
};

// Kernels of any gfx950 code object and the arguments they take. Does not open libzyfa_jit.
// kCorruptData, kArchMismatch.
[[nodiscard]] ZYFA_API Expected<ObjectInfo> describe_object(std::span<const std::byte> object);

struct VerifyFinding {
  std::string kind;          // "wait-states", "missing-wait", ...
  std::uint64_t offset = 0;  // from the kernel's entry
  std::string instruction, message, origin;
};

struct VerifyResult {
  std::string target;                   // from the object's metadata
  std::vector<std::string> kernels;     // symbols
  std::uint32_t instructions = 0;       // checked: on a path from a kernel's entry
  std::uint32_t not_reached = 0;        // not checked: on no path that was followed, or in no kernel; without padding
  std::vector<VerifyFinding> findings;  // empty: nothing wrong was found in what was checked
  std::vector<std::string> notes;       // what was not checked or not followed, and what is only inadvisable
};

// Static verification of any gfx950 code object. Opens libzyfa_jit.
// kCorruptData, kArchMismatch, kNotFound (no kernel in it), kDeviceUnavailable (no libzyfa_jit).
[[nodiscard]] ZYFA_API Expected<VerifyResult> verify_object(std::span<const std::byte> object);

// The canonical key fields of a problem's kernel, "name=value" one a line; "helper=" with digest and description for
// each kernel that launch() runs before it; and "key=" with the kernel's hex digest on the last line.
// kUnsupported (details: every reason), kScheduleError (placement).
[[nodiscard]] ZYFA_API Expected<std::string> explain_key(const AttentionProblem& problem,
                                                         std::string_view placement = {});

// How many tiles, of 128 keys for one wave's queries, took each path of an FP8 kernel of the folded form: the near path
// has no block exponents, the far path applies them (docs/numerics.md). A wave without queries, or that a tile is
// hidden from, takes the near path for it when other waves of its workgroup see it.
struct TilePaths {
  std::uint64_t near = 0, far = 0;
};
// Of the simulator's last launch, which must have counted by instruction (SimCounts). The kernel's listing marks an
// instruction of each path that runs once a tile by the comments "near path" and "far path". Nothing when the launch
// did not count, or the kernel marks neither.
[[nodiscard]] ZYFA_API std::optional<TilePaths> last_tile_paths(const SimDevice& device);

struct VersionInfo {
  std::string zyfa;       // "0.1.0"
  std::string generator;  // id over the sources of jit/ and schedules/
  std::string llvm;       // empty when libzyfa_jit cannot be opened
  std::string jit_path;   // path of libzyfa_jit, or the reason it cannot be opened
};
[[nodiscard]] ZYFA_API VersionInfo version_info();

}  // namespace zyfa
