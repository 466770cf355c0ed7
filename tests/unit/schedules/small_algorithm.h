// load writes LDS tile "t", use reads it into register tile "r", sum adds r to state "s".
#pragma once

#include "schedules/dsl/algorithm.h"

namespace zyfa::schedules {

inline Algorithm small_algorithm() {
  Algorithm a;
  a.name = "small";
  a.legal_waves = {4, 8};
  a.tiles = {{"t", TileSpace::kLds, TileLife::kIteration, {}, 1000},
             {"r", TileSpace::kRegisters, TileLife::kIteration, {}, 0},
             {"s", TileSpace::kRegisters, TileLife::kState, {}, 0}};
  a.stages = {{"load", {{"t", AccessKind::kWrite}}, Speculation::kHarmless, {}},
              {"use", {{"t", AccessKind::kRead}, {"r", AccessKind::kWrite}}, Speculation::kHarmless, {}},
              {"sum", {{"r", AccessKind::kRead}, {"s", AccessKind::kUpdate}}, Speculation::kNever, {}}};
  return a;
}

}  // namespace zyfa::schedules
