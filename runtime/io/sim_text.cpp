// Names of simulator policies and rules: see sim_text.h.
#include "runtime/io/sim_text.h"

#include <charconv>
#include <optional>

namespace zyfa::io {
namespace {

struct RuleName {
  std::string_view name;
  std::vector<std::string_view> values;  // in the order of the enumerators
  std::uint8_t (*get)(const SimRules&);
  void (*set)(SimRules&, std::uint8_t);
};

template <auto Member>
RuleName rule(std::string_view name, std::vector<std::string_view> values) {
  using Value = std::remove_cvref_t<decltype(std::declval<SimRules>().*Member)>;
  return {name, std::move(values), [](const SimRules& r) { return static_cast<std::uint8_t>(r.*Member); },
          [](SimRules& r, std::uint8_t value) { r.*Member = static_cast<Value>(value); }};
}

const std::vector<RuleName>& rules_by_name() {
  static const std::vector<RuleName> rules{
      rule<&SimRules::accumulation>("accumulation", {"fma-chain", "exact", "chunked"}),
      rule<&SimRules::soffset>("soffset", {"unchecked", "checked"}),
      rule<&SimRules::unaligned>("unaligned", {"delivered", "truncated"}),
      rule<&SimRules::cvt_pk_u8>("cvt-pk-u8", {"rounds", "truncates"}),
      rule<&SimRules::narrow_scale>("narrow-scale", {"divides", "multiplies"}),
      rule<&SimRules::d16>("d16", {"keeps-half", "clears-half"}),
      rule<&SimRules::atomic_denormals>("atomic-denormals", {"flushed", "kept"}),
  };
  return rules;
}

std::string choices(const RuleName& rule) {
  std::string text = std::string(rule.name) + "=";
  for (std::size_t i = 0; i < rule.values.size(); ++i) {
    text += (i == 0 ? "" : "|") + std::string(rule.values[i]);
  }
  return text;
}

std::optional<std::uint64_t> seed_of(std::string_view text) {
  constexpr std::string_view kRandom = "random:";
  if (!text.starts_with(kRandom)) {
    return std::nullopt;
  }
  text.remove_prefix(kRandom.size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(seed) : std::nullopt;
}

}  // namespace

Status set_landing(std::string_view text, SimOptions& options) {
  if (text == "late") {
    options.landing = SimLanding::kLate;
  } else if (text == "latest") {
    options.landing = SimLanding::kLatest;
  } else if (text == "early") {
    options.landing = SimLanding::kEarly;
  } else if (const auto seed = seed_of(text)) {
    options.landing = SimLanding::kRandom;
    options.landing_seed = *seed;
  } else {
    return make_error(ErrorCode::kInvalidArgument,
                      "landing '" + std::string(text) + "'; late, latest, early or random:SEED (a number) are allowed");
  }
  return {};
}

Status set_interleave(std::string_view text, SimOptions& options) {
  if (text == "round-robin") {
    options.interleave = SimInterleave::kRoundRobin;
  } else if (text == "to-barrier") {
    options.interleave = SimInterleave::kToBarrier;
  } else if (const auto seed = seed_of(text)) {
    options.interleave = SimInterleave::kRandom;
    options.interleave_seed = *seed;
  } else {
    return make_error(
        ErrorCode::kInvalidArgument,
        "interleave '" + std::string(text) + "'; round-robin, to-barrier or random:SEED (a number) are allowed");
  }
  return {};
}

Status set_rule(std::string_view text, SimRules& rules) {
  const auto equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view{} : text.substr(equals + 1);
  for (const RuleName& rule : rules_by_name()) {
    for (std::size_t i = 0; i < rule.values.size(); ++i) {
      if (rule.name == name && rule.values[i] == value) {
        rule.set(rules, static_cast<std::uint8_t>(i));
        return {};
      }
    }
  }
  std::vector<std::string> details;
  for (const std::string& choice : rule_choices()) {
    details.push_back(choice);
  }
  return make_error(ErrorCode::kInvalidArgument, "rule '" + std::string(text) + "' is none of the simulator's",
                    std::move(details));
}

std::vector<std::string> rule_choices() {
  std::vector<std::string> texts;
  for (const RuleName& rule : rules_by_name()) {
    texts.push_back(choices(rule));
  }
  return texts;
}

std::vector<OtherRule> other_rules(const SimRules& base) {
  std::vector<OtherRule> others;
  for (const RuleName& rule : rules_by_name()) {
    for (std::size_t i = 0; i < rule.values.size(); ++i) {
      if (rule.get(base) == i) {
        continue;
      }
      OtherRule other{std::string(rule.name) + "=" + std::string(rule.values[i]), base};
      rule.set(other.rules, static_cast<std::uint8_t>(i));
      others.push_back(std::move(other));
    }
  }
  return others;
}

}  // namespace zyfa::io
