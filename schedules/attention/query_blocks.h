// A wave's queries in blocks of 32: one query a lane and its partner lane + 32. With two blocks (`queries=64` of the
// placement) a wave has a SIMD for itself and what a block alone has - scores, state, output - stands twice, named
// "score_a_q0" and "score_a_q1"; so do the stages that touch it. Each block decides for itself whether its reference
// moves, so that the bits are those of two waves of 32 queries.
//
// O and the fragments then lie in AGPRs: MFMAs and LDS reads take them as they are (gfx950-isa.md 5.4).
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "schedules/dsl/algorithm.h"
#include "schedules/dsl/stage_writer.h"
#include "schedules/select/placement.h"

namespace zyfa::schedules {

inline constexpr std::uint32_t kQueryBlock = 32;

[[nodiscard]] inline std::uint32_t query_blocks(const Placement& placement) { return placement.queries / kQueryBlock; }

// Ends the name of what block `block` has of its own; empty where there is one block.
[[nodiscard]] std::string query_suffix(const Placement& placement, std::uint32_t block);

// In setup and finish: emit(block) for each block, in which its tiles go by their plain names.
template <typename Emit>
void for_each_query_block(StageWriter& w, const Emit& emit) {
  for (std::uint32_t block = 0; block < query_blocks(w.placement()); ++block) {
    w.use_instance(query_suffix(w.placement(), block));
    emit(block);
  }
  w.use_instance({});
}

// Which tiles of an algorithm written for one block are what.
struct QueryTiles {
  std::set<std::string> own;    // of a block: instances of their own, and of every stage that touches one
  std::set<std::string> agprs;  // in AGPRs where there are two blocks
};

// The algorithm for the placement's blocks, from that for one. A read of fragments, otherwise one for all blocks, is
// one for each where the placement's `loop` has it so ("read_k_a_q0"), and then so are its fragments.
void split_queries(Algorithm& algorithm, const QueryTiles& tiles, const Placement& placement,
                   const std::vector<Phase>& loop);

}  // namespace zyfa::schedules
