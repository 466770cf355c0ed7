#include "schedules/attention/forward.h"

#include "schedules/attention/forward_parts.h"
#include "schedules/dsl/tiles.h"

namespace zyfa::schedules {
namespace {

std::vector<Tile> make_tiles() {
  using enum TileLife;
  std::vector<Tile> tiles{
      lds_tile("k", forward::kTileBytes),
      lds_tile("v", forward::kTileBytes),
      vector_tile("k_frag", kIteration, 4, forward::kKeyBlocks * forward::kHeadSteps),
      vector_tile("v_frag", kIteration, 4, forward::kHeadBlocks * forward::kKeySteps),
      vector_tile("score", kIteration, 16, forward::kKeyBlocks),
      vector_tile("block_max", kIteration, 1),
      scalar_tile("moved", kIteration, 2),
      vector_tile("prob", kIteration, 4, forward::kKeySteps),
      vector_tile("out", kState, 16, forward::kHeadBlocks),
      vector_tile("reference", kState, 1),
      vector_tile("reference_limit", kState, 1),
      vector_tile("row_sum", kState, 1),
      scalar_tile("key_position", kState, 1),
      vector_tile("q", kConstant, 4, forward::kHeadSteps),
      vector_tile("key_limit", kConstant, 1),
      vector_tile("k_read", kConstant, 1, forward::kHeadSteps),
      vector_tile("v_read", kConstant, 1, forward::kHeadBlocks),
      scalar_tile("wave_lds", kConstant, 1),
      scalar_tile("scale", kConstant, 1),
      scalar_tile("first_limit", kConstant, 1),
      scalar_tile("kernarg", kConstant, 2),
      scalar_tile("head", kConstant, 1),
      scalar_tile("batch", kConstant, 1),
      scalar_tile("row0", kConstant, 1),
      scalar_tile("query_length", kConstant, 1),
      scalar_tile("o_args", kConstant, 8),
      scalar_tile("lse_args", kConstant, 6),
  };
  for (const std::string operand : {"k", "v"}) {
    tiles.push_back(scalar_tile(operand + "_desc", kState, 4));
    tiles.push_back(scalar_tile(operand + "_left", kState, 1));
    tiles.push_back(scalar_tile(operand + "_stride", kConstant, 1));
    tiles.push_back(vector_tile(operand + "_offset", kConstant, 1));
  }
  return tiles;
}

std::vector<Stage> make_stages() {
  using enum AccessKind;
  using enum Speculation;
  return {
      {"load_k", {{"k", kWrite}, {"k_desc", kUpdate}, {"k_left", kUpdate}}, kHarmless, forward::load_keys},
      {"load_v", {{"v", kWrite}, {"v_desc", kUpdate}, {"v_left", kUpdate}}, kHarmless, forward::load_values},
      {"read_k", {{"k", kRead}, {"k_frag", kWrite}}, kHarmless, forward::read_keys},
      {"qk", {{"k_frag", kRead}, {"score", kWrite}}, kHarmless, forward::scores},
      {"mask", {{"score", kUpdate}, {"key_position", kUpdate}}, kHarmless, forward::mask},
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
       [](StageWriter& w) { forward::move_reference(w, forward::kReferenceSlack); }},
      {"exp",
       {{"score", kRead}, {"reference", kRead}, {"row_sum", kUpdate}, {"prob", kWrite}},
       kHarmless,
       forward::probabilities},
      {"read_v", {{"v", kRead}, {"v_frag", kWrite}}, kHarmless, forward::read_values},
      // A block past the end adds zeros, but +0 would turn an output of -0 into +0: it must not run there.
      {"pv", {{"v_frag", kRead}, {"prob", kRead}, {"out", kUpdate}}, kNever, forward::accumulate},
  };
}

}  // namespace

Expected<Algorithm> attention_forward(const KernelSpec& spec) {
  if (spec.family != Family::kAttentionForward || spec.element != ElementType::kBf16 || spec.head_dim_qk != 128 ||
      spec.head_dim_v != 128) {
    return make_error(ErrorCode::kUnsupported, "attention forward has head dims " + std::to_string(spec.head_dim_qk) +
                                                   "/" + std::to_string(spec.head_dim_v) +
                                                   "; this family builds BF16 with head dims 128/128");
  }
  const forward::Shape shape{spec.mask, spec.lse};
  Algorithm algorithm;
  algorithm.name = "attention_forward_bf16_d128";
  algorithm.tiles = make_tiles();
  algorithm.stages = make_stages();
  algorithm.legal_waves = {4, 8};
  algorithm.setup = [shape](StageWriter& w) { return forward::setup(w, shape); };
  algorithm.finish = [shape](StageWriter& w) { forward::finish(w, shape); };
  return algorithm;
}

}  // namespace zyfa::schedules
