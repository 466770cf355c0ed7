// Short forms of the tiles that algorithms list.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "schedules/dsl/algorithm.h"

namespace zyfa::schedules {

inline Tile lds_tile(std::string name, std::uint32_t bytes) {
  return {std::move(name), TileSpace::kLds, TileLife::kIteration, {}, bytes};
}

inline Tile register_tile(std::string name, TileLife life, jit::Bank bank, std::uint32_t registers,
                          std::uint32_t tuples) {
  return {std::move(name),
          TileSpace::kRegisters,
          life,
          {bank, static_cast<std::uint16_t>(registers), static_cast<std::uint16_t>(tuples)},
          0};
}

inline Tile vector_tile(std::string name, TileLife life, std::uint32_t registers, std::uint32_t tuples = 1) {
  return register_tile(std::move(name), life, jit::Bank::kVgpr, registers, tuples);
}

inline Tile scalar_tile(std::string name, TileLife life, std::uint32_t registers) {
  return register_tile(std::move(name), life, jit::Bank::kSgpr, registers, 1);
}

}  // namespace zyfa::schedules
