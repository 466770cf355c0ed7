#include "tests/reference/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "tests/reference/loops.h"
#include "tests/reference/work_items.h"

namespace zyfa::reference {
namespace {

constexpr std::int64_t kRows = 32;  // queries of one work item

using Doubles = std::vector<double>;

void copy_row(const Bf16View& view, std::int64_t b, std::int64_t token, std::int64_t head, double* out) {
  std::transform(view.row(b, token, head), view.row(b, token, head) + view.dim, out, bf16_to_double);
}

void copy_row(const DoubleView& view, std::int64_t b, std::int64_t token, std::int64_t head, double* out) {
  std::copy_n(view.row(b, token, head), view.dim, out);
}

template <typename View>
std::string describe(const char* name, const View& view) {
  return std::string(name) + " [" + std::to_string(view.batch) + ", " + std::to_string(view.tokens) + ", " +
         std::to_string(view.heads) + ", " + std::to_string(view.dim) + "]";
}

template <typename View>
Status check(const BasicCase<View>& problem) {
  const View &q = problem.q, &k = problem.k, &v = problem.v;
  const std::string shapes = describe("q", q) + ", " + describe("k", k) + ", " + describe("v", v);
  for (const View* view : {&q, &k, &v}) {
    if (view->batch < 0 || view->tokens < 0 || view->heads < 0 || view->dim < 0) {
      return make_error(ErrorCode::kInvalidArgument, "negative extent in " + shapes + "; all must be at least 0");
    }
    if (view->data == nullptr && view->batch * view->tokens * view->heads * view->dim != 0) {
      return make_error(ErrorCode::kInvalidArgument, "null data in " + shapes);
    }
  }
  if (q.batch != k.batch || q.batch != v.batch || k.tokens != v.tokens || k.heads != v.heads || q.dim != k.dim) {
    return make_error(ErrorCode::kInvalidArgument,
                      shapes + " do not fit: batches, key lengths, key heads and the head dims of q and k must agree");
  }
  if (k.heads == 0 ? q.heads != 0 : q.heads % k.heads != 0) {
    return make_error(ErrorCode::kInvalidArgument, "query heads " + std::to_string(q.heads) +
                                                       " are not a multiple of key heads " + std::to_string(k.heads));
  }
  return {};
}

// Computes work items: kRows queries of one (batch, head).
template <typename View>
class Worker {
 public:
  Worker(const BasicCase<View>& problem, AttentionResult& result)
      : problem_(problem),
        result_(result),
        dim_(problem.q.dim),
        padded_(padded_columns(problem.v.dim)),
        queries_(index(kRows * dim_)),
        key_(index(dim_)),
        keys_(index(dim_ * kTileKeys)),
        values_(index(kTileKeys * padded_)),
        out_(index(kRows * padded_)) {}

  void run(std::int64_t b, std::int64_t head, std::int64_t first_row) {
    const std::int64_t query_length = problem_.q.tokens, key_length = problem_.k.tokens;
    const std::int64_t rows = std::min(kRows, query_length - first_row);
    const std::int64_t key_head = head / (problem_.q.heads / problem_.k.heads);
    KeyInterval all{key_length, 0};
    for (std::int64_t r = 0; r < rows; ++r) {
      seen_[r] = visible_keys(problem_.mask, first_row + r, query_length, key_length);
      if (seen_[r].begin < seen_[r].end) {
        all = {std::min(all.begin, seen_[r].begin), std::max(all.end, seen_[r].end)};
      }
      copy_row(problem_.q, b, first_row + r, head, queries_.data() + r * dim_);
    }
    all.end = std::max(all.begin, all.end);
    score_all(b, key_head, rows, all);
    for (std::int64_t r = 0; r < rows; ++r) {
      softmax(r, all, result_.lse[index((b * problem_.q.heads + head) * query_length + first_row + r)]);
    }
    sum_values(b, key_head, rows, all);
    for (std::int64_t r = 0; r < rows; ++r) {
      double* o = result_.o.data() + ((b * query_length + first_row + r) * problem_.q.heads + head) * problem_.v.dim;
      const double* out = out_.data() + r * padded_;
      for (std::int64_t d = 0; d < problem_.v.dim; ++d) {
        o[d] = sums_[r] == 0.0 ? 0.0 : out[d] / sums_[r];
      }
    }
  }

 private:
  void score_all(std::int64_t b, std::int64_t key_head, std::int64_t rows, KeyInterval all) {
    stride_ = (all.end - all.begin + kTileKeys - 1) / kTileKeys * kTileKeys;
    scores_.resize(index(kRows * stride_));
    for (std::int64_t first = all.begin; first < all.end; first += kTileKeys) {
      const std::int64_t count = std::min(kTileKeys, all.end - first);
      std::fill(keys_.begin(), keys_.end(), 0.0);
      for (std::int64_t j = 0; j < count; ++j) {
        copy_row(problem_.k, b, first + j, key_head, key_.data());
        for (std::int64_t d = 0; d < dim_; ++d) {
          keys_[index(d * kTileKeys + j)] = key_[index(d)];
        }
      }
      score_tile(queries_.data(), keys_.data(), rows, dim_, problem_.softmax_scale,
                 scores_.data() + (first - all.begin), stride_);
    }
  }

  // Turns the scores of a row into weights exp(s - max); keeps their sum. NaN scores make the sum NaN.
  void softmax(std::int64_t r, KeyInterval all, double& lse) {
    double* row = scores_.data() + r * stride_;
    const std::int64_t begin = seen_[r].begin - all.begin, end = seen_[r].end - all.begin;
    sums_[r] = 0.0;
    lse = -std::numeric_limits<double>::infinity();
    if (begin >= end) {
      return;
    }
    const double max = *std::max_element(row + begin, row + end);
    double sum = 0.0;
    for (std::int64_t j = begin; j < end; ++j) {
      row[j] = std::exp(row[j] - max);
      sum += row[j];
    }
    sums_[r] = sum;
    lse = max + std::log(sum);
  }

  void sum_values(std::int64_t b, std::int64_t key_head, std::int64_t rows, KeyInterval all) {
    std::fill(out_.begin(), out_.end(), 0.0);
    for (std::int64_t first = all.begin; first < all.end; first += kTileKeys) {
      const std::int64_t count = std::min(kTileKeys, all.end - first);
      for (std::int64_t j = 0; j < count; ++j) {
        copy_row(problem_.v, b, first + j, key_head, values_.data() + j * padded_);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t begin = std::max(first, seen_[r].begin), end = std::min(first + count, seen_[r].end);
        if (begin < end) {
          add_values(scores_.data() + r * stride_ + (begin - all.begin), values_.data() + (begin - first) * padded_,
                     end - begin, padded_, out_.data() + r * padded_);
        }
      }
    }
  }

  const BasicCase<View>& problem_;
  AttentionResult& result_;
  std::int64_t dim_, padded_, stride_ = 0;
  Doubles queries_, key_, keys_, values_, out_, scores_;
  KeyInterval seen_[kRows];
  double sums_[kRows] = {};
};

template <typename View>
Expected<AttentionResult> run_all(const BasicCase<View>& problem, unsigned threads) {
  if (Status status = check(problem); !status) {
    return tl::unexpected<Error>(status.error());
  }
  AttentionResult result{problem.q.batch, problem.q.tokens, problem.q.heads, problem.v.dim, {}, {}};
  result.lse.resize(index(result.batch * result.heads * result.tokens));
  result.o.resize(result.lse.size() * index(result.dim));
  const std::int64_t blocks = (result.tokens + kRows - 1) / kRows;
  const auto make_worker = [&] {
    return [&, worker = Worker<View>(problem, result)](std::int64_t item) mutable {
      const std::int64_t head = item / blocks;
      worker.run(head / result.heads, head % result.heads, item % blocks * kRows);
    };
  };
  for_each_item(result.batch * result.heads * blocks, threads, make_worker);
  return result;
}

}  // namespace

Bf16View dense_view(const std::uint16_t* data, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
                    std::int64_t dim) {
  return {data, batch, tokens, heads, dim, tokens * heads * dim, heads * dim, dim};
}

DoubleView dense_double_view(const double* data, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
                             std::int64_t dim) {
  return {data, batch, tokens, heads, dim, tokens * heads * dim, heads * dim, dim};
}

Status check_case(const AttentionCase& problem) { return check(problem); }

Status check_case(const DoubleCase& problem) { return check(problem); }

KeyInterval visible_keys(Mask mask, std::int64_t i, std::int64_t query_length, std::int64_t key_length) {
  if (mask == Mask::kCausal) {
    return {0, std::clamp<std::int64_t>(i + key_length - query_length + 1, 0, key_length)};
  }
  return {0, key_length};
}

Expected<AttentionResult> attention(const AttentionCase& problem, unsigned threads) {
  return run_all(problem, threads);
}

Expected<AttentionResult> attention(const DoubleCase& problem, unsigned threads) { return run_all(problem, threads); }

double bf16_to_double(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

std::uint16_t double_to_bf16(double value) {
  if (std::isnan(value)) {
    return 0x7fc0;
  }
  // Rounding twice would break ties wrongly, so the float is rounded to odd: truncated, its last bit set when inexact.
  float truncated = static_cast<float>(value);
  if (std::abs(static_cast<double>(truncated)) > std::abs(value)) {
    truncated = std::nextafter(truncated, 0.0F);
  }
  std::uint32_t bits = std::bit_cast<std::uint32_t>(truncated);
  if (static_cast<double>(truncated) != value) {
    bits |= 1;
  }
  if (std::isinf(value)) {
    return static_cast<std::uint16_t>(bits >> 16);
  }
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace zyfa::reference
