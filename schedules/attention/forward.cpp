#include "schedules/attention/forward.h"

#include <functional>

#include "schedules/attention/forward_parts.h"
#include "schedules/attention/query_blocks.h"
#include "schedules/dsl/tiles.h"

namespace zyfa::schedules {
namespace {

std::vector<Tile> make_tiles() {
  using enum TileLife;
  std::vector<Tile> tiles{
      lds_tile("k", forward::kIterationBlocks * forward::kBlockBytes),
      lds_tile("v_first", forward::kBlockBytes),
      lds_tile("v_rest", (forward::kIterationBlocks - 1) * forward::kBlockBytes),
      vector_tile("score", kIteration, 16, forward::kIterationBlocks),
      vector_tile("block_max", kIteration, 1),
      scalar_tile("moved", kIteration, 2),
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
  for (std::uint32_t block = 0; block < forward::kIterationBlocks; ++block) {
    tiles.push_back(vector_tile(forward::of_block("k_frag", block), kIteration, 4, forward::kHeadSteps));
    tiles.push_back(
        vector_tile(forward::of_block("v_frag", block), kIteration, 4, forward::kBlockSteps * forward::kHeadBlocks));
    tiles.push_back(vector_tile(forward::of_block("prob", block), kIteration, 4, forward::kBlockSteps));
  }
  for (const std::string loaded : {"k", "v_first", "v_rest"}) {
    tiles.push_back(scalar_tile(loaded + "_desc", kState, 4));
    tiles.push_back(scalar_tile(loaded + "_left", kState, 1));
    tiles.push_back(scalar_tile(loaded + "_stride", kConstant, 1));
  }
  for (const std::string operand : {"k", "v"}) tiles.push_back(vector_tile(operand + "_offset", kConstant, 1));
  return tiles;
}

// A stage for each block of the iteration, named forward::of_block(name, block).
void add_block_stages(std::vector<Stage>& stages, const char* name,
                      const std::function<std::vector<Access>(std::uint32_t)>& accesses,
                      void (*emit)(StageWriter&, std::uint32_t), Speculation speculation = Speculation::kHarmless) {
  for (std::uint32_t block = 0; block < forward::kIterationBlocks; ++block) {
    stages.push_back({forward::of_block(name, block), accesses(block), speculation,
                      [emit, block](StageWriter& w) { emit(w, block); }});
  }
}

using Accesses = std::vector<Access>;

std::vector<Stage> make_stages() {
  using enum AccessKind;
  using enum Speculation;
  std::vector<Stage> stages{
      {"load_k", {{"k", kWrite}, {"k_desc", kUpdate}, {"k_left", kUpdate}}, kHarmless, forward::load_keys},
      {"load_v_first",
       {{"v_first", kWrite}, {"v_first_desc", kUpdate}, {"v_first_left", kUpdate}},
       kHarmless,
       forward::load_first_values},
      {"load_v_rest",
       {{"v_rest", kWrite}, {"v_rest_desc", kUpdate}, {"v_rest_left", kUpdate}},
       kHarmless,
       forward::load_other_values},
  };
  add_block_stages(
      stages, "read_k",
      [](std::uint32_t block) { return Accesses{{"k", kRead}, {forward::of_block("k_frag", block), kWrite}}; },
      forward::read_keys);
  add_block_stages(
      stages, "qk",
      [](std::uint32_t block) { return Accesses{{forward::of_block("k_frag", block), kRead}, {"score", kWrite}}; },
      forward::scores);
  const std::vector<Stage> reference{
      {"mask",
       {{"score", kUpdate}, {"key_position", kUpdate}},
       kHarmless,
       [](StageWriter& w) { forward::mask(w, forward::kIterationBlocks); }},
      {"max",
       {{"score", kRead}, {"reference_limit", kRead}, {"block_max", kWrite}, {"moved", kWrite}},
       kHarmless,
       [](StageWriter& w) { forward::row_maximum_of(w, forward::kIterationBlocks); }},
      {"rescale",
       {{"block_max", kRead},
        {"moved", kRead},
        {"reference", kUpdate},
        {"reference_limit", kUpdate},
        {"row_sum", kUpdate},
        {"out", kUpdate}},
       kHarmless,
       [](StageWriter& w) { forward::move_reference(w, forward::kReferenceSlack); }},
  };
  stages.insert(stages.end(), reference.begin(), reference.end());
  add_block_stages(
      stages, "exp",
      [](std::uint32_t block) {
        return Accesses{
            {"score", kRead}, {"reference", kRead}, {"row_sum", kUpdate}, {forward::of_block("prob", block), kWrite}};
      },
      [](StageWriter& w, std::uint32_t block) {
        forward::block_probabilities(
            w, block, {w.reg(forward::of_block("prob", block), 0), w.reg(forward::of_block("prob", block), 1)});
      });
  add_block_stages(
      stages, "read_v",
      [](std::uint32_t block) {
        return Accesses{{block == 0 ? "v_first" : "v_rest", kRead}, {forward::of_block("v_frag", block), kWrite}};
      },
      forward::read_values);
  // A block past the end adds zeros, but +0 would turn an output of -0 into +0: it must not run there.
  add_block_stages(
      stages, "pv",
      [](std::uint32_t block) {
        return Accesses{
            {forward::of_block("v_frag", block), kRead}, {forward::of_block("prob", block), kRead}, {"out", kUpdate}};
      },
      forward::accumulate, kNever);
  return stages;
}

QueryTiles query_tiles() {
  QueryTiles tiles{.own = {"score", "block_max", "moved", "out", "reference", "reference_limit", "row_sum",
                           "key_position", "q", "key_limit", "first_limit"},
                   .agprs = {"out"}};
  for (std::uint32_t block = 0; block < forward::kIterationBlocks; ++block) {
    tiles.own.insert(forward::of_block("prob", block));
    for (const char* fragment : {"k_frag", "v_frag"}) tiles.agprs.insert(forward::of_block(fragment, block));
  }
  return tiles;
}

}  // namespace

Expected<Algorithm> attention_forward(const KernelSpec& spec, const Placement& placement) {
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
  split_queries(algorithm, query_tiles(), placement, placement.loop);
  algorithm.setup = [shape](StageWriter& w) { return forward::setup(w, shape); };
  algorithm.finish = [shape](StageWriter& w) { forward::finish(w, shape); };
  return algorithm;
}

}  // namespace zyfa::schedules
