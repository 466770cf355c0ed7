#include "runtime/sim/picture/execution.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace zyfa::sim::picture {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kNone = std::numeric_limits<u32>::max();

bool any_prefix(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return text.starts_with(p); });
}

Unit vector_unit(std::string_view mnemonic) {
  if (any_prefix(mnemonic, {"v_mfma_", "v_smfmac_"})) return Unit::kMatrix;
  if (any_prefix(mnemonic, {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"}))
    return Unit::kTrans;
  return Unit::kValu;
}

// Executed when the instruction buffer holds them, without a unit (gfx950 ISA, SOPP).
bool is_internal(std::string_view mnemonic) {
  return any_prefix(mnemonic, {"s_waitcnt", "s_setprio", "s_sleep", "s_endpgm", "s_sethalt", "s_setkill", "s_icache",
                               "s_incperf", "s_decperf", "s_ttrace", "s_code_end", "s_set_gpr_idx_off",
                               "s_set_gpr_idx_mode", "s_wakeup", "s_trap", "s_sendmsg"});
}

Unit scalar_unit(std::string_view mnemonic) {
  if (mnemonic.starts_with("s_barrier")) return Unit::kBarrier;
  if (mnemonic == "s_nop") return Unit::kNop;
  if (is_internal(mnemonic)) return Unit::kInternal;
  if (any_prefix(mnemonic, {"s_load_", "s_store_", "s_buffer_", "s_scratch_", "s_atomic_", "s_dcache_", "s_atc_",
                            "s_memtime", "s_memrealtime"}))
    return Unit::kScalarMemory;
  return Unit::kScalar;
}

Error fault(std::size_t span, std::string what) {
  return {ErrorCode::kInvalidArgument, fmt::format("span {} of a picture: {}", span, what), {}};
}

}  // namespace

std::string_view unit_name(Unit unit) {
  constexpr std::array<std::string_view, kUnits> kNames = {"MFMA",          "VALU",   "TRANS",   "LDS", "vector memory",
                                                           "scalar memory", "scalar", "barrier", "nop", "internal"};
  return kNames[static_cast<std::size_t>(unit)];
}

Unit unit_of(std::string_view instruction) {
  const std::string_view mnemonic = instruction.substr(0, instruction.find(' '));
  if (mnemonic.starts_with("v_")) return vector_unit(mnemonic);
  if (mnemonic.starts_with("s_")) return scalar_unit(mnemonic);
  if (mnemonic.starts_with("ds_")) return Unit::kLds;
  if (any_prefix(mnemonic, {"buffer_", "tbuffer_", "global_", "flat_", "scratch_"})) return Unit::kVmem;
  return Unit::kInternal;
}

Status check(const Execution& execution) {
  std::vector<u64> from(execution.waves.size());  // what the wave's next span may begin to wait at
  u64 issue = 0;
  for (std::size_t i = 0; i < execution.spans.size(); ++i) {
    const Span& s = execution.spans[i];
    if (s.wave >= execution.waves.size() || s.instruction >= execution.instructions.size() ||
        s.stall >= execution.stalls.size()) {
      return tl::unexpected(fault(
          i, fmt::format("wave {}, instruction {}, stall {}; there are {}, {} and {}", s.wave, s.instruction, s.stall,
                         execution.waves.size(), execution.instructions.size(), execution.stalls.size())));
    }
    if (s.issue < issue) return tl::unexpected(fault(i, fmt::format("issues at {}, after one at {}", s.issue, issue)));
    if (s.stalled > s.issue || s.issue - s.stalled < from[s.wave]) {
      return tl::unexpected(fault(
          i, fmt::format("has waited {} cycles at {}; its wave was there from {}", s.stalled, s.issue, from[s.wave])));
    }
    if (s.start < s.issue || s.end < s.start)
      return tl::unexpected(fault(i, fmt::format("issues at {}, starts at {}, ends at {}", s.issue, s.start, s.end)));
    issue = s.issue;
    from[s.wave] = s.issue;
  }
  if (execution.loop && execution.loop->begin >= execution.loop->end) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a picture's loop from cycle {} to {}; it must not be empty", execution.loop->begin,
                                  execution.loop->end));
  }
  return {};
}

Expected<Window> choose_window(const Execution& execution, const std::optional<Window>& asked) {
  const u64 end = std::max<u64>(execution.cycles, 1);
  Window window = asked ? *asked : execution.loop.value_or(Window{0, end});
  window.end = std::min(window.end, end);
  const bool any = std::any_of(execution.spans.begin(), execution.spans.end(),
                               [&](const Span& s) { return s.issue >= window.begin && s.issue < window.end; });
  if (any) return window;
  return make_error(ErrorCode::kInvalidArgument,
                    fmt::format("no instruction issues in the window {}:{}; the run takes cycles 0:{}", window.begin,
                                asked ? asked->end : window.end, execution.cycles));
}

Expected<Window> parse_window(std::string_view text) {
  Window window;
  const std::size_t colon = text.find(':');
  const auto number = [](std::string_view digits, u64& value) {
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return code == std::errc{} && end == digits.data() + digits.size();
  };
  if (colon != text.npos && number(text.substr(0, colon), window.begin) && number(text.substr(colon + 1), window.end) &&
      window.begin < window.end)
    return window;
  return make_error(
      ErrorCode::kInvalidArgument,
      fmt::format("window '{}'; allowed is FROM:TO in cycles with FROM below TO, such as 20000:22000", text));
}

std::vector<std::vector<State>> wave_states(const Execution& execution, const Window& window) {
  const auto touches = [&](u64 begin, u64 end) { return begin < window.end && end > window.begin; };
  std::vector<std::vector<State>> states(execution.waves.size());
  std::vector<u32> last(execution.waves.size(), kNone);  // the wave's span before
  // What lies between an issue and the wait for the next one.
  const auto run = [&](u32 index, u64 until) {
    const Span& s = execution.spans[index];
    const Unit unit = execution.instructions[s.instruction].unit;
    std::vector<State>& of = states[s.wave];
    u64 begin = s.issue;
    if (unit == Unit::kBarrier || unit == Unit::kNop) {
      const u64 released = std::min(s.end, until);
      if (touches(begin, released)) of.push_back({begin, released, index, true, unit_name(unit)});
      if (released == until) return;
      begin = released;
    }
    if (touches(begin, until)) of.push_back({begin, until, index, false, {}});
  };
  for (u32 i = 0; i < execution.spans.size(); ++i) {
    const Span& s = execution.spans[i];
    const u64 wait = s.issue - s.stalled;
    if (last[s.wave] != kNone) run(last[s.wave], wait);
    if (s.stalled > 0 && touches(wait, s.issue))
      states[s.wave].push_back({wait, s.issue, i, true, execution.stalls[s.stall]});
    last[s.wave] = i;
  }
  for (const u32 index : last)
    if (index != kNone) run(index, execution.spans[index].end);
  return states;
}

std::string_view stage_of(const Instruction& instruction) {
  return instruction.stage.empty() ? unit_name(instruction.unit) : std::string_view(instruction.stage);
}

std::string_view stage_family(const Instruction& instruction) {
  const std::string_view stage = stage_of(instruction);
  const std::size_t end = stage.find_first_of("@#");
  return end == 0 ? stage : stage.substr(0, end);
}

std::string wave_name(const Execution& execution, u32 wave) {
  const Wave& w = execution.waves[wave];
  const bool several = std::any_of(execution.waves.begin(), execution.waves.end(),
                                   [&](const Wave& other) { return other.workgroup != w.workgroup; });
  const auto first = std::find_if(execution.waves.begin(), execution.waves.end(), [&](const Wave& other) {
    return other.workgroup == w.workgroup && other.index == w.index;
  });
  std::string name = fmt::format("wave {}", w.index);
  if (several) name += fmt::format(" of workgroup ({}, {}, {})", w.workgroup[0], w.workgroup[1], w.workgroup[2]);
  // Copies of one workgroup share a compute unit when its like are what runs beside it.
  const auto copy = std::count_if(first, execution.waves.begin() + wave, [&](const Wave& other) {
    return other.workgroup == w.workgroup && other.index == w.index;
  });
  if (copy > 0) name += fmt::format(", copy {}", copy + 1);
  return name;
}

}  // namespace zyfa::sim::picture
