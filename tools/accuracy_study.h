// Errors of every variant on given inputs: of the kernels, run on a device, and of the host model of their rules.
//
// Two yardsticks, both fp64 attention: on the inputs as given (what a user sees), and on the same 8-bit inputs, which
// leaves the rounding of probabilities alone (and of the output to BF16, where a kernel wrote it).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/io/attention_inputs.h"
#include "tests/reference/compare.h"
#include "tools/accuracy_variants.h"
#include "zyfa/attention.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {

struct AccuracyFigures {
  std::vector<double> rms_by_head;  // percent
  double rms = 0;                   // mean over heads, percent
  std::optional<reference::LseErrors> lse;
};

struct AccuracyPair {
  AccuracyFigures given;  // against fp64 on the inputs as given
  std::optional<AccuracyFigures>
      alone;  // against fp64 on the same 8-bit inputs; none where keys are BF16, nor for BF16
};

struct AccuracyRow {
  AccuracyVariant variant;
  std::string problem;  // text form of what the kernel was compiled for; empty for peer
  std::optional<AccuracyPair> kernel, model;
  std::optional<TilePaths> tiles;  // of folded kernels on the simulator
  std::string skipped;             // why no kernel can run it; empty when one can
};

struct AccuracyStudy {
  const io::AttentionInputs& inputs;  // BF16
  Mask mask = Mask::kFull;
  double softmax_scale = 0;
  std::shared_ptr<Device> device;  // null: no kernel is run
  bool model = true;
  CacheOptions cache;
  std::function<void(const std::string& what)> progress;  // before each step; may be empty
};

// One row a variant, in their order. Errors of compiling and running kernels; a problem that has no kernel is a row
// with a reason instead.
[[nodiscard]] Expected<std::vector<AccuracyRow>> run_study(const AccuracyStudy& study,
                                                           const std::vector<AccuracyVariant>& variants);

}  // namespace zyfa::tools
