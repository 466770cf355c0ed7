#include "runtime/sim/timing/parameters.h"

#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zyfa::sim::timing {
namespace {

constexpr ParameterInfo kTable[] = {
#define ZYFA_TIMING_ROW(name, evidence, initial, low, high, unit, source, meaning) \
  {#name, Evidence::evidence, &Parameters::name, initial, low, high, unit, source, meaning},
    ZYFA_TIMING_PARAMETERS(ZYFA_TIMING_ROW)
#undef ZYFA_TIMING_ROW
};

}  // namespace

std::span<const ParameterInfo> parameter_table() { return kTable; }

Expected<Parameters> with_parameter(Parameters parameters, std::string_view name, double value) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : kTable) {
    names.emplace_back(info.name);
    if (info.name != name) continue;
    if (!(value >= info.low && value <= info.high) || value != std::floor(value)) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("timing parameter {} is {}; allowed are whole numbers from {} to {} ({})", name,
                                    value, info.low, info.high, info.unit));
    }
    parameters.*info.member = static_cast<std::uint32_t>(value);
    return parameters;
  }
  return make_error(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is no timing parameter", name),
                    {fmt::format("allowed: {}", fmt::join(names, ", "))});
}

Expected<Parameters> with_parameter_text(Parameters parameters, std::string_view text) {
  const std::size_t equals = text.find('=');
  double value = 0;
  const std::string_view digits = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("\"{}\" sets no timing parameter; allowed is name=number", text));
  }
  return with_parameter(parameters, text.substr(0, equals), value);
}

Parameters gfx942_parameters() {
  Parameters parameters;
  parameters.trans_cycles = 16;
  return parameters;
}

}  // namespace zyfa::sim::timing
