// Programs that clang-22 compiles for gfx950 in the test, each run plain and strict: the result equals the host's and
// strict mode finds nothing, since the compiler's waits and wait states are right by construction.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/require_tools.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {

// The parameter is an optimisation level.
class Program : public testing::TestWithParam<const char*> {
 protected:
  enum class Compiled { kYes, kFailed, kNoCompiler };

  // OpenCL C, with short names for the builtins. LID and GID are the work-item and workgroup ids.
  Compiled compile_cl(const char* source, const std::string& flags = "") {
    static constexpr char kPrelude[] = R"(
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
#define LID __builtin_amdgcn_workitem_id_x()
#define GID __builtin_amdgcn_workgroup_id_x()
#define NOINLINE __attribute__((noinline))
#define BARRIER() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
)";
    return keep(compile_opencl(std::string(kPrelude) + source, std::string(GetParam()) + " " + flags));
  }
  // C++ without a library.
  Compiled compile_cxx(const char* source, const std::string& flags = "") {
    static constexpr char kPrelude[] = R"(
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32; typedef unsigned long u64;
#define LID __builtin_amdgcn_workitem_id_x()
#define GID __builtin_amdgcn_workgroup_id_x()
#define NOINLINE __attribute__((noinline))
#define GLOBAL __attribute__((address_space(1)))
#define LOCAL [[clang::loader_uninitialized]] static __attribute__((address_space(3)))
#define KERNEL extern "C" __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(1, 256)))
static inline void barrier() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); }
)";
    return keep(compile_cpp(std::string(kPrelude) + source, std::string(GetParam()) + " " + flags));
  }

  // `body` makes buffers on the device, launches and compares.
  template <typename Body>
  void on_each_device(Body&& body) {
    for (const SimChecks checks : {SimChecks::kPlain, SimChecks::kStrict}) {
      SCOPED_TRACE(checks == SimChecks::kPlain ? "plain" : "strict");
      body(*make_device(checks, 2));
    }
  }

  // Kernel "k". False, with the reason reported, when it did not run to its end.
  bool launch(SimDevice& device, unsigned groups, unsigned items, const Args& args) {
    const Status status =
        run(device, *object_, "k", {.grid = {groups, 1, 1}, .block = {items, 1, 1}, .dynamic_lds = 0}, args);
    if (!status) ADD_FAILURE() << to_string(status.error());
    return status.has_value();
  }

 private:
  Compiled keep(std::optional<Bytes> object) {
    object_ = std::move(object);
    if (!object_) return Compiled::kNoCompiler;
    return object_->empty() ? Compiled::kFailed : Compiled::kYes;
  }

  std::optional<Bytes> object_;
};

#define ZYFA_COMPILE(call)                                                                      \
  do {                                                                                          \
    const Compiled compiled = call;                                                             \
    if (compiled == Compiled::kNoCompiler) ZYFA_SKIP_WITHOUT_TOOL("clang-22 is not installed"); \
    if (compiled == Compiled::kFailed) return;                                                  \
  } while (false)

inline std::string level_name(const testing::TestParamInfo<const char*>& info) { return info.param + 1; }

inline std::vector<std::uint32_t> random_words(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::uint32_t> v(n);
  for (auto& x : v) x = rng();
  return v;
}
inline std::vector<float> random_floats(std::size_t n, unsigned seed, float lo, float hi) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(lo, hi);
  std::vector<float> v(n);
  for (float& x : v) x = d(rng);
  return v;
}
// Integers in [lo, hi].
inline std::vector<int> random_ints(std::size_t n, unsigned seed, int lo, int hi) {
  std::mt19937 rng(seed);
  std::uniform_int_distribution<int> d(lo, hi);
  std::vector<int> v(n);
  for (int& x : v) x = d(rng);
  return v;
}

}  // namespace zyfa::sim_test
