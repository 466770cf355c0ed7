// SimDevice::create() and the parameters of the cycle model: the simulator itself lives in libzyfa_jit.
#include <utility>

#include "runtime/jit_loader.h"
#include "zyfa/device.h"
#include "zyfa/profile.h"

namespace zyfa {

Expected<std::shared_ptr<SimDevice>> SimDevice::create(const SimOptions& options) {
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  return (*service)->make_sim_device(options);
}

Expected<std::vector<ProfileParameter>> profile_parameters() {
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  return (*service)->profile_parameters();
}

Status check_profile_parameters(std::span<const std::string> parameters) {
  if (parameters.empty()) return {};
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  return (*service)->check_profile_parameters(parameters);
}

}  // namespace zyfa
