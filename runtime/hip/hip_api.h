// The few entry points of libamdhip64 that zyfa calls, found by name at run time, with prototypes of our own: no HIP
// header is needed to build and no HIP type appears outside this folder. tests/unit/runtime compares the prototypes
// with the real header where one is installed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "zyfa/error.h"

namespace zyfa::hip {

using HipError = int;  // enum hipError_t; 0 is success
using HipModule = struct HipModuleTag*;
using HipFunction = struct HipFunctionTag*;
using HipStream = struct HipStreamTag*;

inline constexpr HipError kSuccess = 0;
inline constexpr HipError kErrorNoBinaryForGpu = 209;
inline constexpr HipError kErrorInvalidImage = 200;
inline constexpr HipError kErrorNotFound = 500;
inline constexpr int kMemcpyHostToDevice = 1;
inline constexpr int kMemcpyDeviceToHost = 2;

// hipModuleLaunchKernel's `extra` list: { pointer tag, kernargs, size tag, &size, end tag }.
inline void* const kLaunchParamBufferPointer = reinterpret_cast<void*>(1);
inline void* const kLaunchParamBufferSize = reinterpret_cast<void*>(2);
inline void* const kLaunchParamEnd = reinterpret_cast<void*>(3);

// X(name, return type, parameters)
#define ZYFA_HIP_ENTRY_POINTS(X)                                                                                    \
  X(hipGetErrorString, const char*, (HipError))                                                                     \
  X(hipGetDeviceCount, HipError, (int*))                                                                            \
  X(hipGetDevice, HipError, (int*))                                                                                 \
  X(hipSetDevice, HipError, (int))                                                                                  \
  X(hipMalloc, HipError, (void**, std::size_t))                                                                     \
  X(hipFree, HipError, (void*))                                                                                     \
  X(hipMemcpy, HipError, (void*, const void*, std::size_t, int))                                                    \
  X(hipModuleLoadData, HipError, (HipModule*, const void*))                                                         \
  X(hipModuleUnload, HipError, (HipModule))                                                                         \
  X(hipModuleGetFunction, HipError, (HipFunction*, HipModule, const char*))                                         \
  X(hipModuleLaunchKernel, HipError,                                                                                \
    (HipFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, HipStream, void**, void**)) \
  X(hipStreamSynchronize, HipError, (HipStream))

struct HipApi {
#define ZYFA_HIP_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  ZYFA_HIP_ENTRY_POINTS(ZYFA_HIP_MEMBER)  // NOLINT(readability-identifier-naming): HIP's own names
#undef ZYFA_HIP_MEMBER
  // hipDeviceProp_t has another layout in every major version, so its properties are taken as bytes: see
  // architecture_of().
  HipError (*get_device_properties)(void*, int) = nullptr;
  std::string path;

  // kDeviceError: "<call> failed: <HIP's own text> (<number>)".
  [[nodiscard]] Status check(HipError error, const char* call) const;
};

// Opens the library named in ZYFA_HIP_LIBRARY, else the one this process has already loaded, else the newest found.
// Once per process and name; never closed. kDeviceUnavailable: names tried, or the entry point it lacks.
[[nodiscard]] Expected<std::shared_ptr<const HipApi>> load_hip();

// "gfx950:sramecc+:xnack-" of a device.
[[nodiscard]] Expected<std::string> architecture_of(const HipApi& api, int ordinal);

}  // namespace zyfa::hip
