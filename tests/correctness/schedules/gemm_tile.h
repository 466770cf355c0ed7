// A second algorithm in the DSL, for tests: C[m][n] = sum over k of A[m][k] * B[n][k], BF16 in, fp32 out.
//
// A workgroup of W waves owns 32 W rows of A and 64 rows of B; each wave 32 x 64 of C. One iteration is 64 of k. A and
// B go to LDS without registers; both are row-major with k contiguous.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/object/kernel_descriptor.h"
#include "schedules/dsl/algorithm.h"

namespace zyfa::tests {

inline constexpr std::uint32_t kGemmColumns = 64;  // rows of B of a workgroup
inline constexpr std::uint32_t kGemmDepth = 64;    // k of an iteration

struct GemmArgs {
  std::uint64_t a, b, c;                       // device addresses
  std::uint32_t a_stride, b_stride, c_stride;  // bytes between rows
  std::int32_t m, n, k;                        // k must be a multiple of 8
};

schedules::Algorithm gemm_tile(std::uint32_t waves);
std::vector<jit::KernelArgument> gemm_arguments();

}  // namespace zyfa::tests
