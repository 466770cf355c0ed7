#include "tests/reference/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace zyfa::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double distance(double value, double expected) { return value == expected ? 0.0 : std::abs(value - expected); }

}  // namespace

Expected<ErrorFigures> compare(const AttentionResult& reference, const Bf16View& o, std::span<const float> lse) {
  if (o.batch != reference.batch || o.tokens != reference.tokens || o.heads != reference.heads ||
      o.dim != reference.dim) {
    return make_error(ErrorCode::kInvalidArgument, "the output's shape differs from the reference's");
  }
  if (!lse.empty() && lse.size() != reference.lse.size()) {
    return make_error(ErrorCode::kInvalidArgument, "LSE has " + std::to_string(lse.size()) + " values, expected " +
                                                       std::to_string(reference.lse.size()));
  }
  ErrorFigures figures;
  double error = 0.0, norm = 0.0;
  const auto add = [&](double value, double expected, std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t d) {
    if (std::isnan(value) || std::isnan(expected)) {
      figures.mismatched_nan += std::isnan(value) != std::isnan(expected);
      return;
    }
    const double delta = distance(value, expected);
    error += delta * delta;
    norm += expected * expected;
    if (delta > figures.max_abs) {
      figures.max_abs = delta;
      figures.worst_batch = b, figures.worst_token = t, figures.worst_head = h, figures.worst_dim = d;
    }
  };
  for (std::int64_t b = 0; b < o.batch; ++b) {
    for (std::int64_t t = 0; t < o.tokens; ++t) {
      for (std::int64_t h = 0; h < o.heads; ++h) {
        const bool empty = reference.lse_at(b, h, t) == -kInfinity;
        const std::uint16_t* row = o.row(b, t, h);
        const double* expected = reference.o_row(b, t, h);
        for (std::int64_t d = 0; d < o.dim; ++d) {
          const double value = bf16_to_double(row[d]);
          figures.nonzero_empty += empty && value != 0.0;
          add(value, expected[d], b, t, h, d);
        }
      }
    }
  }
  figures.relative_rms_percent = error == 0.0 ? 0.0 : norm == 0.0 ? kInfinity : 100.0 * std::sqrt(error / norm);
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const double value = lse[i], expected = reference.lse[i];
    if (std::isnan(value) || std::isnan(expected)) {
      figures.mismatched_nan += std::isnan(value) != std::isnan(expected);
    } else {
      figures.lse_max_abs = std::max(figures.lse_max_abs, distance(value, expected));
    }
  }
  return figures;
}

std::vector<double> relative_rms_by_head(const AttentionResult& reference, const AttentionResult& result) {
  std::vector<double> figures;
  for (std::int64_t h = 0; h < reference.heads; ++h) {
    double error = 0.0, norm = 0.0;
    for (std::int64_t b = 0; b < reference.batch; ++b) {
      for (std::int64_t t = 0; t < reference.tokens; ++t) {
        const double *expected = reference.o_row(b, t, h), *value = result.o_row(b, t, h);
        for (std::int64_t d = 0; d < reference.dim; ++d) {
          error += (value[d] - expected[d]) * (value[d] - expected[d]);
          norm += expected[d] * expected[d];
        }
      }
    }
    figures.push_back(error == 0.0 ? 0.0 : norm == 0.0 ? kInfinity : 100.0 * std::sqrt(error / norm));
  }
  return figures;
}

LseErrors lse_errors(const AttentionResult& reference, const AttentionResult& result) {
  LseErrors errors;
  double rows = 0.0;
  for (std::size_t i = 0; i < reference.lse.size(); ++i) {
    if (reference.lse[i] == result.lse[i] && std::isinf(result.lse[i])) {
      continue;
    }
    const double error = result.lse[i] - reference.lse[i];
    rows += 1.0;
    errors.mean += error;
    errors.mean_abs += std::abs(error);
    errors.max_abs = std::isnan(error) ? error : std::max(errors.max_abs, std::abs(error));
  }
  if (rows != 0.0) {
    errors.mean /= rows;
    errors.mean_abs /= rows;
  }
  return errors;
}

AttentionResult to_result(const Bf16View& o, std::span<const float> lse) {
  AttentionResult result{o.batch, o.tokens, o.heads, o.dim, {}, {lse.begin(), lse.end()}};
  result.o.resize(static_cast<std::size_t>(o.batch * o.tokens * o.heads * o.dim));
  std::transform(o.data, o.data + result.o.size(), result.o.begin(), bf16_to_double);
  return result;
}

}  // namespace zyfa::reference
