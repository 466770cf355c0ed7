// What `run` did and found; the text and the JSON form are printed from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/io/attention_inputs.h"
#include "tests/reference/compare.h"
#include "tools/cli.h"
#include "zyfa/attention.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {

struct RunReport {
  std::string inputs_file, output_file;
  io::AttentionInputs inputs;
  AttentionProblem problem;
  std::string mask_origin, scale_origin;  // "file", "option", "default"
  double softmax_scale = 0;
  AttentionInfo info;
  std::size_t workspace_bytes = 0;
  std::string device;
  bool strict = false, simulated = false;
  double launch_seconds = 0, reference_seconds = 0;  // on this host
  unsigned launches = 0, different = 0;              // launches whose bits differ from the first one's
  std::optional<TilePaths> paths;                    // of the last launch, where the kernel has two
  reference::ErrorFigures figures;
  double max_rms = 0, max_lse = 0;  // percent and absolute, the limits applied
  std::uint64_t rejected = 0;       // cache entries that failed a check and were set aside
  bool within_tolerance = false;
};

[[nodiscard]] OrderedJson to_json(const RunReport& report);
void print_text(const RunReport& report);

}  // namespace zyfa::tools
