#include "tools/accuracy_kernels.h"

#include <algorithm>
#include <memory>

#include "tools/attention_run.h"

namespace zyfa::tools {
namespace {

std::vector<std::byte> bytes_of(const reference::Codes& codes) {
  std::vector<std::byte> bytes(codes.bytes.size());
  std::transform(codes.bytes.begin(), codes.bytes.end(), bytes.begin(),
                 [](std::uint8_t code) { return std::byte{code}; });
  return bytes;
}

io::Descale descale_of(const reference::Codes& codes) { return {codes.batch, codes.key_heads, codes.descales}; }

}  // namespace

Expected<KernelRunner> KernelRunner::create(const AccuracyStudy& study) {
  KernelRunner runner(study);
  runner.simulator_ = std::dynamic_pointer_cast<SimDevice>(study.device);
  if (runner.simulator_) {
    SimOptions counting = runner.simulator_->options();
    counting.counts = SimCounts::kByInstruction;
    if (const Status status = runner.simulator_->set_options(counting); !status) {
      return tl::unexpected<Error>(status.error());
    }
  }
  return runner;
}

AttentionProblem KernelRunner::problem_of(const AccuracyStudy& study, const AccuracyVariant& variant) {
  AttentionProblem problem{.head_dim_qk = static_cast<std::uint32_t>(study.inputs.head_dim_qk()),
                           .head_dim_v = static_cast<std::uint32_t>(study.inputs.head_dim_v()),
                           .mask = study.mask,
                           .lse = Lse::kWritten};
  if (variant.kind == AccuracyVariant::Kind::kFp8) {
    problem.compute = Compute::kFp8;
    problem.fp8 = variant.options;
    // The mean key shifts a row's scores, so such kernels write no LSE.
    problem.lse = variant.options.smoothing == KeySmoothing::kMean ? Lse::kNone : Lse::kWritten;
  }
  return problem;
}

AttentionProblem KernelRunner::eight_bit_problem(const AccuracyStudy& study, const AccuracyVariant& variant) {
  AttentionProblem problem = problem_of(study, variant);
  problem.dtype = DType::kFp8E4M3;
  problem.lse = Lse::kWritten;
  problem.compute = Compute::kInput;
  problem.fp8 = {.probability = variant.options.probability,
                 .scaling = variant.options.scaling,
                 .form = variant.options.form,
                 .row_sum = variant.options.row_sum,
                 .byte_rounding = variant.options.byte_rounding};
  return problem;
}

Expected<KernelOutcome> KernelRunner::run(const AttentionProblem& problem, const io::AttentionInputs& inputs) const {
  const auto attention = Attention::compile(problem, {.device = study_.device, .placement = {}, .cache = study_.cache});
  if (!attention) {
    return tl::unexpected<Error>(attention.error());
  }
  const auto run = AttentionRun::create(study_.device, inputs, problem.lse);
  if (!run) {
    return tl::unexpected<Error>(run.error());
  }
  const auto outputs = (*run)->launch(**attention, static_cast<float>(study_.softmax_scale));
  if (!outputs) {
    return tl::unexpected<Error>(outputs.error());
  }
  KernelOutcome outcome;
  outcome.result = reference::to_result(reference::dense_view(outputs->o.data(), inputs.batch(), inputs.query_length(),
                                                              inputs.query_heads(), inputs.head_dim_v()),
                                        outputs->lse);
  if (simulator_) {
    outcome.tiles = last_tile_paths(*simulator_);
  }
  return outcome;
}

Expected<KernelOutcome> KernelRunner::run(const AttentionProblem& problem,
                                          const reference::QuantisedInputs& codes) const {
  io::AttentionInputs inputs = study_.inputs;
  inputs.dtype = DType::kFp8E4M3;
  inputs.q = bytes_of(codes.q), inputs.k = bytes_of(codes.k), inputs.v = bytes_of(codes.v);
  inputs.q_descale = descale_of(codes.q);
  inputs.k_descale = descale_of(codes.k);
  inputs.v_descale = descale_of(codes.v);
  return run(problem, inputs);
}

}  // namespace zyfa::tools
