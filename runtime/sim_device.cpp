// SimDevice::create(): the simulator itself lives in libzyfa_jit.
#include <utility>

#include "runtime/jit_loader.h"
#include "zyfa/device.h"

namespace zyfa {

Expected<std::shared_ptr<SimDevice>> SimDevice::create(const SimOptions& options) {
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  return (*service)->make_sim_device(options);
}

}  // namespace zyfa
