#include "tools/accuracy_study.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tools/accuracy_kernels.h"

namespace zyfa::tools {
namespace {

using reference::AttentionCase;
using reference::AttentionResult;
using reference::DoubleCase;
using reference::QuantisedInputs;
using reference::QuantiserOptions;
using Kind = AccuracyVariant::Kind;

std::vector<std::uint16_t> to_bf16(const std::vector<std::byte>& bytes) {
  std::vector<std::uint16_t> result(bytes.size() / sizeof(std::uint16_t));
  if (!result.empty()) {
    std::memcpy(result.data(), bytes.data(), bytes.size());
  }
  return result;
}

AccuracyFigures figures_of(const AttentionResult& exact, const AttentionResult& result) {
  AccuracyFigures figures;
  figures.rms_by_head = reference::relative_rms_by_head(exact, result);
  figures.rms = std::accumulate(figures.rms_by_head.begin(), figures.rms_by_head.end(), 0.0) /
                static_cast<double>(figures.rms_by_head.size());
  if (!result.lse.empty()) {
    figures.lse = reference::lse_errors(exact, result);
  }
  return figures;
}

// The inputs quantised on the host, as doubles, and fp64 attention on them.
struct Quantised {
  QuantiserOptions options;
  QuantisedInputs codes;
  std::vector<double> q, k, v;
  DoubleCase rows;
  AttentionResult exact;
};

class Study {
 public:
  Study(const AccuracyStudy& study, const std::vector<AccuracyVariant>& variants)
      : study_(study), q_(to_bf16(study.inputs.q)), k_(to_bf16(study.inputs.k)), v_(to_bf16(study.inputs.v)) {
    const io::AttentionInputs& in = study.inputs;
    given_ = {reference::dense_view(q_.data(), in.batch(), in.query_length(), in.query_heads(), in.head_dim_qk()),
              reference::dense_view(k_.data(), in.batch(), in.key_length(), in.key_heads(), in.head_dim_qk()),
              reference::dense_view(v_.data(), in.batch(), in.key_length(), in.key_heads(), in.head_dim_v()),
              study.mask == Mask::kCausal ? reference::Mask::kCausal : reference::Mask::kFull,
              // Kernels are given the scale as a float; so is the reference.
              static_cast<double>(static_cast<float>(study.softmax_scale))};
    for (const AccuracyVariant& variant : variants) {
      AccuracyRow& row = rows_.emplace_back();
      row.variant = variant;
      if (variant.kind == Kind::kPeer) {
        row.skipped = "no kernel of ours has this rule; the host model computes it";
        continue;
      }
      const AttentionProblem problem = KernelRunner::problem_of(study, variant);
      row.problem = to_string(problem);
      if (const Support support = supports(problem); !support) {
        row.skipped = support.reasons.front();
      }
    }
  }

  Expected<std::vector<AccuracyRow>> run() {
    tell("fp64 attention");
    Expected<AttentionResult> exact = reference::attention(given_);
    if (!exact) {
      return tl::unexpected<Error>(exact.error());
    }
    exact_ = *std::move(exact);
    Status status = study_.model ? run_model() : Status{};
    if (status && study_.device != nullptr) {
      status = run_kernels();
    }
    if (!status) {
      return tl::unexpected<Error>(status.error());
    }
    return std::move(rows_);
  }

 private:
  void tell(const std::string& what) const {
    if (study_.progress) {
      study_.progress(what);
    }
  }

  Expected<const Quantised*> quantised(const QuantiserOptions& options) {
    for (const auto& made : quantised_) {
      if (made->options == options) {
        return made.get();
      }
    }
    tell("quantisation on the host");
    auto result = std::make_unique<Quantised>();
    result->options = options;
    result->codes = reference::quantise(given_, options);
    const auto view = [](std::vector<double>& values, const reference::Codes& codes) {
      values = reference::dequantise(codes);
      return reference::dense_double_view(values.data(), codes.batch, codes.tokens, codes.heads, codes.dim);
    };
    result->rows = {view(result->q, result->codes.q), view(result->k, result->codes.k),
                    view(result->v, result->codes.v), given_.mask, given_.softmax_scale};
    Expected<AttentionResult> exact = reference::attention(result->rows);
    if (!exact) {
      return tl::unexpected<Error>(exact.error());
    }
    result->exact = *std::move(exact);
    quantised_.push_back(std::move(result));
    return quantised_.back().get();
  }

  static bool mixed(const AccuracyVariant& variant) { return variant.options.near_keys == NearKeys::kBf16; }

  // Whether the scores of two variants are the same, so that the model computes them once.
  static bool same_scores(const AccuracyVariant& a, const AccuracyVariant& b) {
    return quantiser_options(a) == quantiser_options(b) && mixed(a) == mixed(b);
  }

  Status run_model() {
    for (std::size_t first = 0; first < rows_.size(); ++first) {
      if (rows_[first].variant.kind == Kind::kBf16 || rows_[first].model) {
        continue;
      }
      const AccuracyVariant variant = rows_[first].variant;
      std::vector<AccuracyRow*> rows;
      std::vector<reference::ProbabilityRule> rules;
      for (std::size_t i = first; i < rows_.size(); ++i) {
        if (rows_[i].variant.kind != Kind::kBf16 && same_scores(rows_[i].variant, variant) &&
            modelled(rows_[i].variant)) {
          rows.push_back(&rows_[i]);
          rules.push_back(probability_rule(rows_[i].variant));
        }
      }
      if (rows.empty()) {
        continue;
      }
      const Expected<const Quantised*> inputs = quantised(quantiser_options(variant));
      if (!inputs) {
        return tl::unexpected<Error>(inputs.error());
      }
      tell("model of " + variant.name());
      const auto results = reference::rounded_attention((*inputs)->rows, rules, near_blocks(variant), &given_);
      if (!results) {
        return tl::unexpected<Error>(results.error());
      }
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i]->model = AccuracyPair{figures_of(exact_, (*results)[i]), {}};
        if (!mixed(variant)) {
          rows[i]->model->alone = figures_of((*inputs)->exact, (*results)[i]);
        }
        if (smoothed(variant)) {
          rows[i]->model->given.lse.reset();
        }
      }
    }
    return {};
  }

  // The mean key shifts all scores of a row, and its LSE with them.
  static bool smoothed(const AccuracyVariant& variant) { return variant.options.smoothing == KeySmoothing::kMean; }

  // Of combinations that exclude each other there is no model either.
  static bool modelled(const AccuracyVariant& variant) {
    const Fp8Options& o = variant.options;
    const bool folds =
        o.form != ScoreForm::kFolded || (o.probability == Probability::kLean && o.scores == ScoreType::kFp8);
    return variant.kind == Kind::kPeer || (folds && !(mixed(variant) && smoothed(variant)));
  }

  Status run_kernels() {
    const Expected<KernelRunner> runner = KernelRunner::create(study_);
    if (!runner) {
      return tl::unexpected<Error>(runner.error());
    }
    for (AccuracyRow& row : rows_) {
      if (!row.skipped.empty()) {
        continue;
      }
      tell(row.variant.name());
      const Expected<KernelOutcome> outcome = runner->run(KernelRunner::problem_of(study_, row.variant), study_.inputs);
      if (!outcome) {
        return tl::unexpected<Error>(outcome.error());
      }
      row.kernel = AccuracyPair{figures_of(exact_, outcome->result), {}};
      row.tiles = outcome->tiles;
      if (const Status status = run_alone(*runner, row); !status) {
        return status;
      }
    }
    return {};
  }

  // The same kernel on inputs that the host quantised, where there is such a problem.
  Status run_alone(const KernelRunner& runner, AccuracyRow& row) {
    if (row.variant.kind != Kind::kFp8 || mixed(row.variant) || row.variant.options.scores == ScoreType::kInt8) {
      return {};
    }
    const AttentionProblem problem = KernelRunner::eight_bit_problem(study_, row.variant);
    const Expected<const Quantised*> inputs = quantised(quantiser_options(row.variant));
    if (!inputs) {
      return tl::unexpected<Error>(inputs.error());
    }
    tell(row.variant.name() + " on 8-bit inputs");
    const Expected<KernelOutcome> outcome = runner.run(problem, (*inputs)->codes);
    if (!outcome) {
      return tl::unexpected<Error>(outcome.error());
    }
    row.kernel->alone = figures_of((*inputs)->exact, outcome->result);
    return {};
  }

  const AccuracyStudy& study_;
  std::vector<std::uint16_t> q_, k_, v_;
  AttentionCase given_;
  AttentionResult exact_;
  std::vector<std::unique_ptr<Quantised>> quantised_;
  std::vector<AccuracyRow> rows_;
};

}  // namespace

Expected<std::vector<AccuracyRow>> run_study(const AccuracyStudy& study, const std::vector<AccuracyVariant>& variants) {
  return Study(study, variants).run();
}

}  // namespace zyfa::tools
