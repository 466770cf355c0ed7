// Text forms of the simulator's policies and rules, for command lines and reports: "late", "random:7",
// "soffset=checked".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zyfa/device.h"
#include "zyfa/error.h"

namespace zyfa::io {

// Each sets its part of `options` or is kInvalidArgument, naming the text and what is allowed.
[[nodiscard]] Status set_landing(std::string_view text, SimOptions& options);  // late | latest | early | random:SEED
[[nodiscard]] Status set_interleave(std::string_view text,
                                    SimOptions& options);  // round-robin | to-barrier | random:SEED
// One rule by "name=value"; the names and values are those of rule_choices().
[[nodiscard]] Status set_rule(std::string_view text, SimRules& rules);

// Every rule as "name=value|value|...", the default first.
[[nodiscard]] std::vector<std::string> rule_choices();

// A reading of one rule that is not the default.
struct OtherRule {
  std::string text;  // "accumulation=exact"
  SimRules rules;    // `base` with that one changed
};
// All readings of all rules but those that `base` has.
[[nodiscard]] std::vector<OtherRule> other_rules(const SimRules& base);

}  // namespace zyfa::io
