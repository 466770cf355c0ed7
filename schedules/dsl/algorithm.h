// WHAT is computed: tiles, and stages that read and write them once per iteration of one loop. No order, no placement.
// A kernel may run one algorithm before another (Algorithm::before): two loops over shared state.
//
// A tile is data of one iteration (a key block in LDS, a score block in registers) or loop-carried state (the output
// accumulator). Stages are listed in the order a sequential reader would run them; the accesses declared here are all
// that the planner knows, so a stage must declare every tile that it touches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "jit/isa/reg.h"

namespace zyfa::schedules {

class StageWriter;

enum class TileSpace : std::uint8_t { kLds, kRegisters };

// kIteration tiles may have several copies (Placement::buffers); kState tiles carry values from iteration to iteration;
// kConstant tiles are written by setup() alone and need no declared access.
enum class TileLife : std::uint8_t { kIteration, kState, kConstant };

struct TupleShape {
  jit::Bank bank = jit::Bank::kVgpr;
  std::uint16_t registers = 1;
  std::uint16_t tuples = 1;
};

struct Tile {
  std::string name;
  TileSpace space = TileSpace::kRegisters;
  TileLife life = TileLife::kIteration;
  TupleShape shape;             // kRegisters: identical tuples
  std::uint32_t lds_bytes = 0;  // kLds: bytes of one copy
};

enum class AccessKind : std::uint8_t { kRead, kWrite, kUpdate };

struct Access {
  std::string tile;
  AccessKind kind;
};

// Whether a stage may run for iterations past the last one (as a lead makes it do): its effects then are never seen.
enum class Speculation : std::uint8_t { kNever, kHarmless };

struct Stage {
  std::string name;
  std::vector<Access> accesses;
  Speculation speculation = Speculation::kHarmless;
  std::function<void(StageWriter&)> emit;
};

// Where a rest of setup stands: under the latency of the first loads and before anything waits for them, or, because it
// would wait itself, as late as its stages allow.
enum class RestPlace : std::uint8_t { kUnderFirstLoads, kLate };

// What setup() leaves for later; it may leave a rest in turn. Before the loop in any case, and before the first stage
// that is none of `harmless_before`.
struct SetupRest {
  std::vector<std::string> harmless_before;     // stages that need nothing of it
  std::function<SetupRest(StageWriter&)> emit;  // or empty
  RestPlace place = RestPlace::kUnderFirstLoads;
};

struct Algorithm {
  std::string name;
  std::vector<Tile> tiles;
  std::vector<Stage> stages;               // in sequential order
  std::vector<std::uint32_t> legal_waves;  // workgroup sizes the stages can divide their loads by
  // Straight-line code before and after the loop. setup() or its rest must write the iteration count to trips() and,
  // when the placement has two groups, the wave number to wave().
  std::function<SetupRest(StageWriter&)> setup;
  std::function<void(StageWriter&)> finish;
  // A loop that runs first, or null. State and constant tiles of equal name and shape are the same registers in both;
  // its LDS is given up when it ends. It has no finish: this algorithm's setup() follows it.
  std::shared_ptr<const Algorithm> before;

  [[nodiscard]] const Tile* find_tile(std::string_view tile) const;
  [[nodiscard]] const Stage* find_stage(std::string_view stage) const;
};

}  // namespace zyfa::schedules
