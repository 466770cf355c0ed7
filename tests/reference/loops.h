// The two inner loops of attention in double precision, shared by the reference (attention.h) and the model of rounded
// probabilities (probability.h). Clones for wider vectors do the same operations in the same order: the same bits on
// every CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zyfa::reference {

inline constexpr std::int64_t kTileKeys = 64;    // keys scored at once
inline constexpr std::int64_t kColumnStep = 16;  // output columns accumulated at once

inline std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }
// Row length of `dim` output columns in whole steps.
inline std::int64_t padded_columns(std::int64_t dim) { return (dim + kColumnStep - 1) / kColumnStep * kColumnStep; }

// scores[r * stride + j] = scale * (q_r . k_j) for kTileKeys keys; `q` is [rows][dim], `keys` is [dim][kTileKeys].
void score_tile(const double* q, const double* keys, std::int64_t rows, std::int64_t dim, double scale, double* scores,
                std::int64_t stride);

// out[0..padded) += sum over j in [0, count) of weights[j] * values[j * padded + ...], in ascending j for every column.
void add_values(const double* weights, const double* values, std::int64_t count, std::int64_t padded, double* out);

}  // namespace zyfa::reference
