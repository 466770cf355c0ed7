#include "tests/reference/attention.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>
#include <thread>

// Clones for wider vectors; the same operations in the same order, so the same bits. Sanitizers cannot run the
// resolvers of such functions, which come before their own start-up.
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
namespace {

constexpr std::int64_t kRows = 32;     // queries of one work item
constexpr std::int64_t kKeys = 64;     // keys converted at once
constexpr std::int64_t kColumns = 16;  // output columns accumulated at once

using Doubles = std::vector<double>;

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

// scores[r * stride + j] = scale * (q_r . k_j) for one tile of kKeys keys; `keys` is [dim][kKeys], `q` is [rows][dim].
ZYFA_WIDE void score_tile(const double* q, const double* keys, std::int64_t rows, std::int64_t dim, double scale,
                          double* scores, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum[kKeys] = {};
    for (std::int64_t d = 0; d < dim; ++d) {
      const double query = q[r * dim + d];
      const double* column = keys + d * kKeys;
      for (std::int64_t j = 0; j < kKeys; ++j) {
        sum[j] += query * column[j];
      }
    }
    for (std::int64_t j = 0; j < kKeys; ++j) {
      scores[r * stride + j] = scale * sum[j];
    }
  }
}

// out[0..dim) += sum over j in [0, count) of weights[j] * values[j * padded + ...], in ascending j for every column.
ZYFA_WIDE void add_values(const double* weights, const double* values, std::int64_t count, std::int64_t padded,
                          double* out) {
  for (std::int64_t first = 0; first < padded; first += kColumns) {
    double sum[kColumns];
    for (std::int64_t d = 0; d < kColumns; ++d) {
      sum[d] = out[first + d];
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const double weight = weights[j];
      const double* row = values + j * padded + first;
      for (std::int64_t d = 0; d < kColumns; ++d) {
        sum[d] += weight * row[d];
      }
    }
    for (std::int64_t d = 0; d < kColumns; ++d) {
      out[first + d] = sum[d];
    }
  }
}

std::string describe(const char* name, const Bf16View& view) {
  return std::string(name) + " [" + std::to_string(view.batch) + ", " + std::to_string(view.tokens) + ", " +
         std::to_string(view.heads) + ", " + std::to_string(view.dim) + "]";
}

Status check(const AttentionCase& problem) {
  const Bf16View &q = problem.q, &k = problem.k, &v = problem.v;
  const std::string shapes = describe("q", q) + ", " + describe("k", k) + ", " + describe("v", v);
  for (const Bf16View* view : {&q, &k, &v}) {
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
class Worker {
 public:
  Worker(const AttentionCase& problem, AttentionResult& result)
      : problem_(problem),
        result_(result),
        dim_(problem.q.dim),
        padded_((problem.v.dim + kColumns - 1) / kColumns * kColumns),
        queries_(index(kRows * dim_)),
        keys_(index(dim_ * kKeys)),
        values_(index(kKeys * padded_)),
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
      const std::uint16_t* q = problem_.q.row(b, first_row + r, head);
      for (std::int64_t d = 0; d < dim_; ++d) {
        queries_[index(r * dim_ + d)] = bf16_to_double(q[d]);
      }
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
    stride_ = (all.end - all.begin + kKeys - 1) / kKeys * kKeys;
    scores_.resize(index(kRows * stride_));
    for (std::int64_t first = all.begin; first < all.end; first += kKeys) {
      const std::int64_t count = std::min(kKeys, all.end - first);
      std::fill(keys_.begin(), keys_.end(), 0.0);
      for (std::int64_t j = 0; j < count; ++j) {
        const std::uint16_t* k = problem_.k.row(b, first + j, key_head);
        for (std::int64_t d = 0; d < dim_; ++d) {
          keys_[index(d * kKeys + j)] = bf16_to_double(k[d]);
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
    for (std::int64_t first = all.begin; first < all.end; first += kKeys) {
      const std::int64_t count = std::min(kKeys, all.end - first);
      for (std::int64_t j = 0; j < count; ++j) {
        const std::uint16_t* v = problem_.v.row(b, first + j, key_head);
        for (std::int64_t d = 0; d < problem_.v.dim; ++d) {
          values_[index(j * padded_ + d)] = bf16_to_double(v[d]);
        }
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

  const AttentionCase& problem_;
  AttentionResult& result_;
  std::int64_t dim_, padded_, stride_ = 0;
  Doubles queries_, keys_, values_, out_, scores_;
  KeyInterval seen_[kRows];
  double sums_[kRows] = {};
};

}  // namespace

Bf16View dense_view(const std::uint16_t* data, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
                    std::int64_t dim) {
  return {data, batch, tokens, heads, dim, tokens * heads * dim, heads * dim, dim};
}

KeyInterval visible_keys(Mask mask, std::int64_t i, std::int64_t query_length, std::int64_t key_length) {
  if (mask == Mask::kCausal) {
    return {0, std::clamp<std::int64_t>(i + key_length - query_length + 1, 0, key_length)};
  }
  return {0, key_length};
}

Expected<AttentionResult> attention(const AttentionCase& problem, unsigned threads) {
  if (Status status = check(problem); !status) {
    return tl::unexpected<Error>(status.error());
  }
  AttentionResult result{problem.q.batch, problem.q.tokens, problem.q.heads, problem.v.dim, {}, {}};
  result.lse.resize(index(result.batch * result.heads * result.tokens));
  result.o.resize(result.lse.size() * index(result.dim));
  const std::int64_t blocks = (result.tokens + kRows - 1) / kRows;
  const std::int64_t items = result.batch * result.heads * blocks;
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    Worker worker(problem, result);
    for (std::int64_t item = next++; item < items; item = next++) {
      const std::int64_t head = item / blocks;
      worker.run(head / result.heads, head % result.heads, item % blocks * kRows);
    }
  };
  const std::int64_t cores = threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  // A second thread costs more than a problem of a few items.
  for (std::int64_t t = 1; t < std::min(cores, items / 4); ++t) {
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the threads there are do the work
    }
  }
  work();
  for (std::thread& helper : helpers) {
    helper.join();
  }
  return result;
}

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
