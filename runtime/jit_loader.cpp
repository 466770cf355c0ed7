#include "runtime/jit_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "runtime/process_locks.h"
#include "zyfa_generator_id.h"

namespace zyfa {
namespace {

struct OpenLibrary {
  const JitService* service = nullptr;
  std::string path;
  bool ending = false;
};

// Guarded by ProcessLocks::jit_library; never destroyed.
OpenLibrary& open_library() {
  static auto* library = new OpenLibrary;
  return *library;
}

// Registered when the library has been opened, so it runs just before the destructors of LLVM's statics.
void end_service() {
  const std::lock_guard lock(process_locks().jit_library);
  open_library().ending = true;
}

// Directory of the object this function is linked into, with a trailing slash.
std::string own_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

std::vector<std::string> candidates() {
  if (const char* path = std::getenv("ZYFA_JIT_LIBRARY"); path != nullptr && *path != '\0') return {path};
  const std::string directory = own_directory();
  return {directory + ZYFA_JIT_FILE, directory + "../lib/" ZYFA_JIT_FILE};
}

tl::unexpected<Error> unavailable(std::string message, std::vector<std::string> details = {}) {
  return make_error(ErrorCode::kDeviceUnavailable, std::move(message), std::move(details));
}

Expected<const JitService*> open(const std::string& path) {
  // Never closed: kernels, devices and LLVM's own statics may live until the process ends.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return unavailable("libzyfa_jit cannot be opened: " + std::string(dlerror()));
  const auto entry_function = reinterpret_cast<JitEntryFunction>(dlsym(handle, kJitEntryName));
  if (entry_function == nullptr) {
    dlclose(handle);
    return unavailable(path + " is not this version's libzyfa_jit: it has no " + kJitEntryName);
  }
  const JitEntry* entry = entry_function();
  if (std::strcmp(entry->generator_id, kGeneratorId) != 0) {
    std::string message = path + " was built from other sources than this libzyfa: its generator id is " +
                          entry->generator_id + ", ours " + kGeneratorId + "; install both from one build";
    dlclose(handle);
    return unavailable(std::move(message));
  }
  return entry->service;
}

}  // namespace

Expected<const JitService*> jit_service() {
  OpenLibrary& library = open_library();
  const std::lock_guard lock(process_locks().jit_library);
  if (library.ending) return unavailable("libzyfa_jit can do nothing more: the process exits");
  if (library.service != nullptr) return library.service;
  const std::vector<std::string> paths = candidates();
  for (const std::string& path : paths) {
    if (access(path.c_str(), F_OK) != 0) continue;
    Expected<const JitService*> service = open(path);
    if (!service) return service;
    static_cast<void>(std::atexit(end_service));
    library.path = path;
    library.service = *service;
    return service;
  }
  std::vector<std::string> details;
  for (const std::string& path : paths) details.push_back("tried " + path);
  return unavailable(
      "this needs libzyfa_jit, which is not installed; install it beside libzyfa or name it in ZYFA_JIT_LIBRARY",
      std::move(details));
}

std::string jit_library_path() {
  OpenLibrary& library = open_library();
  const std::lock_guard lock(process_locks().jit_library);
  return library.path;
}

}  // namespace zyfa
