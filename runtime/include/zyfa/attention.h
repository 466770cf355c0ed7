// Attention forward: compile once per problem and device, launch on any stream.
//
//   auto attention = zyfa::Attention::compile({.mask = zyfa::Mask::kCausal}, {.device = device});
//   (*attention)->launch({.q = q, .k = k, .v = v, .out = out}, stream);
//
// out[b,i,h,:] = sum_j softmax_j(softmax_scale * q[b,i,h,:] . k[b,j,h/(H/Hk),:]) v[b,j,h/(H/Hk),:]
// A query that sees no key gets output 0 and LSE -inf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

// A view of a device tensor [batch, tokens, heads, dim]. Strides in elements; dim_stride must be 1. Address and byte
// strides must be multiples of 16 (the kernels load and store 16 bytes at a time). token_stride must be at least dim:
// the kernels tell the rows past the last by their byte offset, which then lies past the end of the last row. Heads and
// batches of q, k and v may share rows (strides of 0 too); an output's must not.
struct TensorView {
  DeviceAddress address = 0;
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0;
  std::int64_t batch_stride = 0, token_stride = 0, head_stride = 0, dim_stride = 1;

  // Packed BSHD.
  [[nodiscard]] static constexpr TensorView contiguous(DeviceAddress address, std::int64_t batch, std::int64_t tokens,
                                                       std::int64_t heads, std::int64_t dim) {
    return {address, batch, tokens, heads, dim, tokens * heads * dim, heads * dim, dim, 1};
  }
};

// A float32 view [batch, heads, tokens]; strides in elements, token_stride must be 1. Address a multiple of 4.
struct LseView {
  DeviceAddress address = 0;
  std::int64_t batch = 0, heads = 0, tokens = 0;
  std::int64_t batch_stride = 0, head_stride = 0, token_stride = 1;

  [[nodiscard]] static constexpr LseView contiguous(DeviceAddress address, std::int64_t batch, std::int64_t heads,
                                                    std::int64_t tokens) {
    return {address, batch, heads, tokens, heads * tokens, tokens, 1};
  }
};

// A float32 descale of an 8-bit input: one value (batch and heads 1), or [B, Hk]; q's too is per key head. The input's
// value is code * descale. Strides in elements, any; 0 and negative values are allowed. Address a multiple of 4.
struct DescaleView {
  DeviceAddress address = 0;  // null: 1.0
  std::int64_t batch = 1, heads = 1;
  std::int64_t batch_stride = 0, head_stride = 0;
};

// Device memory for the quantised inputs of Compute::kFp8; its contents before and after a launch mean nothing. One
// launch at a time may use it. Address a multiple of 256.
struct Workspace {
  DeviceAddress address = 0;
  std::size_t bytes = 0;  // at least Attention::workspace_bytes()
};

struct LaunchArgs {
  TensorView q;                                       // [B, Sq, H, D]
  TensorView k;                                       // [B, Sk, Hk, D], H % Hk == 0
  TensorView v;                                       // [B, Sk, Hk, Dv]
  TensorView out;                                     // [B, Sq, H, Dv], same element type as q
  LseView lse = {};                                   // [B, H, Sq]; left default unless the problem has Lse::kWritten
  std::optional<float> softmax_scale = std::nullopt;  // default 1/sqrt(D)
  DescaleView q_descale = {}, k_descale = {}, v_descale = {};  // 8-bit inputs only
  Workspace workspace = {};                                    // Compute::kFp8 only
};

struct CompileOptions {
  // Where the kernel will run. Null: the code object is made (prewarm, inspection) and launch() is an error.
  std::shared_ptr<Device> device = nullptr;
  // A placement's text form instead of the table's choice (kernel development, tests). Empty: the table.
  std::string placement = {};
  CacheOptions cache = {};
};

enum class KernelSource : std::uint8_t { kMemory, kDisk, kBuilt };
[[nodiscard]] ZYFA_API std::string_view kernel_source_name(KernelSource source);  // "memory", "disk", "built"

// Milliseconds; 0 where the step did not happen.
struct CompileTimes {
  double total = 0;   // of the compile() call that first made or read this kernel
  double lookup = 0;  // disk cache: open, read, check
  double open = 0;    // opening libzyfa_jit and LLVM (first build of a process)
  double build = 0;   // listing, passes, assembly, link, verification
  double load = 0;    // onto the device
  // Writing cache entries, of every kernel of this process and cache so far. It happens in the background after the
  // kernel can be used and is not part of total; flush_cache() waits for it.
  double publish = 0;
};

// A kernel that launch() runs before the attention kernel: one that quantises.
struct HelperKernel {
  std::string description;  // "quantise k fp8e4m3,d=128,rotate"
  std::string key, symbol;
  KernelSource source = KernelSource::kBuilt;  // of this handle
};

struct AttentionInfo {
  AttentionProblem problem;
  std::string key;  // 32 hex digits: XXH3-128 of the canonical key bytes, the entry's file name
  std::string schedule_row, schedule;
  std::string symbol;
  std::uint32_t waves = 0;       // of a workgroup; 64 work-items each
  std::uint32_t query_tile = 0;  // queries of a workgroup
  std::uint32_t vgprs = 0, agprs = 0, sgprs = 0, lds_bytes = 0, kernarg_bytes = 0, instructions = 0;
  std::size_t object_bytes = 0;
  KernelSource source = KernelSource::kBuilt;  // of this handle
  std::string layer;                           // cache directory the entry was read from, or empty
  std::string llvm_version;                    // that assembled the object
  CompileTimes times;
  std::vector<HelperKernel> helpers;  // Compute::kFp8: in launch order
};

class ZYFA_API Attention {
 public:
  // memory -> disk layers -> JIT. Thread-safe; one build per kernel however many callers ask at once.
  // After fork() the child may compile at once; fork() waits for builds that other threads run. While the process exits
  // (destructors of statics) memory and disk still serve; a build may be kDeviceUnavailable.
  // kUnsupported (details: every reason), kScheduleError (placement), kCacheMiss (CacheMode::kRequire),
  // kDeviceUnavailable (libzyfa_jit is needed and absent), kCompileError, or what Device::load() gives.
  [[nodiscard]] static Expected<std::shared_ptr<Attention>> compile(const AttentionProblem& problem,
                                                                    const CompileOptions& options = {});
  virtual ~Attention() = default;

  // Queues the kernel. Allocates nothing, synchronises nothing. B, H or Sq of 0 is success without a launch; Sk of 0
  // writes zeros. kInvalidArgument names the argument, its value and what is allowed:
  //   - every view's shape against q's, H % Hk, the problem's head dims; dim_stride 1; no negative stride
  //   - q, k, v, out: token_stride at least dim; out, lse: by growing stride, each axis steps over all that the axes
  //     before it reach, so that nothing is written twice (strides of axes of one index are ignored)
  //   - addresses and byte strides multiples of 16 (LSE: 4 and 4); not null unless the tensor is empty
  //   - descales: given for 8-bit inputs only, [1, 1] or [B, Hk]
  //   - B <= 65535, H <= 32768, Sq and Sk <= 2^30, token strides < 2^26 bytes
  //   - softmax_scale finite, also times log2(e); FP8: also times 8 log2(e)
  [[nodiscard]] virtual Status launch(const LaunchArgs& args, Stream stream = nullptr) const = 0;

  // Bytes of workspace that launch() needs for these shapes (addresses are not looked at); 0 unless Compute::kFp8.
  [[nodiscard]] virtual Expected<std::size_t> workspace_bytes(const LaunchArgs& args) const = 0;

  [[nodiscard]] virtual AttentionInfo info() const = 0;
  // The ELF code object; valid while this Attention lives.
  [[nodiscard]] virtual std::span<const std::byte> object() const = 0;
};

}  // namespace zyfa
