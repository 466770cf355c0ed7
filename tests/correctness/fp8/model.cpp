#include "tests/correctness/fp8/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace zyfa::tests {
namespace {

using schedules::BlockExponents;
using schedules::ElementType;
using schedules::ProbabilityRule;
using schedules::ScoreForm;

constexpr std::int64_t kRows = 32, kBlock = 64, kIteration = 128, kDim = 128;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTop = 8.0;  // binades

struct Rule {
  double units, one;  // of a binade; for a probability of 1
  double at;          // binades above 1 at which a probability of the reference is rounded without an exponent
  double slack;       // binades that a block may rise above the reference
  bool lean, exponents, folded;
  reference::ByteRounding conversion;

  Rule(const schedules::KernelSpec& spec, reference::ByteRounding conversion_rule)
      : lean(spec.probability == ProbabilityRule::kLean),
        exponents(spec.block_exponents == BlockExponents::kUsed),
        folded(spec.form == ScoreForm::kFolded),
        conversion(conversion_rule) {
    units = lean ? 8.0 : 1.0;
    one = !lean ? 0.0 : spec.byte_rounding == schedules::ByteRounding::kNearest ? 55.543 : 56.043;
    // Code 126, the last, is 448 = 2^8.8.
    at = folded && exponents ? 6.0 : kTop;
    slack = exponents && !folded ? 4.0 : 8.8 - at;
  }

  [[nodiscard]] double probability(double t) const {
    return reference::e4m3_to_double(lean ? reference::double_to_byte(t, conversion)
                                          : reference::double_to_e4m3(std::exp2(t)));
  }
};

struct Row {
  std::int64_t seen = 0;  // keys
  double reference = -kInfinity, sum = 0;
  std::array<double, kDim> out{};
  std::vector<double> scores;
};

// 32 queries of one head, 128 keys after 128.
class Wave {
 public:
  Wave(const Rule& rule, std::vector<Row> rows, ModelledAttention& counts)
      : rule_(rule), rows_(std::move(rows)), counts_(counts) {}

  // Two blocks. `values`: [keys, 128].
  void add_iteration(std::int64_t first, const std::vector<double>& values) {
    const auto over_both = [&](const Row& row) { return std::max(maximum(row, first), maximum(row, first + kBlock)); };
    const bool moves = std::ranges::any_of(
        rows_, [&](const Row& row) { return over_both(row) > row.reference + rule_.units * rule_.slack; });
    if (moves) move(over_both, first);
    const bool far = rule_.folded && rule_.exponents && std::ranges::any_of(rows_, [&](const Row& row) {
                       return needs_exponent(row, first) || needs_exponent(row, first + kBlock);
                     });
    if (rule_.folded && rule_.exponents) ++(far ? counts_.far : counts_.near);
    for (Row& row : rows_) {
      add_block(row, first, values, far);
      add_block(row, first + kBlock, values, far);
    }
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] double lse(const Row& row) const {
    return (row.reference / rule_.units + std::log2(row.sum)) * std::log(2.0);
  }

 private:
  [[nodiscard]] static double maximum(const Row& row, std::int64_t first) {
    double result = -kInfinity;
    for (std::int64_t j = first; j < std::min(first + kBlock, row.seen); ++j) {
      result = std::max(result, row.scores[static_cast<std::size_t>(j)]);
    }
    return result;
  }

  // Folded: whether its largest code would lie below 64, unless what it adds is nothing.
  [[nodiscard]] bool needs_exponent(const Row& row, std::int64_t first) const {
    const double code = maximum(row, first) - row.reference + rule_.one + rule_.units * rule_.at;
    return code < 64 && code > rule_.one - rule_.units * 111;
  }

  void add_block(Row& row, std::int64_t first, const std::vector<double>& values, bool far) const {
    if (maximum(row, first) == -kInfinity) return;
    double exponent = -rule_.at;
    if (rule_.exponents && (far || !rule_.folded)) {
      exponent = std::ceil((maximum(row, first) - row.reference) / rule_.units - kTop);
      exponent = std::max(exponent, rule_.folded ? -119.0 - rule_.at : -119.0);
    }
    for (std::int64_t j = first; j < std::min(first + kBlock, row.seen); ++j) {
      const double t = row.scores[static_cast<std::size_t>(j)] - row.reference + rule_.one - rule_.units * exponent;
      const double weight = std::exp2(exponent) * rule_.probability(t);
      row.sum += weight;
      if (weight == 0) continue;
      const double* value = values.data() + j * kDim;
      for (std::size_t d = 0; d < kDim; ++d) row.out[d] += weight * value[d];
    }
  }

  void move(const auto& over_both, std::int64_t first) {
    counts_.moves += first > 0 ? 1 : 0;
    for (Row& row : rows_) {
      const double to = over_both(row);
      if (row.reference == -kInfinity) {
        row.reference = to;
        continue;
      }
      const double binades = std::max(0.0, to - row.reference) / rule_.units;
      row.reference = std::max(row.reference, to);
      row.sum *= std::exp2(-binades);
      for (double& x : row.out) x *= std::exp2(-binades);
    }
  }

  const Rule& rule_;
  std::vector<Row> rows_;
  ModelledAttention& counts_;
};

// Decoded keys of one head, transposed to [dim, keys], and values [keys, 128].
struct Head {
  std::vector<double> keys, values;
  std::int64_t count = 0, dim = 0;

  Head(const Fp8Case& c, Fp8Inputs& in, std::int64_t b, std::int64_t h)
      : keys(static_cast<std::size_t>(c.key_length * in.dim)),
        values(static_cast<std::size_t>(c.key_length * kDim)),
        count(c.key_length),
        dim(in.dim) {
    for (std::int64_t j = 0; j < count; ++j) {
      const std::uint8_t *key = in.k_row(b, j, h), *value = in.v_row(b, j, h);
      for (std::int64_t d = 0; d < dim; ++d) {
        keys[static_cast<std::size_t>(d * count + j)] = fp8_value(key[d], c.spec.element);
      }
      for (std::int64_t d = 0; d < kDim; ++d) {
        values[static_cast<std::size_t>(j * kDim + d)] = fp8_value(value[d], ElementType::kFp8E4M3);
      }
    }
  }

  [[nodiscard]] std::vector<double> scores(const std::uint8_t* query, ElementType element, std::int64_t seen,
                                           double scale) const {
    std::vector<double> result(static_cast<std::size_t>(seen), 0.0);
    for (std::int64_t d = 0; d < dim; ++d) {
      const double x = fp8_value(query[d], element);
      const double* key = keys.data() + d * count;
      for (std::size_t j = 0; j < result.size(); ++j) result[j] += x * key[j];
    }
    for (double& score : result) score *= scale;
    return result;
  }
};

double scale_of(const Fp8Case& c, const Fp8Inputs& in, const Rule& rule, std::size_t head) {
  const double scale = rule.units * std::numbers::log2e * static_cast<double>(c.softmax_scale) *
                       static_cast<double>(descale_at(in.q_descale, head)) *
                       static_cast<double>(descale_at(in.k_descale, head));
  if (!rule.folded || scale == 0) return scale;
  return std::copysign(std::exp2(std::round(std::log2(std::abs(scale)))), scale);
}

}  // namespace

ModelledAttention modelled_attention(const Fp8Case& c, const Fp8Inputs& inputs, reference::ByteRounding conversion) {
  Fp8Inputs in = inputs;
  const Rule rule(c.spec, conversion);
  const auto mask = c.spec.mask == schedules::MaskKind::kCausal ? reference::Mask::kCausal : reference::Mask::kFull;
  ModelledAttention modelled;
  reference::AttentionResult& result = modelled.result;
  result = {c.batch, c.query_length, c.heads, kDim, {}, {}};
  result.o.assign(static_cast<std::size_t>(c.batch * c.query_length * c.heads * kDim), 0.0);
  result.lse.assign(static_cast<std::size_t>(c.batch * c.heads * c.query_length), -kInfinity);
  for (std::int64_t row = 0; row < c.batch * c.heads; ++row) {
    const std::int64_t b = row / c.heads, h = row % c.heads;
    const std::int64_t key_head = h / (c.heads / c.key_heads);
    const auto descale = static_cast<std::size_t>(b * c.key_heads + key_head);
    const Head head(c, in, b, key_head);
    const double scale = scale_of(c, in, rule, descale);
    const double v_descale = descale_at(in.v_descale, descale);
    for (std::int64_t first_row = 0; first_row < c.query_length; first_row += kRows) {
      std::vector<Row> rows(static_cast<std::size_t>(std::min(kRows, c.query_length - first_row)));
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const std::int64_t i = first_row + static_cast<std::int64_t>(r);
        rows[r].seen = std::max<std::int64_t>(0, reference::visible_keys(mask, i, c.query_length, c.key_length).end);
        rows[r].scores = head.scores(in.q_row(b, i, h), c.spec.element, rows[r].seen, scale);
      }
      Wave wave(rule, std::move(rows), modelled);
      if (c.key_length > 0) wave.add_iteration(0, head.values);
      for (std::int64_t first = (c.key_length - 1) / kIteration * kIteration; first > 0; first -= kIteration) {
        wave.add_iteration(first, head.values);
      }
      for (std::size_t r = 0; r < wave.rows().size(); ++r) {
        const Row& done = wave.rows()[r];
        if (done.seen == 0) continue;
        const std::int64_t i = first_row + static_cast<std::int64_t>(r);
        result.lse[static_cast<std::size_t>(row * c.query_length + i)] = wave.lse(done);
        double* o = result.o.data() + ((b * c.query_length + i) * c.heads + h) * kDim;
        for (std::size_t d = 0; d < kDim; ++d) o[d] = v_descale * done.out[d] / done.sum;
      }
    }
  }
  return modelled;
}

}  // namespace zyfa::tests
