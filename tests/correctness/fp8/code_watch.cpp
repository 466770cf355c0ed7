#include "tests/correctness/fp8/code_watch.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <string_view>

#include "zyfa/sim_watch.h"

namespace zyfa::tests {
namespace {

// Dense and sparse; P is the third operand of both.
constexpr std::string_view kRowSums[] = {"v_mfma_f32_16x16x128_f8f6f4", "v_smfmac_f32_16x16x128_fp8_fp8"};
constexpr std::string_view kConversion = "v_cvt_pk_u8_f32";
constexpr unsigned kLanes = 64, kOperandRegisters = 8;

// First VGPR of operand n: "v_x v[0:3], v7, ..." -> 0, 7.
std::optional<unsigned> vgpr_operand(std::string_view text, int n) {
  std::size_t at = text.find(' ');
  for (int k = 0; k < n && at != std::string_view::npos; ++k) at = text.find(", ", at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at);
  const std::size_t name = text.find('v');
  if (name == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name + 1);
  if (text.starts_with('[')) text.remove_prefix(1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::uint64_t WatchedCodes::total() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  return sum;
}

int WatchedCodes::largest() const {
  for (int code = 255; code >= 0; --code) {
    if (counts[static_cast<std::size_t>(code)] != 0) return code;
  }
  return -1;
}

std::vector<SimWatch> watch_codes(WatchedCodes& to, WatchValues values, std::uint32_t wave) {
  SimWatch watch;
  watch.moment = SimMoment::kBefore;
  watch.wave = wave;
  watch.call = [&to, values](const SimStep& step, const SimWaveView& view) {
    if (values == WatchValues::kCodesAndConverted && step.instruction.starts_with(kConversion)) {
      const std::optional<unsigned> source = vgpr_operand(step.instruction, 1);
      if (!source) return SimAction::kStop;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        to.converted.push_back(std::bit_cast<float>(view.vgpr(*source, lane).value()));
      }
    }
    if (std::ranges::any_of(kRowSums, [&](std::string_view name) { return step.instruction.starts_with(name); })) {
      const std::optional<unsigned> source = vgpr_operand(step.instruction, 2);
      if (!source) return SimAction::kStop;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        for (unsigned r = 0; r < kOperandRegisters; ++r) {
          const std::uint32_t word = view.vgpr(*source + r, lane).value();
          for (int byte = 0; byte < 4; ++byte) {
            const auto code = static_cast<std::uint8_t>(word >> (8 * byte));
            ++to.counts[code];
            if (values == WatchValues::kCodesAndConverted) to.codes.push_back(code);
          }
        }
      }
    }
    return SimAction::kContinue;
  };
  return {watch};
}

}  // namespace zyfa::tests
