#include "schedules/attention/query_blocks.h"

#include <algorithm>
#include <utility>

namespace zyfa::schedules {
namespace {

constexpr std::uint32_t kSimds = 4;  // of a CU: waves that have all 512 registers each

bool places(const std::vector<Phase>& loop, const std::string& stage) {
  for (const Phase& phase : loop) {
    for (const PhaseItem& item : phase.items) {
      for (const Stream& stream : item.streams) {
        for (const StageRef& ref : stream.stages) {
          if (ref.stage == stage) return true;
        }
      }
    }
  }
  return false;
}

// A stage that touches nothing, because this variant of the algorithm needs nothing of it, belongs to blocks too.
bool belongs_to_blocks(const Stage& stage, const std::set<std::string>& own) {
  return stage.accesses.empty() || std::any_of(stage.accesses.begin(), stage.accesses.end(),
                                               [&](const Access& access) { return own.contains(access.tile); });
}

// Tiles that blocks have of their own, with the fragments that the placement reads for each.
std::set<std::string> own_tiles(const Algorithm& algorithm, const QueryTiles& tiles, const Placement& placement,
                                const std::vector<Phase>& loop) {
  std::set<std::string> own = tiles.own;
  for (const Stage& stage : algorithm.stages) {
    if (belongs_to_blocks(stage, tiles.own) || !places(loop, stage.name + query_suffix(placement, 0))) continue;
    for (const Access& access : stage.accesses) {
      const Tile* tile = algorithm.find_tile(access.tile);
      if (tile->space == TileSpace::kRegisters && tile->life == TileLife::kIteration) own.insert(access.tile);
    }
  }
  return own;
}

Stage instance_of(const Stage& stage, const std::set<std::string>& own, const std::string& suffix) {
  Stage instance = stage;
  instance.name += suffix;
  for (Access& access : instance.accesses) {
    if (own.contains(access.tile)) access.tile += suffix;
  }
  instance.emit = [emit = stage.emit, suffix](StageWriter& w) {
    w.use_instance(suffix);
    emit(w);
    w.use_instance({});
  };
  return instance;
}

}  // namespace

std::string query_suffix(const Placement& placement, std::uint32_t block) {
  return query_blocks(placement) == 1 ? std::string() : "_q" + std::to_string(block);
}

void split_queries(Algorithm& algorithm, const QueryTiles& tiles, const Placement& placement,
                   const std::vector<Phase>& loop) {
  const std::uint32_t blocks = query_blocks(placement);
  if (blocks == 1) return;
  const std::set<std::string> own = own_tiles(algorithm, tiles, placement, loop);
  std::vector<Tile> split;
  for (Tile& tile : algorithm.tiles) {
    if (tiles.agprs.contains(tile.name)) tile.shape.bank = jit::Bank::kAgpr;
    if (!own.contains(tile.name)) {
      split.push_back(std::move(tile));
      continue;
    }
    for (std::uint32_t block = 0; block < blocks; ++block) {
      split.push_back(tile);
      split.back().name += query_suffix(placement, block);
    }
  }
  std::vector<Stage> stages;
  for (Stage& stage : algorithm.stages) {
    if (!belongs_to_blocks(stage, own)) {
      stages.push_back(std::move(stage));
      continue;
    }
    for (std::uint32_t block = 0; block < blocks; ++block) {
      stages.push_back(instance_of(stage, own, query_suffix(placement, block)));
    }
  }
  algorithm.tiles = std::move(split);
  algorithm.stages = std::move(stages);
  algorithm.legal_waves = {kSimds};
}

}  // namespace zyfa::schedules
