#include "runtime/kernel_key.h"

#include <initializer_list>
#include <limits>
#include <utility>

#include "schedules/select/argument_layout.h"
#include "schedules/select/select.h"
#include "zyfa_generator_id.h"

namespace zyfa {
namespace {

template <typename Enum>
bool take_word(const cache::KeyField& field, std::initializer_list<Enum> values, Enum& to) {
  for (Enum value : values) {
    if (field.kind == cache::FieldKind::kString && field.text == schedules::name_of(value)) {
      to = value;
      return true;
    }
  }
  return false;
}

bool take_number(const cache::KeyField& field, std::uint32_t& to) {
  if (field.kind != cache::FieldKind::kU64 || field.number > std::numeric_limits<std::uint32_t>::max()) return false;
  to = static_cast<std::uint32_t>(field.number);
  return true;
}

bool take_text(const cache::KeyField& field, std::string& to) {
  if (field.kind != cache::FieldKind::kString) return false;
  to = field.text;
  return true;
}

// Fields this version does not name are of no interest here: keys are compared as bytes.
bool take_field(const cache::KeyField& field, KeyContents& to) {
  using schedules::BlockExponents, schedules::ByteRounding, schedules::NearKeys, schedules::Operand;
  using schedules::ElementType, schedules::Family, schedules::LseOutput, schedules::MaskKind;
  using schedules::ProbabilityRule, schedules::Rotation, schedules::RowSum, schedules::ScaleScope, schedules::ScoreForm;
  using schedules::Smoothing;
  schedules::KernelSpec& spec = to.spec;
  if (field.name == "family")
    return take_word(field, {Family::kAttentionForward, Family::kQuantiseStatistics, Family::kQuantise}, spec.family);
  if (field.name == "element") {
    return take_word(field, {ElementType::kBf16, ElementType::kFp8E4M3, ElementType::kInt8}, spec.element);
  }
  if (field.name == "head_dim_qk") return take_number(field, spec.head_dim_qk);
  if (field.name == "head_dim_v") return take_number(field, spec.head_dim_v);
  if (field.name == "mask") return take_word(field, {MaskKind::kFull, MaskKind::kCausal}, spec.mask);
  if (field.name == "lse") return take_word(field, {LseOutput::kNone, LseOutput::kWritten}, spec.lse);
  if (field.name == "probability") {
    return take_word(field, {ProbabilityRule::kLean, ProbabilityRule::kExact}, spec.probability);
  }
  if (field.name == "block_exponents") {
    return take_word(field, {BlockExponents::kUsed, BlockExponents::kNone}, spec.block_exponents);
  }
  if (field.name == "form") return take_word(field, {ScoreForm::kMultiplyAdd, ScoreForm::kFolded}, spec.form);
  if (field.name == "near_keys") return take_word(field, {NearKeys::kSame, NearKeys::kBf16}, spec.near_keys);
  if (field.name == "row_sum") return take_word(field, {RowSum::kAuto, RowSum::kSparse, RowSum::kDense}, spec.row_sum);
  if (field.name == "byte_rounding") {
    return take_word(field, {ByteRounding::kNearest, ByteRounding::kTruncate}, spec.byte_rounding);
  }
  if (field.name == "operand") {
    return take_word(field, {Operand::kQuery, Operand::kKey, Operand::kValue}, spec.operand);
  }
  if (field.name == "rotation") return take_word(field, {Rotation::kNone, Rotation::kHadamard}, spec.rotation);
  if (field.name == "smoothing") return take_word(field, {Smoothing::kNone, Smoothing::kMean}, spec.smoothing);
  if (field.name == "scales") return take_word(field, {ScaleScope::kHead, ScaleScope::kTensor}, spec.scales);
  if (field.name == "feeds") return take_word(field, {ScoreForm::kMultiplyAdd, ScoreForm::kFolded}, spec.feeds);
  if (field.name == "schedule") return take_text(field, spec.placement);
  if (field.name == "generator") return take_text(field, to.generator);
  return true;
}

}  // namespace

std::string_view generator_id() { return kGeneratorId; }

KeyEnvironment KeyEnvironment::this_build() {
  return {.schema = kKeySchema,
          .target = std::string(kTarget),
          .code_object_version = kCodeObjectVersion,
          .argument_layout = schedules::argument_layout(schedules::Family::kAttentionForward),
          .quantise_layout = schedules::argument_layout(schedules::Family::kQuantise),
          .generator = kGeneratorId};
}

Expected<cache::Key> make_key(const schedules::KernelSpec& spec, const KeyEnvironment& environment) {
  const bool attends = spec.family == schedules::Family::kAttentionForward;
  return cache::KeyBuilder(environment.schema)
      .add_string("target", environment.target)
      .add_u64("code_object_version", environment.code_object_version)
      .add_string("family", schedules::name_of(spec.family))
      .add_string("element", schedules::name_of(spec.element))
      .add_u64("head_dim_qk", spec.head_dim_qk)
      .add_u64("head_dim_v", spec.head_dim_v)
      .add_string("mask", schedules::name_of(spec.mask))
      .add_string("lse", schedules::name_of(spec.lse))
      .add_string("probability", schedules::name_of(spec.probability))
      .add_string("block_exponents", schedules::name_of(spec.block_exponents))
      .add_string("form", schedules::name_of(spec.form))
      .add_string("near_keys", schedules::name_of(spec.near_keys))
      .add_string("row_sum", schedules::name_of(spec.row_sum))
      .add_string("byte_rounding", schedules::name_of(spec.byte_rounding))
      .add_string("operand", schedules::name_of(spec.operand))
      .add_string("rotation", schedules::name_of(spec.rotation))
      .add_string("smoothing", schedules::name_of(spec.smoothing))
      .add_string("scales", schedules::name_of(spec.scales))
      .add_string("feeds", schedules::name_of(spec.feeds))
      .add_string("schedule", spec.placement)
      .add_u64("argument_layout", attends ? environment.argument_layout : environment.quantise_layout)
      .add_string("generator", environment.generator)
      .build();
}

Expected<KeyContents> read_key(std::string_view key_bytes) {
  Expected<cache::DecodedKey> decoded = cache::decode_key(cache::as_bytes(key_bytes));
  if (!decoded) return tl::unexpected(std::move(decoded.error()));
  KeyContents contents;
  for (const cache::KeyField& field : decoded->fields) {
    if (!take_field(field, contents)) {
      return make_error(ErrorCode::kCorruptData,
                        "a kernel key holds " + cache::to_string(field) + ", which this version does not know");
    }
  }
  if (contents.spec.placement.empty() || contents.generator.empty()) {
    return make_error(ErrorCode::kCorruptData, "a kernel key lacks its schedule or generator field");
  }
  return contents;
}

}  // namespace zyfa
