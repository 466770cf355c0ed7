#include "runtime/hip/hip_api.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace zyfa::hip {
namespace {

constexpr const char* kNames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};

tl::unexpected<Error> unavailable(std::string message, std::vector<std::string> details = {}) {
  return make_error(ErrorCode::kDeviceUnavailable, std::move(message), std::move(details));
}

struct Opened {
  void* handle = nullptr;
  std::string name;
};

Expected<Opened> open_library(const std::string& wanted) {
  if (!wanted.empty()) {
    if (void* handle = dlopen(wanted.c_str(), RTLD_NOW | RTLD_LOCAL)) return Opened{handle, wanted};
    return unavailable("ZYFA_HIP_LIBRARY names " + wanted + ", which cannot be opened: " + std::string(dlerror()));
  }
  // Two HIP runtimes in one process do not share streams, so one that is loaded already (by PyTorch, say) wins.
  for (int flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL}) {
    for (const char* name : kNames) {
      if (void* handle = dlopen(name, flags)) return Opened{handle, name};
    }
  }
  std::vector<std::string> details;
  for (const char* name : kNames) details.push_back("tried " + std::string(name));
  return unavailable("the HIP runtime libamdhip64 is not installed; name its path in ZYFA_HIP_LIBRARY",
                     std::move(details));
}

template <typename Function>
bool resolve(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

Expected<std::shared_ptr<const HipApi>> resolve_all(const Opened& opened) {
  auto api = std::make_shared<HipApi>();
  api->path = opened.name;
  const char* missing = nullptr;
#define ZYFA_HIP_RESOLVE(name, result, parameters) \
  if (!resolve(opened.handle, #name, api->name)) missing = #name;
  ZYFA_HIP_ENTRY_POINTS(ZYFA_HIP_RESOLVE)
#undef ZYFA_HIP_RESOLVE
  // From ROCm 6 on the header maps the name to the R0600 symbol.
  if (!resolve(opened.handle, "hipGetDevicePropertiesR0600", api->get_device_properties) &&
      !resolve(opened.handle, "hipGetDeviceProperties", api->get_device_properties)) {
    missing = "hipGetDeviceProperties";
  }
  if (missing != nullptr) return unavailable(opened.name + " is no usable HIP runtime: it has no " + missing);
  return api;
}

}  // namespace

Status HipApi::check(HipError error, const char* call) const {
  if (error == kSuccess) return {};
  return make_error(ErrorCode::kDeviceError,
                    std::string(call) + " failed: " + hipGetErrorString(error) + " (" + std::to_string(error) + ")");
}

Expected<std::shared_ptr<const HipApi>> load_hip() {
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, std::shared_ptr<const HipApi>>;  // devices may outlive statics
  const char* named = std::getenv("ZYFA_HIP_LIBRARY");
  const std::string wanted = named != nullptr ? named : "";
  const std::lock_guard lock(mutex);
  if (const auto found = loaded.find(wanted); found != loaded.end()) return found->second;
  Expected<Opened> opened = open_library(wanted);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  Expected<std::shared_ptr<const HipApi>> api = resolve_all(*opened);
  if (api) loaded.emplace(wanted, *api);
  return api;
}

Expected<std::string> architecture_of(const HipApi& api, int ordinal) {
  // Larger than any known hipDeviceProp_t (1,472 bytes in ROCm 6). The field gcnArchName is the text that begins with
  // "gfx"; the longest is taken, since `name` may hold the bare processor as well.
  std::array<char, 16384> properties{};
  if (Status status = api.check(api.get_device_properties(properties.data(), ordinal), "hipGetDeviceProperties");
      !status) {
    return tl::unexpected(std::move(status.error()));
  }
  const std::string_view bytes(properties.data(), properties.size());
  std::string_view best;
  for (auto at = bytes.find("gfx"); at != std::string_view::npos; at = bytes.find("gfx", at + 3)) {
    const std::string_view text = bytes.substr(at, bytes.find('\0', at) - at);
    if (text.size() > best.size()) best = text;
  }
  return std::string(best);
}

}  // namespace zyfa::hip
