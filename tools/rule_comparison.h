// `simulate --compare-rules`: which results of a job depend on a reading of the hardware's rules (zyfa/sim_rules.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/io/job_run.h"
#include "tools/cli.h"

namespace zyfa::tools {

struct BufferDifference {
  std::string buffer;  // file name
  std::uint64_t elements = 0, different = 0;
  double largest = 0;  // |difference| of two finite numbers
};
struct RuleOutcome {
  std::string rule;   // "accumulation=exact"
  std::string error;  // the run failed under this reading; empty: it did not
  std::vector<BufferDifference> buffers;
};

// Runs the job under the device's rules and under every other reading of each, one at a time. kInvalidArgument: the job
// stores no buffer. Else errors of the first run.
[[nodiscard]] Expected<std::vector<RuleOutcome>> compare_rules(const io::Job& job, std::span<const std::byte> object,
                                                               const ObjectKernel& kernel, SimDevice& device);
[[nodiscard]] OrderedJson to_json(const std::vector<RuleOutcome>& outcomes);
void print(const std::vector<RuleOutcome>& outcomes);

}  // namespace zyfa::tools
