#include "tools/synthetic_inputs.h"

#include <fmt/format.h>

#include <charconv>
#include <numbers>
#include <optional>
#include <string_view>

#include "runtime/io/file.h"
#include "tests/reference/attention.h"

namespace zyfa::tools {
namespace {

constexpr std::int64_t kQueries = 256, kDim = 128;
constexpr std::int64_t kMaxBinades = 31, kMaxKeys = 1 << 20;
constexpr double kSinkValue = 0x1p-30;

struct Sink {
  std::int64_t binades = 18, keys = 4096;
};

std::optional<std::int64_t> number(std::string_view text, std::int64_t largest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > largest) {
    return std::nullopt;
  }
  return value;
}

Expected<Sink> parse(const std::string& text) {
  Sink sink;
  const std::string_view whole = text;
  const std::size_t first = std::min(whole.find(':'), whole.size()),
                    second = std::min(whole.find(':', first + 1), whole.size());
  bool good = whole.substr(0, first) == "sink";
  if (good && first < whole.size()) {
    const auto binades = number(whole.substr(first + 1, second - first - 1), kMaxBinades);
    good = binades.has_value();
    sink.binades = binades.value_or(0);
  }
  if (good && second < whole.size()) {
    const auto keys = number(whole.substr(second + 1), kMaxKeys);
    good = keys.has_value();
    sink.keys = keys.value_or(0);
  }
  if (!good) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("synthetic inputs {} are not known; write sink[:BINADES[:KEYS]] with BINADES from 1 "
                                  "to {} and KEYS from 1 to {}",
                                  io::quote(text), kMaxBinades, kMaxKeys));
  }
  return sink;
}

void append(std::vector<std::byte>& bytes, double value) {
  const std::uint16_t bits = reference::double_to_bf16(value);
  bytes.push_back(static_cast<std::byte>(bits & 0xff));
  bytes.push_back(static_cast<std::byte>(bits >> 8));
}

}  // namespace

Expected<io::AttentionInputs> synthetic_inputs(const std::string& text) {
  const Expected<Sink> sink = parse(text);
  if (!sink) {
    return tl::unexpected<Error>(sink.error());
  }
  io::AttentionInputs in;
  in.q_shape = {kQueries, 1, kDim};
  in.k_shape = in.v_shape = {1 + sink->keys, 1, kDim};
  in.mask = Mask::kFull;
  in.softmax_scale = std::numbers::ln2 / static_cast<double>(kDim);
  const auto binades = static_cast<double>(sink->binades);
  for (std::int64_t i = 0; i < kQueries * kDim; ++i) {
    append(in.q, 1.0);
  }
  for (std::int64_t d = 0; d < kDim; ++d) {
    append(in.k, binades);
    append(in.v, d % 2 == 0 ? kSinkValue : -kSinkValue);
  }
  for (std::int64_t j = 0; j < sink->keys; ++j) {
    for (std::int64_t d = 0; d < kDim; ++d) {
      append(in.k, (d % 2 == 0 ? 1.75 : -1.75) * binades);
      append(in.v, 1.0 + static_cast<double>((37 * j + 11 * d) % 32 - 16) / 128.0);
    }
  }
  return in;
}

}  // namespace zyfa::tools
