#include "schedules/attention/near.h"

#include "schedules/attention/near_parts.h"
#include "schedules/dsl/tiles.h"

namespace zyfa::schedules {
namespace {

// The reference stays the row's maximum: the 8-bit loop that follows places its range by it.
constexpr float kSlack = 0.0F;

std::vector<Tile> make_tiles(const NearShape& shape) {
  using enum TileLife;
  std::vector<Tile> tiles{
      lds_tile("k", near::key_tile(shape).bytes()),
      lds_tile("v", near::value_tile().bytes()),
      vector_tile("score", kIteration, 16, forward::kKeyBlocks),
      vector_tile("block_max", kIteration, 1),
      scalar_tile("moved", kIteration, 2),
      vector_tile("prob", kIteration, 4, forward::kKeySteps),
      vector_tile("out", kState, 16, forward::kHeadBlocks),
      vector_tile("reference", kState, 1),
      vector_tile("reference_limit", kState, 1),
      vector_tile("row_sum", kState, shape.sum_registers),
      scalar_tile("key_position", kState, 1),
      scalar_tile("mask_jump", kState, 1),
      vector_tile("near_q", kConstant, 4, shape.head_dim / 16),
      vector_tile("key_limit", kConstant, 1),
      vector_tile("near_k_read", kConstant, 1, 8),
      vector_tile("near_v_read", kConstant, 1, forward::kHeadBlocks),
      scalar_tile("scale", kConstant, 1),
      scalar_tile("blocks", kConstant, 1),
      scalar_tile("near_from", kConstant, 1),
      scalar_tile("first_limit", kConstant, 1),
      scalar_tile("kernarg", kConstant, 2),
      scalar_tile("head", kConstant, 1),
      scalar_tile("batch", kConstant, 1),
      scalar_tile("row0", kConstant, 1),
      scalar_tile("query_length", kConstant, 1),
  };
  for (const std::string operand : {"k", "v"}) {
    tiles.push_back(scalar_tile(operand + "_desc", kState, 4));
    tiles.push_back(scalar_tile(operand + "_left", kState, 1));
    tiles.push_back(scalar_tile(operand + "_jump", kState, 1));
    tiles.push_back(scalar_tile(operand + "_stride", kConstant, 1));
    tiles.push_back(scalar_tile(operand + "_lds", kConstant, 1));
    tiles.push_back(vector_tile(operand + "_offset", kConstant, 1, forward::kMaxLoadRounds));
  }
  return tiles;
}

std::vector<Stage> make_stages(const NearShape& shape) {
  using enum AccessKind;
  using enum Speculation;
  return {
      {"load_k",
       {{"k", kWrite}, {"k_desc", kUpdate}, {"k_left", kUpdate}, {"k_jump", kUpdate}},
       kHarmless,
       [shape](StageWriter& w) { near::load_keys(w, shape); }},
      {"load_v",
       {{"v", kWrite}, {"v_desc", kUpdate}, {"v_left", kUpdate}, {"v_jump", kUpdate}},
       kHarmless,
       near::load_values},
      {"qk", {{"k", kRead}, {"score", kWrite}}, kHarmless, [shape](StageWriter& w) { near::scores(w, shape); }},
      {"mask", {{"score", kUpdate}, {"key_position", kUpdate}, {"mask_jump", kUpdate}}, kHarmless, near::mask},
      {"max",
       {{"score", kRead}, {"reference_limit", kRead}, {"block_max", kWrite}, {"moved", kWrite}},
       kHarmless,
       forward::row_maximum},
      {"rescale",
       {{"block_max", kRead},
        {"moved", kRead},
        {"reference", kUpdate},
        {"reference_limit", kUpdate},
        {"row_sum", kUpdate},
        {"out", kUpdate}},
       kHarmless,
       [](StageWriter& w) { forward::move_reference(w, kSlack); }},
      {"prob",
       {{"score", kRead}, {"reference", kRead}, {"row_sum", kUpdate}, {"prob", kWrite}},
       kHarmless,
       forward::probabilities},
      // As in forward.cpp: a block past the end must not turn an output of -0 into +0.
      {"pv", {{"v", kRead}, {"prob", kRead}, {"out", kUpdate}}, kNever, near::accumulate},
  };
}

}  // namespace

Algorithm near_attention(const NearShape& shape, const Placement& placement) {
  Algorithm algorithm;
  algorithm.name = "near_attention_bf16_d" + std::to_string(shape.head_dim);
  algorithm.tiles = make_tiles(shape);
  algorithm.stages = make_stages(shape);
  algorithm.legal_waves = {4, 8};
  split_queries(algorithm,
                {.own = {"score", "block_max", "moved", "prob", "out", "reference", "reference_limit", "row_sum",
                         "key_position", "mask_jump", "near_q", "key_limit", "first_limit"},
                 .agprs = {"out"}},
                placement, placement.before);
  algorithm.setup = [shape](StageWriter& w) { return near::setup(w, shape); };
  return algorithm;
}

}  // namespace zyfa::schedules
