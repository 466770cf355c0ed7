// Kernels of an accuracy study, each compiled and run once on a device.
#pragma once

#include <optional>

#include "tests/reference/compare.h"
#include "tools/accuracy_study.h"

namespace zyfa::tools {

struct KernelOutcome {
  reference::AttentionResult result;
  std::optional<TilePaths> tiles;
};

class KernelRunner {
 public:
  // Makes a simulated device count by instruction, which the share of tiles on each path comes from.
  [[nodiscard]] static Expected<KernelRunner> create(const AccuracyStudy& study);

  // A BF16 or FP8 variant on the inputs as given.
  [[nodiscard]] static AttentionProblem problem_of(const AccuracyStudy& study, const AccuracyVariant& variant);
  // The same kernel for inputs that are 8-bit already.
  [[nodiscard]] static AttentionProblem eight_bit_problem(const AccuracyStudy& study, const AccuracyVariant& variant);

  [[nodiscard]] Expected<KernelOutcome> run(const AttentionProblem& problem, const io::AttentionInputs& inputs) const;
  [[nodiscard]] Expected<KernelOutcome> run(const AttentionProblem& problem,
                                            const reference::QuantisedInputs& codes) const;

 private:
  explicit KernelRunner(const AccuracyStudy& study) : study_(study) {}

  const AccuracyStudy& study_;
  std::shared_ptr<SimDevice> simulator_;  // null on hardware
};

}  // namespace zyfa::tools
