#include "schedules/attention/fp8.h"

#include "schedules/attention/forward_parts.h"
#include "schedules/attention/fp8_parts.h"
#include "schedules/attention/near.h"
#include "schedules/attention/query_blocks.h"
#include "schedules/dsl/tiles.h"

namespace zyfa::schedules {
namespace {

using fp8::Variant;

// Tiles of one half of an iteration (fp8_parts.h).
void add_half_tiles(std::vector<Tile>& tiles, const Variant& v, std::uint32_t half) {
  using enum TileLife;
  const auto name = [half](const char* tile) { return fp8::of_half(tile, half); };
  tiles.push_back(vector_tile(name("k_frag"), kIteration, 8, fp8::kKeyBlocks * v.steps()));
  tiles.push_back(vector_tile(name("v_frag"), kIteration, 8, forward::kOutputBlocks));
  tiles.push_back(vector_tile(name("score"), kIteration, 16, fp8::kKeyBlocks));
  tiles.push_back(vector_tile(name("prob"), kIteration, 8));
  if (v.uses_exponents()) tiles.push_back(vector_tile(name("prob_scale"), kIteration, 1));
  if (!v.always_exponents()) return;
  tiles.push_back(vector_tile(name("bias"), kIteration, 2));
  tiles.push_back(vector_tile(name("block_sum"), kIteration, 4));
}

// The reference of a row, and what blocks are measured against.
void add_reference_tiles(std::vector<Tile>& tiles, const Variant& v) {
  using enum TileLife;
  tiles.push_back(vector_tile("reference", kState, 1));
  tiles.push_back(vector_tile("block_max", kIteration, 1));
  tiles.push_back(scalar_tile("moved", kIteration, 2));
  if (v.folded()) {
    tiles.push_back(vector_tile("reference_limit", kState, 1));
    tiles.push_back(vector_tile("score_start", kState, 16));
    return;
  }
  tiles.push_back(vector_tile("height", kIteration, 1));
  tiles.push_back(vector_tile("height_start", kState, 1));
  tiles.push_back(vector_tile("bias_start", kState, 1));
  tiles.push_back(scalar_tile("height_limit", kConstant, 1));
  tiles.push_back(scalar_tile("scale_binades", kConstant, 1));
  if (v.integer()) tiles.push_back(vector_tile("score_start", kConstant, 16));
}

void add_operand_tiles(std::vector<Tile>& tiles, const std::string& operand) {
  using enum TileLife;
  tiles.push_back(scalar_tile(operand + "_desc", kState, 4));
  tiles.push_back(scalar_tile(operand + "_left", kState, 1));
  tiles.push_back(scalar_tile(operand + "_step", kState, 2));
  tiles.push_back(scalar_tile(operand + "_iterations", kState, 1));
  tiles.push_back(scalar_tile(operand + "_span", kState, 1));
  tiles.push_back(scalar_tile(operand + "_back", kConstant, 2));
  tiles.push_back(scalar_tile(operand + "_full", kConstant, 1));
  tiles.push_back(scalar_tile(operand + "_block", kConstant, 1));
  tiles.push_back(scalar_tile(operand + "_stride", kConstant, 1));
  tiles.push_back(scalar_tile(operand + "_lds", kConstant, 1));
  tiles.push_back(vector_tile(operand + "_offset", kConstant, 1, forward::kMaxLoadRounds));
}

std::vector<Tile> make_tiles(const Variant& v) {
  using enum TileLife;
  std::vector<Tile> tiles{
      lds_tile("k_a", fp8::key_tile(v).bytes()),
      lds_tile("k_b", fp8::key_tile(v).bytes()),
      lds_tile("v_a", fp8::value_tile().bytes()),
      lds_tile("v_b", fp8::value_tile().bytes()),
      vector_tile("out", kState, 16, forward::kOutputBlocks),
      vector_tile("row_sum", kState, v.sum_registers()),
      scalar_tile("far", kIteration, 1),
      scalar_tile("key_position", kState, 1),
      scalar_tile("mask_jump", kState, 1),
      scalar_tile("mask_limit", kConstant, 1),
      vector_tile("q", kConstant, 8, v.steps()),
      vector_tile("q_scale", kConstant, 1),
      vector_tile("unit_scale", kConstant, 1),
      vector_tile("ones", kConstant, v.dense_sum() ? 8 : 4),
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
  for (std::uint32_t half = 0; half < fp8::kHalves; ++half) add_half_tiles(tiles, v, half);
  add_reference_tiles(tiles, v);
  if (v.near) {
    tiles.push_back(scalar_tile("blocks", kConstant, 1));
    tiles.push_back(scalar_tile("near_from", kConstant, 1));
  }
  for (const char* operand : {"k", "v"}) add_operand_tiles(tiles, operand);
  return tiles;
}

void add_halves(std::vector<Access>& accesses, const char* tile, AccessKind kind) {
  for (std::uint32_t half = 0; half < fp8::kHalves; ++half) accesses.push_back({fp8::of_half(tile, half), kind});
}

std::vector<Access> maximum_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses{{"block_max", kWrite}, {"moved", kWrite}};
  add_halves(accesses, "score", kRead);
  if (v.folded()) {
    accesses.push_back({"reference_limit", kRead});
  } else {
    accesses.push_back({"height", kWrite});
    accesses.push_back({"height_start", kRead});
  }
  return accesses;
}

std::vector<Access> rescale_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses{
      {"block_max", kUpdate}, {"moved", kRead}, {"reference", kUpdate}, {"out", kUpdate}, {"row_sum", kUpdate}};
  if (v.folded() || !v.lean()) add_halves(accesses, "score", kUpdate);
  if (v.folded()) {
    accesses.push_back({"reference_limit", kUpdate});
    accesses.push_back({"score_start", kUpdate});
    return accesses;
  }
  for (const char* tile : {"height", "height_start", "bias_start"}) accesses.push_back({tile, kUpdate});
  return accesses;
}

std::vector<Access> exponent_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses;
  if (!v.uses_exponents()) return accesses;
  add_halves(accesses, "prob_scale", kWrite);
  if (v.two_paths()) {
    accesses.push_back({"block_max", kRead});
    accesses.push_back({"far", kWrite});
    add_halves(accesses, "score", kUpdate);
    return accesses;
  }
  accesses.push_back({"height", kUpdate});
  accesses.push_back({"bias_start", kRead});
  add_halves(accesses, "bias", kWrite);
  return accesses;
}

std::vector<Access> load_accesses(const std::string& operand, std::uint32_t half) {
  using enum AccessKind;
  if (half == 0) return {{fp8::of_half(operand, half), kWrite}, {operand + "_desc", kUpdate}};
  return {{fp8::of_half(operand, half), kWrite},
          {operand + "_desc", kUpdate},
          {operand + "_step", kUpdate},
          {operand + "_iterations", kUpdate},
          {operand + "_span", kUpdate}};
}

std::vector<Access> score_accesses(const Variant& v, std::uint32_t half) {
  using enum AccessKind;
  std::vector<Access> accesses{{fp8::of_half("k_frag", half), kRead}, {fp8::of_half("score", half), kWrite}};
  // Folded: the C operand of the products follows the reference.
  if (v.folded()) accesses.push_back({"score_start", kRead});
  return accesses;
}

std::vector<Access> probability_accesses(const Variant& v, std::uint32_t half) {
  using enum AccessKind;
  std::vector<Access> accesses{{fp8::of_half("score", half), kUpdate}, {fp8::of_half("prob", half), kWrite}};
  if (v.always_exponents()) accesses.push_back({fp8::of_half("bias", half), kRead});
  if (!v.always_exponents() && !v.folded()) accesses.push_back({"bias_start", kRead});
  return accesses;
}

std::vector<Access> output_accesses(const Variant& v, std::uint32_t half) {
  using enum AccessKind;
  std::vector<Access> accesses{
      {fp8::of_half("v_frag", half), kRead}, {fp8::of_half("prob", half), kRead}, {"out", kUpdate}};
  if (v.uses_exponents()) accesses.push_back({fp8::of_half("prob_scale", half), kRead});
  return accesses;
}

std::vector<Access> sum_accesses(const Variant& v, std::uint32_t half) {
  using enum AccessKind;
  std::vector<Access> accesses{{fp8::of_half("prob", half), kRead}};
  if (v.always_exponents()) {
    accesses.push_back({fp8::of_half("block_sum", half), kWrite});
    return accesses;
  }
  accesses.push_back({"row_sum", kUpdate});
  if (v.two_paths()) {
    accesses.push_back({"far", kRead});
    accesses.push_back({fp8::of_half("prob_scale", half), kRead});
  }
  return accesses;
}

std::vector<Access> add_sums_accesses(const Variant& v) {
  using enum AccessKind;
  std::vector<Access> accesses;
  if (!v.always_exponents()) return accesses;
  accesses.push_back({"row_sum", kUpdate});
  add_halves(accesses, "block_sum", kRead);
  add_halves(accesses, "prob_scale", kRead);
  return accesses;
}

std::vector<Stage> make_stages(const Variant& v) {
  using enum AccessKind;
  using enum Speculation;
  std::vector<Stage> stages;
  const auto add = [&](const char* name, std::vector<Access> accesses, void (*emit)(StageWriter&, const Variant&),
                       Speculation speculation = kHarmless) {
    stages.push_back({name, std::move(accesses), speculation, [v, emit](StageWriter& w) { emit(w, v); }});
  };
  const auto add_each = [&](const char* name, auto accesses, void (*emit)(StageWriter&, const Variant&, std::uint32_t),
                            Speculation speculation = kHarmless) {
    for (std::uint32_t half = 0; half < fp8::kHalves; ++half) {
      stages.push_back({fp8::of_half(name, half), accesses(half), speculation,
                        [v, emit, half](StageWriter& w) { emit(w, v, half); }});
    }
  };
  const auto pair = [](const char* from, AccessKind first, const char* to, AccessKind second) {
    return [=](std::uint32_t half) {
      return std::vector<Access>{{fp8::of_half(from, half), first}, {fp8::of_half(to, half), second}};
    };
  };
  add_each("load_k", [](std::uint32_t half) { return load_accesses("k", half); }, fp8::load_keys);
  add_each("load_v", [](std::uint32_t half) { return load_accesses("v", half); }, fp8::load_values);
  add_each("read_k", pair("k", kRead, "k_frag", kWrite), fp8::read_keys);
  add_each("qk", [&](std::uint32_t half) { return score_accesses(v, half); }, fp8::scores);
  add_each(
      "mask",
      [](std::uint32_t half) {
        return std::vector<Access>{
            {fp8::of_half("score", half), kUpdate}, {"key_position", kUpdate}, {"mask_jump", kUpdate}};
      },
      fp8::mask);
  add("max", maximum_accesses(v), fp8::row_maximum);
  add("rescale", rescale_accesses(v), fp8::move_reference);
  add("exponents", exponent_accesses(v), fp8::exponents);
  add_each("prob", [&](std::uint32_t half) { return probability_accesses(v, half); }, fp8::probabilities);
  add_each("read_v", pair("v", kRead, "v_frag", kWrite), fp8::read_values);
  // A block past the end adds zeros, but +0 would turn an output of -0 into +0: it must not run there.
  add_each("pv", [&](std::uint32_t half) { return output_accesses(v, half); }, fp8::accumulate, kNever);
  add_each("sum", [&](std::uint32_t half) { return sum_accesses(v, half); }, fp8::sum_half, kNever);
  add("add_sums", add_sums_accesses(v), fp8::add_sums, kNever);
  return stages;
}

QueryTiles query_tiles(const Variant& v) {
  QueryTiles tiles{
      .own = {"out", "row_sum", "far", "key_position", "mask_jump", "mask_limit", "q", "key_limit", "first_limit",
              "reference", "block_max", "moved", "reference_limit", "height", "height_start", "bias_start"},
      .agprs = {"out"}};
  if (v.folded()) tiles.own.insert("score_start");
  for (std::uint32_t half = 0; half < fp8::kHalves; ++half) {
    for (const char* tile : {"score", "prob", "prob_scale", "bias", "block_sum"}) {
      tiles.own.insert(fp8::of_half(tile, half));
    }
    for (const char* fragment : {"k_frag", "v_frag"}) tiles.agprs.insert(fp8::of_half(fragment, half));
  }
  return tiles;
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

Expected<Algorithm> attention_forward_fp8(const KernelSpec& spec, const Placement& placement) {
  if (Status status = check(spec); !status) return tl::unexpected(status.error());
  const Variant v{.head_dim = spec.head_dim_qk,
                  .mask = spec.mask,
                  .lse = spec.lse,
                  .scores = spec.element,
                  .probability = spec.probability,
                  .exponents = spec.block_exponents,
                  .form = spec.form,
                  .rounding = spec.byte_rounding,
                  .row_sum = row_sum_of(spec),
                  .near = spec.near_keys == NearKeys::kBf16};
  Algorithm algorithm;
  algorithm.name = "attention_forward_" + std::string(v.integer() ? "int8" : "fp8") + "_d" + std::to_string(v.head_dim);
  algorithm.tiles = make_tiles(v);
  algorithm.stages = make_stages(v);
  algorithm.legal_waves = {4, 8};
  if (v.near) {
    algorithm.name += "_near_bf16";
    algorithm.before = std::make_shared<const Algorithm>(
        near_attention({.head_dim = v.head_dim, .mask = v.mask, .sum_registers = v.sum_registers()}, placement));
  }
  split_queries(algorithm, query_tiles(v), placement, placement.loop);
  algorithm.setup = [v](StageWriter& w) { return fp8::setup(w, v); };
  algorithm.finish = [v](StageWriter& w) { fp8::finish(w, v); };
  return algorithm;
}

}  // namespace zyfa::schedules
