#include "tests/reference/probability.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/reference/loops.h"
#include "tests/reference/work_items.h"

namespace zyfa::reference {
namespace {

using Rounding = ProbabilityRule::Rounding;
using Doubles = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kRows = 32;  // queries of one work item, and of a wave
constexpr int kSteps = 1 << 16;     // of a quadrature over one binade

const std::array<double, 128>& code_values() {
  static const std::array<double, 128> table = [] {
    std::array<double, 128> values{};
    for (unsigned code = 0; code < values.size(); ++code) {
      values[code] = e4m3_to_double(static_cast<std::uint8_t>(code));
    }
    return values;
  }();
  return table;
}

// A probability 2^x of at most 2^8, as the rule rounds it. x may be -inf or NaN.
double rounded(double x, const ProbabilityRule& rule) {
  if (std::isnan(x)) {
    return x;
  }
  if (rule.rounding == Rounding::kNone) {
    return std::exp2(x);
  }
  if (rule.rounding == Rounding::kExact) {
    return code_values()[double_to_e4m3(std::exp2(x))];
  }
  const double half = rule.byte_rounding == ByteRounding::kTruncate ? 0.5 : 0.0;
  return code_values()[double_to_byte(8.0 * x + rule.constant + half, rule.byte_rounding)];
}

template <typename Error>
LeanError integrate(const Error& error_at) {
  LeanError result{kInfinity, -kInfinity, 0, 0};
  double squares = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double error = error_at((i + 0.5) / kSteps);
    result.least = std::min(result.least, error);
    result.largest = std::max(result.largest, error);
    result.mean += error / kSteps;
    squares += error * error / kSteps;
  }
  result.rms = std::sqrt(squares);
  return result;
}

void load(const DoubleView& view, std::int64_t b, std::int64_t token, std::int64_t head, double* out) {
  std::copy_n(view.row(b, token, head), view.dim, out);
}

void load(const Bf16View& view, std::int64_t b, std::int64_t token, std::int64_t head, double* out) {
  std::transform(view.row(b, token, head), view.row(b, token, head) + view.dim, out, bf16_to_double);
}

// Works through items: kRows queries of one (batch, head), all rules on the same scores.
class Model {
 public:
  Model(const DoubleCase& inputs, std::span<const ProbabilityRule> rules, NearBlocks near,
        const AttentionCase* near_inputs, std::vector<AttentionResult>& results)
      : in_(inputs),
        rules_(rules),
        near_(near),
        near_inputs_(near_inputs),
        results_(results),
        padded_(padded_columns(inputs.v.dim)),
        stride_((inputs.k.tokens + kTileKeys - 1) / kTileKeys * kTileKeys),
        queries_(index(kRows * inputs.q.dim)),
        near_queries_(index(kRows * inputs.q.dim)),
        key_(index(inputs.q.dim)),
        keys_(index(inputs.q.dim * kTileKeys)),
        values_(index(kTileKeys * padded_)),
        scores_(index(kRows * stride_)),
        weights_(index(kRows * stride_)),
        block_references_(index(kRows * stride_ / kTileKeys)),
        out_(index(kRows * padded_)) {}

  void run(std::int64_t b, std::int64_t head, std::int64_t first_row) {
    batch_ = b;
    key_head_ = head / (in_.q.heads / in_.k.heads);
    rows_ = std::min(kRows, in_.q.tokens - first_row);
    end_ = 0;
    for (std::int64_t r = 0; r < rows_; ++r) {
      seen_[r] = visible_keys(in_.mask, first_row + r, in_.q.tokens, in_.k.tokens);
      end_ = std::max(end_, seen_[r].end);
      load(in_.q, b, first_row + r, head, queries_.data() + r * in_.q.dim);
      if (near_inputs_ != nullptr) {
        load(near_inputs_->q, b, first_row + r, head, near_queries_.data() + r * in_.q.dim);
      }
    }
    const std::int64_t group = first_row / near_.queries * near_.queries;
    const KeyInterval seen = visible_keys(in_.mask, group, in_.q.tokens, in_.k.tokens);
    near_from_ = near_.diagonal == 0 || in_.mask != Mask::kCausal ? (in_.k.tokens + kTileKeys - 1) / kTileKeys
                                                                  : (seen.end - 1) / kTileKeys - near_.diagonal + 1;
    if (near_.even_rest) near_from_ = (std::max<std::int64_t>(near_from_, 1) - 1) | 1;
    score_all();
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      apply(rules_[i], results_[i], head, first_row);
    }
  }

 private:
  bool is_near(std::int64_t block) const { return (near_.first && block == 0) || block >= near_from_; }

  template <typename View>
  void load_keys(const View& k, std::int64_t first, std::int64_t count) {
    std::fill(keys_.begin(), keys_.end(), 0.0);
    for (std::int64_t j = 0; j < count; ++j) {
      load(k, batch_, first + j, key_head_, key_.data());
      for (std::int64_t d = 0; d < k.dim; ++d) {
        keys_[index(d * kTileKeys + j)] = key_[index(d)];
      }
    }
  }

  template <typename View>
  void load_values(const View& v, std::int64_t first, std::int64_t count) {
    for (std::int64_t j = 0; j < count; ++j) {
      load(v, batch_, first + j, key_head_, values_.data() + j * padded_);
    }
  }

  void score_all() {
    for (std::int64_t first = 0; first < end_; first += kTileKeys) {
      const std::int64_t count = std::min(kTileKeys, end_ - first);
      const bool near = is_near(first / kTileKeys);
      near ? load_keys(near_inputs_->k, first, count) : load_keys(in_.k, first, count);
      score_tile(near ? near_queries_.data() : queries_.data(), keys_.data(), rows_, in_.q.dim,
                 in_.softmax_scale * std::numbers::log2e, scores_.data() + first, stride_);
    }
  }

  double block_maximum(std::int64_t r, std::int64_t block) const {
    const double* x = scores_.data() + r * stride_;
    const std::int64_t begin = block * kTileKeys, end = std::min(seen_[r].end, begin + kTileKeys);
    return begin < end ? *std::max_element(x + begin, x + end) : -kInfinity;
  }

  double& reference(std::int64_t r, std::int64_t block) { return block_references_[index(r * blocks() + block)]; }
  std::int64_t blocks() const { return stride_ / kTileKeys; }

  void choose_references(const ProbabilityRule& rule) {
    const std::int64_t last = (end_ + kTileKeys - 1) / kTileKeys;
    for (std::int64_t r = 0; r < rows_; ++r) {
      const double* x = scores_.data() + r * stride_;
      const double maximum = seen_[r].end == 0 ? -kInfinity : *std::max_element(x, x + seen_[r].end);
      for (std::int64_t block = 0; block < last; ++block) {
        reference(r, block) = rule.reference == ProbabilityRule::Reference::kInteger ? std::floor(maximum) : maximum;
      }
    }
  }

  // Weights of one row and what it is divided by, relative to its last reference.
  void weigh(const ProbabilityRule& rule, std::int64_t r) {
    const double* x = scores_.data() + r * stride_;
    double* weight = weights_.data() + r * stride_;
    const std::int64_t end = seen_[r].end;
    sums_[r] = 0.0;
    references_[r] = -kInfinity;
    if (end == 0) {
      return;
    }
    references_[r] = reference(r, (end - 1) / kTileKeys);
    for (std::int64_t first = 0; first < end; first += kTileKeys) {
      const std::int64_t block = first / kTileKeys, stop = std::min(end, first + kTileKeys);
      const double own = reference(r, block);
      const double exponent = rule.scaling == ProbabilityRule::Scaling::kNone
                                  ? -rule.top
                                  : std::ceil(block_maximum(r, block) - own - rule.top);
      for (std::int64_t j = first; j < stop; ++j) {
        const double plain = std::exp2(x[j] - references_[r]);
        if (is_near(block)) {
          weight[j] = bf16_to_double(double_to_bf16(plain));
          sums_[r] += plain;
          continue;
        }
        weight[j] = std::exp2(own - references_[r] + exponent) * rounded(x[j] - own - exponent, rule);
        sums_[r] += rule.row_sum == ProbabilityRule::RowSum::kRounded ? weight[j] : plain;
      }
    }
  }

  void apply(const ProbabilityRule& rule, AttentionResult& result, std::int64_t head, std::int64_t first_row) {
    choose_references(rule);
    for (std::int64_t r = 0; r < rows_; ++r) {
      weigh(rule, r);
    }
    std::fill(out_.begin(), out_.end(), 0.0);
    for (std::int64_t first = 0; first < end_; first += kTileKeys) {
      const std::int64_t count = std::min(kTileKeys, end_ - first);
      is_near(first / kTileKeys) ? load_values(near_inputs_->v, first, count) : load_values(in_.v, first, count);
      for (std::int64_t r = 0; r < rows_; ++r) {
        const std::int64_t seen = std::min(count, seen_[r].end - first);
        if (seen > 0) {
          add_values(weights_.data() + r * stride_ + first, values_.data(), seen, padded_, out_.data() + r * padded_);
        }
      }
    }
    for (std::int64_t r = 0; r < rows_; ++r) {
      const std::int64_t token = first_row + r;
      double* o = result.o.data() + ((batch_ * result.tokens + token) * result.heads + head) * result.dim;
      for (std::int64_t d = 0; d < result.dim; ++d) {
        o[d] = seen_[r].end == 0 ? 0.0 : out_[index(r * padded_ + d)] / sums_[r];
      }
      result.lse[index((batch_ * result.heads + head) * result.tokens + token)] =
          (references_[r] + std::log2(sums_[r])) * std::numbers::ln2;
    }
  }

  const DoubleCase& in_;
  std::span<const ProbabilityRule> rules_;
  NearBlocks near_;
  const AttentionCase* near_inputs_;
  std::vector<AttentionResult>& results_;
  std::int64_t padded_, stride_;
  Doubles queries_, near_queries_, key_, keys_, values_, scores_, weights_, block_references_, out_;
  std::int64_t batch_ = 0, key_head_ = 0, rows_ = 0, end_ = 0, near_from_ = 0;
  KeyInterval seen_[kRows];
  double sums_[kRows] = {}, references_[kRows] = {};
};

}  // namespace

LeanError lean_error(double constant) {
  return integrate([&](double x) {
    const ProbabilityRule rule{.constant = constant};
    return rounded(x, rule) / std::exp2(x) - 1.0;
  });
}

LeanError exact_error() {
  const ProbabilityRule rule{.rounding = Rounding::kExact};
  return integrate([&](double x) { return rounded(x, rule) / std::exp2(x) - 1.0; });
}

double lean_code_error(std::uint8_t code, double constant) {
  double result = 0;
  for (const double edge : {-0.5, 0.5}) {
    const double x = (code + edge - constant) / 8.0;
    result = std::max(result, std::abs(e4m3_to_double(code) / std::exp2(x) - 1.0));
  }
  return result;
}

Expected<std::vector<AttentionResult>> rounded_attention(const DoubleCase& inputs,
                                                         std::span<const ProbabilityRule> rules, NearBlocks near,
                                                         const AttentionCase* near_inputs, unsigned threads) {
  if (Status status = check_case(inputs); !status) {
    return tl::unexpected<Error>(status.error());
  }
  if ((near.first || near.diagonal != 0) && near_inputs == nullptr) {
    return make_error(ErrorCode::kInvalidArgument, "near blocks are asked for without unquantised inputs");
  }
  AttentionResult empty{inputs.q.batch, inputs.q.tokens, inputs.q.heads, inputs.v.dim, {}, {}};
  empty.lse.resize(index(empty.batch * empty.heads * empty.tokens));
  empty.o.resize(empty.lse.size() * index(empty.dim));
  std::vector<AttentionResult> results(rules.size(), empty);
  const std::int64_t blocks = (empty.tokens + kRows - 1) / kRows;
  for_each_item(empty.batch * empty.heads * blocks, threads, [&] {
    return [&, model = Model(inputs, rules, near, near_inputs, results)](std::int64_t item) mutable {
      const std::int64_t head = item / blocks;
      model.run(head / empty.heads, head % empty.heads, item % blocks * kRows);
    };
  });
  return results;
}

}  // namespace zyfa::reference
