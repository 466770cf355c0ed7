// The boundary between libzyfa and libzyfa_jit: everything that needs the DSL, LLVM or the simulator.
//
// libzyfa opens libzyfa_jit lazily with RTLD_LOCAL and calls its only exported function, zyfa_jit_service_v1(). Both
// libraries are built from one tree by one compiler, so C++ types may cross; the generator id, plain text in a plain
// struct, is compared before anything else is touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/compile.h"
#include "schedules/tune/search.h"
#include "zyfa/device.h"
#include "zyfa/error.h"
#include "zyfa/inspect.h"
#include "zyfa/picture.h"
#include "zyfa/profile.h"

namespace zyfa {

class JitService {
 public:
  // kScheduleError, kCompileError.
  [[nodiscard]] virtual Expected<schedules::CompiledKernel> compile_kernel(const schedules::KernelSpec& spec) const = 0;
  [[nodiscard]] virtual Expected<std::string> dump(std::span<const std::byte> object, Dump what,
                                                   std::string_view symbol) const = 0;
  [[nodiscard]] virtual Expected<VerifyResult> verify(std::span<const std::byte> object) const = 0;
  [[nodiscard]] virtual Expected<std::shared_ptr<SimDevice>> make_sim_device(const SimOptions& options) const = 0;
  [[nodiscard]] virtual std::vector<ProfileParameter> profile_parameters() const = 0;
  // kInvalidArgument: a text that last_profile() would refuse.
  [[nodiscard]] virtual Status check_profile_parameters(std::span<const std::string> parameters) const = 0;
  [[nodiscard]] virtual Expected<std::string> draw(const LaunchProfile& profile, Picture picture,
                                                   const PictureOptions& options) const = 0;
  // schedules::search() over the placements that all of some kernels can have, whose own are not looked at; it puts in
  // `calls.algorithms`. The walk goes along the first one's stages.
  [[nodiscard]] virtual Expected<schedules::Found> search_placements(std::span<const schedules::KernelSpec> specs,
                                                                     const std::vector<schedules::Placement>& starts,
                                                                     const schedules::SearchOptions& options,
                                                                     const schedules::SearchCalls& calls) const = 0;
  [[nodiscard]] virtual std::string llvm_version() const = 0;

 protected:
  ~JitService() = default;  // a static object of libzyfa_jit
};

struct JitEntry {
  const char* generator_id;
  const JitService* service;
};

inline constexpr const char* kJitEntryName = "zyfa_jit_service_v1";
using JitEntryFunction = const JitEntry* (*)();

}  // namespace zyfa

extern "C" ZYFA_API const zyfa::JitEntry* zyfa_jit_service_v1();
