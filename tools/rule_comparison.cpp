#include "tools/rule_comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/io/sim_text.h"

namespace zyfa::tools {
namespace {

template <typename T>
double read_as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

// The number in an element, NaN for types that are only compared bit for bit.
double number(io::ElementType type, const std::byte* bytes) {
  switch (type) {
    case io::ElementType::kF32:
      return read_as<float>(bytes);
    case io::ElementType::kF64:
      return read_as<double>(bytes);
    case io::ElementType::kI32:
      return read_as<std::int32_t>(bytes);
    case io::ElementType::kU32:
      return read_as<std::uint32_t>(bytes);
    case io::ElementType::kBf16: {
      std::uint16_t half = 0;
      std::memcpy(&half, bytes, sizeof half);
      const std::uint32_t single = std::uint32_t{half} << 16;
      return read_as<float>(reinterpret_cast<const std::byte*>(&single));
    }
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

BufferDifference difference(const io::JobOutput& a, const io::JobOutput& b) {
  BufferDifference d{.buffer = a.argument->write.filename().string()};
  const std::size_t width = io::element_bytes(a.type);
  d.elements = a.bytes.size() / width;
  for (std::size_t i = 0; i < d.elements; ++i) {
    const std::byte *x = a.bytes.data() + i * width, *y = b.bytes.data() + i * width;
    if (std::memcmp(x, y, width) == 0) {
      continue;
    }
    ++d.different;
    const double gap = std::fabs(number(a.type, x) - number(a.type, y));
    if (std::isfinite(gap)) {
      d.largest = std::max(d.largest, gap);
    }
  }
  return d;
}

}  // namespace

Expected<std::vector<RuleOutcome>> compare_rules(const io::Job& job, std::span<const std::byte> object,
                                                 const ObjectKernel& kernel, SimDevice& device) {
  const Expected<std::vector<io::JobOutput>> expected = io::execute_job(job, object, kernel, device);
  if (!expected) {
    return tl::unexpected<Error>(expected.error());
  }
  if (expected->empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the job has no buffer with \"write\", so there is nothing to compare");
  }
  const SimOptions options = device.options();
  std::vector<RuleOutcome> outcomes;
  for (const io::OtherRule& other : io::other_rules(options.rules)) {
    SimOptions changed = options;
    changed.rules = other.rules;
    if (Status set = device.set_options(changed); !set) {
      return tl::unexpected<Error>(set.error());
    }
    RuleOutcome outcome{.rule = other.text, .error = {}, .buffers = {}};
    const Expected<std::vector<io::JobOutput>> outputs = io::execute_job(job, object, kernel, device);
    if (!outputs) {
      outcome.error = outputs.error().message;
    } else {
      for (std::size_t i = 0; i < outputs->size(); ++i) {
        outcome.buffers.push_back(difference((*expected)[i], (*outputs)[i]));
      }
    }
    outcomes.push_back(std::move(outcome));
  }
  if (Status restored = device.set_options(options); !restored) {
    return tl::unexpected<Error>(restored.error());
  }
  return outcomes;
}

OrderedJson to_json(const std::vector<RuleOutcome>& outcomes) {
  OrderedJson rules = OrderedJson::array();
  for (const RuleOutcome& outcome : outcomes) {
    OrderedJson rule{{"rule", outcome.rule}};
    if (!outcome.error.empty()) {
      rule["error"] = outcome.error;
    }
    for (const BufferDifference& d : outcome.buffers) {
      rule["buffers"].push_back({{"buffer", d.buffer},
                                 {"elements", d.elements},
                                 {"different", d.different},
                                 {"largest_difference", d.largest}});
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

void print(const std::vector<RuleOutcome>& outcomes) {
  for (const RuleOutcome& outcome : outcomes) {
    if (!outcome.error.empty()) {
      fmt::print("{:<26} fails: {}\n", outcome.rule, outcome.error);
    }
    for (const BufferDifference& d : outcome.buffers) {
      fmt::print("{:<26} {}: {}\n", outcome.rule, d.buffer,
                 d.different == 0 ? "the same bits"
                                  : fmt::format("depends on it: {} of {} elements differ, by {:.3g} at most",
                                                d.different, d.elements, d.largest));
    }
  }
}

}  // namespace zyfa::tools
