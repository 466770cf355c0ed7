// Our own prototypes of HIP's entry points against the real header, where one is installed: same arity, and every
// parameter of the same size and kind. Checked by the compiler; the tests check the constants.
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include <gtest/gtest.h>

#include <tuple>
#include <type_traits>

#include "runtime/hip/hip_api.h"

namespace zyfa::hip {
namespace {

template <typename A, typename B>
constexpr bool same_kind() {
  return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
         (std::is_integral_v<A> || std::is_enum_v<A>) == (std::is_integral_v<B> || std::is_enum_v<B>) &&
         std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <typename A, typename B>
struct SameSignature : std::false_type {};
template <typename ResultA, typename... A, typename ResultB, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameSignature<ResultA (*)(A...), ResultB (*)(B...)>
    : std::bool_constant<same_kind<ResultA, ResultB>() && (same_kind<A, B>() && ...)> {};

static_assert(SameSignature<decltype(HipApi::hipGetErrorString), decltype(&::hipGetErrorString)>::value);
static_assert(SameSignature<decltype(HipApi::hipGetDeviceCount), decltype(&::hipGetDeviceCount)>::value);
static_assert(SameSignature<decltype(HipApi::hipGetDevice), decltype(&::hipGetDevice)>::value);
static_assert(SameSignature<decltype(HipApi::hipSetDevice), decltype(&::hipSetDevice)>::value);
// Overloaded by a template in the header; the cast picks the C function.
static_assert(SameSignature<decltype(HipApi::hipMalloc),
                            decltype(static_cast<::hipError_t (*)(void**, std::size_t)>(&::hipMalloc))>::value);
static_assert(SameSignature<decltype(HipApi::hipFree), decltype(&::hipFree)>::value);
static_assert(SameSignature<decltype(HipApi::hipMemcpy), decltype(&::hipMemcpy)>::value);
static_assert(SameSignature<decltype(HipApi::hipModuleLoadData), decltype(&::hipModuleLoadData)>::value);
static_assert(SameSignature<decltype(HipApi::hipModuleUnload), decltype(&::hipModuleUnload)>::value);
static_assert(SameSignature<decltype(HipApi::hipModuleGetFunction), decltype(&::hipModuleGetFunction)>::value);
static_assert(SameSignature<decltype(HipApi::hipModuleLaunchKernel), decltype(&::hipModuleLaunchKernel)>::value);
static_assert(SameSignature<decltype(HipApi::hipStreamSynchronize), decltype(&::hipStreamSynchronize)>::value);

TEST(HipPrototypes, comparison_can_fail) {
  EXPECT_FALSE((SameSignature<int (*)(int), int (*)(int, int)>::value));
  EXPECT_FALSE((SameSignature<int (*)(int), int (*)(long)>::value));
  EXPECT_FALSE((SameSignature<int (*)(long), int (*)(void*)>::value));
  EXPECT_FALSE((SameSignature<int (*)(double), int (*)(long)>::value));
  EXPECT_TRUE((SameSignature<int (*)(void*), ::hipError_t (*)(::hipModule_t)>::value));
}

TEST(HipPrototypes, constants_match_the_header) {
  EXPECT_EQ(kSuccess, ::hipSuccess);
  EXPECT_EQ(kErrorNoBinaryForGpu, ::hipErrorNoBinaryForGpu);
  EXPECT_EQ(kErrorInvalidImage, ::hipErrorInvalidImage);
  EXPECT_EQ(kErrorNotFound, ::hipErrorNotFound);
  EXPECT_EQ(kMemcpyHostToDevice, ::hipMemcpyHostToDevice);
  EXPECT_EQ(kMemcpyDeviceToHost, ::hipMemcpyDeviceToHost);
  EXPECT_EQ(kLaunchParamBufferPointer, HIP_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(kLaunchParamBufferSize, HIP_LAUNCH_PARAM_BUFFER_SIZE);
  EXPECT_EQ(kLaunchParamEnd, HIP_LAUNCH_PARAM_END);
}

TEST(HipPrototypes, properties_fit_the_buffer) { EXPECT_LE(sizeof(::hipDeviceProp_t), 16384u); }

}  // namespace
}  // namespace zyfa::hip
