#include "tests/reference/loops.h"

// Sanitizers cannot run the resolvers of cloned functions, which come before their own start-up.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ZYFA_REFERENCE_SANITIZED 1
#endif
#endif
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(ZYFA_REFERENCE_SANITIZED)
#define ZYFA_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ZYFA_WIDE
#endif

namespace zyfa::reference {

ZYFA_WIDE void score_tile(const double* q, const double* keys, std::int64_t rows, std::int64_t dim, double scale,
                          double* scores, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum[kTileKeys] = {};
    for (std::int64_t d = 0; d < dim; ++d) {
      const double query = q[r * dim + d];
      const double* column = keys + d * kTileKeys;
      for (std::int64_t j = 0; j < kTileKeys; ++j) {
        sum[j] += query * column[j];
      }
    }
    for (std::int64_t j = 0; j < kTileKeys; ++j) {
      scores[r * stride + j] = scale * sum[j];
    }
  }
}

ZYFA_WIDE void add_values(const double* weights, const double* values, std::int64_t count, std::int64_t padded,
                          double* out) {
  for (std::int64_t first = 0; first < padded; first += kColumnStep) {
    double sum[kColumnStep];
    for (std::int64_t d = 0; d < kColumnStep; ++d) {
      sum[d] = out[first + d];
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const double weight = weights[j];
      const double* row = values + j * padded + first;
      for (std::int64_t d = 0; d < kColumnStep; ++d) {
        sum[d] += weight * row[d];
      }
    }
    for (std::int64_t d = 0; d < kColumnStep; ++d) {
      out[first + d] = sum[d];
    }
  }
}

}  // namespace zyfa::reference
