// See fake_hip.h. Memory is host memory, so copies and reads work.
#include "tests/unit/runtime/fake_hip.h"

#include <cstdlib>
#include <cstring>
#include <mutex>

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

zyfa::fake_hip::State state;
std::mutex mutex;  // of state: HIP may be called from any thread

struct Function {
  std::string name;
};
struct Module {
  Function function;
};

int result_of(const char* call) {
  if (state.failing_call != call || state.failures_left == 0) return 0;
  --state.failures_left;
  return state.failing_error;
}

}  // namespace

zyfa::fake_hip::State* fake_hip_reset() {
  state = {};
  return &state;
}

FAKE_API const char* hipGetErrorString(int error) {
  switch (error) {
    case 100:
      return "no ROCm-capable device is detected";
    case 2:
      return "out of memory";
    default:
      return "some error";
  }
}

FAKE_API int hipGetDeviceCount(int* count) {
  const std::lock_guard lock(mutex);
  *count = state.device_count;
  return result_of("hipGetDeviceCount");
}

FAKE_API int hipGetDevice(int* device) {
  const std::lock_guard lock(mutex);
  *device = state.current_device;
  return result_of("hipGetDevice");
}

FAKE_API int hipSetDevice(int device) {
  const std::lock_guard lock(mutex);
  if (const int error = result_of("hipSetDevice")) return error;
  state.current_device = device;
  state.set_devices.push_back(device);
  return 0;
}

// The name field comes first; the architecture lies somewhere behind it, as in hipDeviceProp_t.
FAKE_API int hipGetDevicePropertiesR0600(void* properties, int) {
  const std::lock_guard lock(mutex);
  auto* bytes = static_cast<char*>(properties);
  std::strcpy(bytes, "gfx950");
  std::strcpy(bytes + 1000, state.architecture.c_str());
  return result_of("hipGetDeviceProperties");
}

FAKE_API int hipMalloc(void** memory, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (const int error = result_of("hipMalloc")) return error;
  if (bytes == 0) return 1;  // the real one gives a null pointer
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  ++state.allocations_alive;
  return 0;
}

FAKE_API int hipFree(void* memory) {
  const std::lock_guard lock(mutex);
  std::free(memory);
  --state.allocations_alive;
  return 0;
}

FAKE_API int hipMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  const std::lock_guard lock(mutex);
  if (kind != 1 && kind != 2) return 1;
  std::memcpy(to, from, bytes);
  return result_of("hipMemcpy");
}

FAKE_API int hipModuleLoadData(void** module, const void* image) {
  const std::lock_guard lock(mutex);
  if (const int error = result_of("hipModuleLoadData")) return error;
  state.images.push_back(image);
  *module = new Module;
  ++state.modules_alive;
  return 0;
}

FAKE_API int hipModuleUnload(void* module) {
  const std::lock_guard lock(mutex);
  delete static_cast<Module*>(module);
  --state.modules_alive;
  return 0;
}

FAKE_API int hipModuleGetFunction(void** function, void* module, const char* name) {
  const std::lock_guard lock(mutex);
  if (!state.known_function.empty() && state.known_function != name) return 500;
  static_cast<Module*>(module)->function.name = name;
  *function = &static_cast<Module*>(module)->function;
  return result_of("hipModuleGetFunction");
}

FAKE_API int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, void* stream, void** params, void** extra) {
  const std::lock_guard lock(mutex);
  if (const int error = result_of("hipModuleLaunchKernel")) return error;
  zyfa::fake_hip::Launch launch{.function = static_cast<Function*>(function)->name,
                                .device = state.current_device,
                                .grid = {gx, gy, gz},
                                .block = {bx, by, bz},
                                .shared = shared,
                                .stream = stream,
                                .kernargs = {},
                                .well_formed = false};
  const auto tag = [](void* entry) { return reinterpret_cast<std::uintptr_t>(entry); };
  if (params == nullptr && extra != nullptr && tag(extra[0]) == 1 && tag(extra[2]) == 2 && tag(extra[4]) == 3) {
    launch.well_formed = true;
    const auto* bytes = static_cast<const std::byte*>(extra[1]);
    launch.kernargs.assign(bytes, bytes + *static_cast<std::size_t*>(extra[3]));
  }
  state.launches.push_back(std::move(launch));
  return 0;
}

FAKE_API int hipStreamSynchronize(void* stream) {
  const std::lock_guard lock(mutex);
  state.synchronized.push_back(stream);
  return result_of("hipStreamSynchronize");
}
