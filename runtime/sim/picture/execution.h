// A predicted execution as plain data, which is all that the pictures know of it.
//
// Invariants (check() states them): spans are in order of issue, a wave's spans do not issue before the one ahead has
// waited to its end, and every index names something.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zyfa/error.h"

namespace zyfa::sim::picture {

enum class Unit : std::uint8_t {
  kMatrix,
  kValu,
  kTrans,
  kLds,
  kVmem,
  kScalarMemory,
  kScalar,
  kBarrier,
  kNop,
  kInternal
};
inline constexpr std::size_t kUnits = 10;
std::string_view unit_name(Unit unit);  // "MFMA", "VALU", ...

// From the mnemonic that begins `instruction`.
Unit unit_of(std::string_view instruction);

struct Instruction {
  std::uint64_t offset = 0;  // bytes from the kernel's entry
  Unit unit = Unit::kInternal;
  std::string text, stage, comment;  // stage and comment may be empty
};

struct Wave {
  std::array<std::uint32_t, 3> workgroup{};
  std::uint32_t index = 0;  // in its workgroup
  std::uint32_t simd = 0;
};

// One executed instruction; cycles.
struct Span {
  std::uint32_t wave = 0;         // in Execution::waves
  std::uint32_t instruction = 0;  // in Execution::instructions
  std::uint64_t issue = 0;
  std::uint64_t start = 0;    // its unit began on it
  std::uint64_t end = 0;      // its unit is free again; memory: the result is there; a barrier: released
  std::uint32_t stalled = 0;  // cycles that it waited before its issue
  std::uint32_t stall = 0;    // in Execution::stalls: the reason for most of them
};

struct Window {
  std::uint64_t begin = 0, end = 0;  // cycles, the end left out
  friend bool operator==(const Window&, const Window&) = default;
};

struct Execution {
  std::string kernel;
  std::vector<std::pair<std::string, std::string>> facts;  // name and value, for the header
  std::vector<Instruction> instructions;
  std::vector<Wave> waves;
  std::vector<std::string> stalls;
  std::vector<Span> spans;
  std::uint64_t cycles = 0;    // of the whole run
  std::optional<Window> loop;  // one trip of the steady state
};

// kInvalidArgument, with the first fault.
[[nodiscard]] Status check(const Execution& execution);

// `asked`, else the steady loop's trip, else everything; at most to the end of the run. kInvalidArgument: empty, or
// without a single span.
[[nodiscard]] Expected<Window> choose_window(const Execution& execution, const std::optional<Window>& asked);

// "from:to" in cycles. kInvalidArgument.
[[nodiscard]] Expected<Window> parse_window(std::string_view text);

// What a wave does from one cycle to the next state: these cover a wave's time without gap or overlap.
struct State {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t span = 0;  // waits for its issue, or has issued it
  bool waits = false;
  std::string_view reason;  // of a wait: "barrier", "lds wait", ...; into Execution
};

// The states of every wave that touch `window`, not cut to it.
std::vector<std::vector<State>> wave_states(const Execution& execution, const Window& window);

// The stage of an instruction, or its unit when it has none.
std::string_view stage_of(const Instruction& instruction);
// The same without the iteration and copy that a placement's stages carry: "qk" of "qk@2#1". Colours are by this.
std::string_view stage_family(const Instruction& instruction);

// "wave 3", and its workgroup when the waves are of several.
std::string wave_name(const Execution& execution, std::uint32_t wave);

}  // namespace zyfa::sim::picture
