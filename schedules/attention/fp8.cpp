#include "schedules/attention/fp8.h"

#include "schedules/attention/forward_parts.h"
#include "schedules/attention/fp8_parts.h"
#include "schedules/attention/near.h"
#include "schedules/dsl/tiles.h"

namespace zyfa::schedules {
namespace {

using fp8::Variant;

std::vector<Tile> make_tiles(const Variant& v) {
  using enum TileLife;
  std::vector<Tile> tiles{
      lds_tile("k", fp8::key_tile(v).bytes()),
      lds_tile("v", fp8::value_tile().bytes()),
      vector_tile("k_frag", kIteration, 8, fp8::kKeyBlocks * v.steps()),
      vector_tile("v_frag", kIteration, 8, forward::kOutputBlocks),
      vector_tile("score", kIteration, 16, fp8::kKeyBlocks),
      vector_tile("block_max", kIteration, 1),
      scalar_tile("moved", kIteration, 2),
      scalar_tile("far", kIteration, 1),
      scalar_tile("scaled", kIteration, 1),
      vector_tile("prob", kIteration, 8),
      vector_tile("prob_scale", kIteration, 1),
      vector_tile("block_sum", kIteration, 4),
      vector_tile("out", kState, 16, forward::kOutputBlocks),
      vector_tile("reference", kState, 1),
      vector_tile("reference_limit", kState, 1),
      vector_tile("bias", kState, 2),
      scalar_tile("moves", kState, 1),
      scalar_tile("moves_seen", kIteration, 1),
      vector_tile("row_sum", kState, v.sum_registers()),
      scalar_tile("key_position", kState, 1),
      scalar_tile("mask_jump", kState, 1),
      scalar_tile("mask_limit", kConstant, 1),
      vector_tile("score_start", v.folded() ? kState : kConstant, 16),
      vector_tile("q", kConstant, 8, v.steps()),
      vector_tile("q_scale", kConstant, 1),
      vector_tile("unit_scale", kConstant, 1),
      vector_tile("ones", kConstant, v.always_exponents() ? 8 : 4),
      vector_tile("ones_index", kConstant, 1),
      vector_tile("integer_zero", kConstant, 1),
      vector_tile("key_limit", kConstant, 1),
      vector_tile("k_read", kConstant, 1, 4),
      vector_tile("v_read", kConstant, 1, forward::kOutputBlocks),
      scalar_tile("scale", kConstant, 2),
      scalar_tile("v_descale", kConstant, 1),
      scalar_tile("first_limit", kConstant, 1),
      scalar_tile("minus_units", kConstant, 1),
      scalar_tile("near_least", kConstant, 1),
      scalar_tile("nothing", kConstant, 1),
      scalar_tile("kernarg", kConstant, 2),
      scalar_tile("head", kConstant, 1),
      scalar_tile("batch", kConstant, 1),
      scalar_tile("row0", kConstant, 1),
      scalar_tile("query_length", kConstant, 1),
      scalar_tile("o_args", kConstant, 8),
      scalar_tile("lse_args", kConstant, 6),
  };
  tiles.push_back(vector_tile("factor", kIteration, 1));
  tiles.back().starts_at_zero = true;
  if (v.near) {
    tiles.push_back(scalar_tile("blocks", kConstant, 1));
    tiles.push_back(scalar_tile("near_from", kConstant, 1));
  }
  for (const std::string operand : {"k", "v"}) {
    tiles.push_back(scalar_tile(operand + "_desc", kState, 4));
    tiles.push_back(scalar_tile(operand + "_left", kState, 1));
    tiles.push_back(scalar_tile(operand + "_step", kState, 2));
    tiles.push_back(scalar_tile(operand + "_blocks", kState, 1));
    tiles.push_back(scalar_tile(operand + "_span", kState, 1));
    tiles.push_back(scalar_tile(operand + "_back", kConstant, 2));
    tiles.push_back(scalar_tile(operand + "_full", kConstant, 1));
    tiles.push_back(scalar_tile(operand + "_stride", kConstant, 1));
    tiles.push_back(scalar_tile(operand + "_lds", kConstant, 1));
    tiles.push_back(vector_tile(operand + "_offset", kConstant, 1, forward::kMaxLoadRounds));
  }
  return tiles;
}

std::vector<Access> rescale_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses{{"block_max", v.folded() || !v.lean() ? kUpdate : kRead},
                               {"moved", kRead},
                               {"reference", kUpdate},
                               {"reference_limit", kUpdate},
                               {"scaled", kWrite},
                               {"factor", kWrite}};
  if (v.folded() || !v.lean()) accesses.push_back({"score", kUpdate});
  if (v.folded()) {
    accesses.push_back({"score_start", kUpdate});
    accesses.push_back({"moves", kUpdate});
  } else if (!v.uses_exponents()) {
    accesses.push_back({"bias", kUpdate});
  }
  return accesses;
}

std::vector<Access> probability_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses{{"score", kUpdate}, {"block_max", kRead}, {"reference", kRead}, {"prob", kWrite}};
  if (v.uses_exponents()) accesses.push_back({"prob_scale", kWrite});
  if (v.always_exponents()) accesses.push_back({"bias", kUpdate});
  if (!v.always_exponents() && !v.folded()) accesses.push_back({"bias", kRead});
  if (v.two_paths()) {
    accesses.push_back({"far", kWrite});
  }
  return accesses;
}

std::vector<Access> sum_accesses(const Variant& v) {
  using enum AccessKind;
  if (v.always_exponents()) return {{"prob", kRead}, {"block_sum", kWrite}};
  std::vector<Access> accesses{{"prob", kRead}, {"row_sum", kUpdate}};
  if (v.two_paths()) {
    accesses.push_back({"far", kRead});
    accesses.push_back({"prob_scale", kRead});
  }
  return accesses;
}

std::vector<Access> load_accesses(const std::string& operand) {
  using enum AccessKind;
  return {{operand, kWrite},
          {operand + "_desc", kUpdate},
          {operand + "_step", kUpdate},
          {operand + "_blocks", kUpdate},
          {operand + "_span", kUpdate}};
}

// Folded: the C operand of the products follows the reference.
std::vector<Access> score_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses{{"k_frag", kRead}, {"score", kWrite}};
  if (v.folded()) {
    accesses.push_back({"score_start", kRead, Timing::kGuess});
    accesses.push_back({"moves", kRead, Timing::kGuess});
    accesses.push_back({"moves_seen", kWrite});
  }
  return accesses;
}

std::vector<Access> mask_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses{{"score", kUpdate}, {"key_position", kUpdate}, {"mask_jump", kUpdate}};
  if (v.folded()) {
    for (const char* tile : {"k_frag", "score_start", "moves", "moves_seen"}) {
      accesses.push_back({tile, kRead, Timing::kRepair});
    }
  }
  return accesses;
}

std::vector<Access> output_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses{
      {"v_frag", kRead}, {"prob", kRead}, {"scaled", kRead}, {"factor", kRead}, {"out", kUpdate}};
  if (v.uses_exponents()) accesses.push_back({"prob_scale", kRead});
  if (!v.always_exponents()) accesses.push_back({"row_sum", kUpdate});
  return accesses;
}

std::vector<Access> add_sum_accesses(const Variant& v) {
  using enum AccessKind;
  if (!v.always_exponents()) return {};
  return {{"block_sum", kRead}, {"prob_scale", kRead}, {"scaled", kRead}, {"factor", kRead}, {"row_sum", kUpdate}};
}

std::vector<Stage> make_stages(const Variant& v) {
  using enum AccessKind;
  using enum Speculation;
  const auto with = [v](void (*emit)(StageWriter&, const Variant&)) {
    return [v, emit](StageWriter& w) { emit(w, v); };
  };
  return {
      {"load_k", load_accesses("k"), kHarmless, with(fp8::load_keys)},
      {"load_v", load_accesses("v"), kHarmless, fp8::load_values},
      {"read_k", {{"k", kRead}, {"k_frag", kWrite}}, kHarmless, with(fp8::read_keys)},
      {"qk", score_accesses(v), kHarmless, with(fp8::scores)},
      {"mask", mask_accesses(v), kHarmless, with(fp8::mask)},
      {"max",
       {{"score", kRead}, {"reference_limit", kRead}, {"block_max", kWrite}, {"moved", kWrite}},
       kHarmless,
       with(fp8::row_maximum)},
      {"rescale", rescale_accesses(v), kHarmless, with(fp8::move_reference)},
      {"prob", probability_accesses(v), kHarmless, with(fp8::probabilities)},
      {"read_v", {{"v", kRead}, {"v_frag", kWrite}}, kHarmless, fp8::read_values},
      // A block past the end adds zeros, but +0 would turn an output of -0 into +0: it must not run there.
      {"pv", output_accesses(v), kNever, with(fp8::accumulate)},
      {"sum", sum_accesses(v), kNever, with(fp8::sum_block)},
      {"add_sum", add_sum_accesses(v), kNever, with(fp8::add_block_sum)},
  };
}

tl::unexpected<Error> refuse(const std::string& what) {
  return make_error(ErrorCode::kUnsupported, "8-bit attention: " + what);
}

Status check(const KernelSpec& spec) {
  if (spec.family != Family::kAttentionForward || spec.element == ElementType::kBf16) {
    return refuse("the kernel is of another family");
  }
  if ((spec.head_dim_qk != 128 && spec.head_dim_qk != 192) || spec.head_dim_v != 128) {
    return refuse("head dims " + std::to_string(spec.head_dim_qk) + "/" + std::to_string(spec.head_dim_v) +
                  " are not built; 128/128 and 192/128 are");
  }
  if (spec.form == ScoreForm::kFolded) {
    if (spec.probability != ProbabilityRule::kLean) return refuse("the folded form is of lean probabilities only");
    if (spec.element != ElementType::kFp8E4M3) return refuse("the folded form needs e4m3 scores: int8 has no scale");
  }
  return {};
}

}  // namespace

Expected<Algorithm> attention_forward_fp8(const KernelSpec& spec) {
  if (Status status = check(spec); !status) return tl::unexpected(status.error());
  const Variant v{.head_dim = spec.head_dim_qk,
                  .mask = spec.mask,
                  .lse = spec.lse,
                  .scores = spec.element,
                  .probability = spec.probability,
                  .exponents = spec.block_exponents,
                  .form = spec.form,
                  .rounding = spec.byte_rounding,
                  .near = spec.near_keys == NearKeys::kBf16};
  Algorithm algorithm;
  algorithm.name = "attention_forward_" + std::string(v.integer() ? "int8" : "fp8") + "_d" + std::to_string(v.head_dim);
  algorithm.tiles = make_tiles(v);
  algorithm.stages = make_stages(v);
  algorithm.legal_waves = {4, 8};
  if (v.near) {
    algorithm.name += "_near_bf16";
    algorithm.before = std::make_shared<const Algorithm>(
        near_attention({.head_dim = v.head_dim, .mask = v.mask, .sum_registers = v.sum_registers()}));
  }
  algorithm.setup = [v](StageWriter& w) { return fp8::setup(w, v); };
  algorithm.finish = [v](StageWriter& w) { fp8::finish(w, v); };
  return algorithm;
}

}  // namespace zyfa::schedules
