// A placement: WHEN and WHERE the stages of an algorithm run. Plain data with a canonical text form.
//
// Grammar (whitespace around tokens and line breaks are free; '#' starts a comment to the end of the line):
// clang-format off
//   placement := clause { ';' clause }
//   clause    := 'name=' ident | 'waves=' int | 'queries=' ( '32' | '64' ) | 'groups=' int | 'trip=' int
//              | 'buffers=' counts | 'before_buffers=' counts
//              | 'before=' loop | 'loop=' loop | 'prio=' int { ',' int } | 'math=' ( 'packed' | 'scalar' )
//   counts    := tile ':' int { ',' tile ':' int }
//   loop      := phase { '|' phase }                    'before=': the loop of an algorithm that runs first
//   phase     := item { ',' item }                      phases are separated by a workgroup barrier
//   item      := stage                                  alone
//              | '{' stream { '/' stream } '}'          streams interleaved instruction by instruction
//              | '{=' stream { '/' stream } '}'         the others spread over the first one's matrix cycles (dsl/pace.h)
//   stream    := stage { ',' stage } [ ':' int ]        the weight, default 1: instructions taken per round; of '{=' the
//                                                       haste: done after 1 / weight of the matrix cycles
//   stage     := ident [ '@' int ]                      lead: on loop trip t the stage works on iteration trip * t + lead
// clang-format on
// Canonical form: clauses in the order above, no spaces; queries=32, a trip, weights and buffers of 1, leads of 0 and
// math=packed left out; buffers sorted by tile name. unparse(parse(t)) is canonical, and parse(unparse(x)) = x for
// every placement that a plan accepts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "zyfa/error.h"

namespace zyfa::schedules {

struct StageRef {
  std::string stage;
  std::uint32_t lead = 0;
  bool operator==(const StageRef&) const = default;
};

struct Stream {
  std::vector<StageRef> stages;
  std::uint32_t weight = 1;
  bool operator==(const Stream&) const = default;
};

// One stream: a single stage of weight 1. Several: interleaved, each with its stages in order.
struct PhaseItem {
  std::vector<Stream> streams;
  bool paced = false;
  bool operator==(const PhaseItem&) const = default;
};

struct Phase {
  std::vector<PhaseItem> items;
  bool operator==(const Phase&) const = default;
};

// Whether fp32 arithmetic on pairs may use packed instructions, which take cycles from the matrix pipe
// (mi355x-timing.md 1.3). The results are the same.
enum class VectorMath : std::uint8_t { kPacked, kScalar };

struct Placement {
  std::string name;
  std::uint32_t waves = 4;                       // of a workgroup: 1, 2, 4 or 8
  std::uint32_t queries = 32;                    // of a wave: 32 or 64 (attention/query_blocks.h)
  std::uint32_t groups = 1;                      // wave groups; group g runs g phases behind group 0
  std::uint32_t trip = 1;                        // iterations of a trip through `loop`: 1 or 2
  std::map<std::string, std::uint32_t> buffers;  // tile -> copies (1..8); absent = 1
  std::vector<Phase> loop;
  // Of the algorithm that runs before this one, empty when there is none. Its phases run at the first priority, one
  // iteration a trip.
  std::map<std::string, std::uint32_t> before_buffers;
  std::vector<Phase> before;
  std::vector<std::uint32_t> priorities;  // s_setprio per phase, or empty
  VectorMath math = VectorMath::kPacked;
  bool operator==(const Placement&) const = default;
};

// kScheduleError: names the position and what was expected there.
[[nodiscard]] Expected<Placement> parse_placement(std::string_view text);
[[nodiscard]] std::string unparse(const Placement& placement);

}  // namespace zyfa::schedules
