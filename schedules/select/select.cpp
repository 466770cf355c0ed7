#include "schedules/select/select.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "schedules/select/placement.h"
#include "schedules/select/placements.h"
#include "schedules/select/tuned_rows.h"

namespace zyfa::schedules {
namespace {

// Executable references, and the quantiser.
constexpr std::array kHandWritten{
    Row{.name = "naive",
        .placement = kNaivePlacement,
        .use = RowUse::kByName,
        .element = ElementType::kBf16,
        .head_dim_qk = 128,
        .head_dim_v = 128,
        .near_keys = NearKeys::kSame},
    Row{.name = "fp8_naive",
        .placement = kFp8NaivePlacement,
        .use = RowUse::kByName,
        .element = {ElementType::kFp8E4M3, ElementType::kInt8},
        .head_dim_qk = {128, 192},
        .head_dim_v = 128,
        .near_keys = NearKeys::kSame},
    Row{.name = "fp8_near_naive",
        .placement = kFp8NearNaivePlacement,
        .use = RowUse::kByName,
        .element = {ElementType::kFp8E4M3, ElementType::kInt8},
        .head_dim_qk = {128, 192},
        .head_dim_v = 128,
        .near_keys = NearKeys::kBf16},
    Row{.name = "quantise_moments",
        .placement = kQuantiseMomentsPlacement,
        .family = Family::kQuantiseStatistics,
        .element = {ElementType::kFp8E4M3, ElementType::kInt8},
        .head_dim_qk = {128, 192},
        .smoothing = Smoothing::kMean},
    Row{.name = "quantise_statistics",
        .placement = kQuantiseStatisticsPlacement,
        .family = Family::kQuantiseStatistics,
        .element = {ElementType::kFp8E4M3, ElementType::kInt8},
        .head_dim_qk = {128, 192}},
    Row{.name = "quantise",
        .placement = kQuantisePlacement,
        .family = Family::kQuantise,
        .element = {ElementType::kFp8E4M3, ElementType::kInt8},
        .head_dim_qk = {128, 192}},
};

constexpr auto kTable = [] {
  std::array<Row, kTunedRows.size() + kHandWritten.size()> table{};
  Row* end = table.data();
  for (const TunedRow& tuned : kTunedRows) *end++ = tuned.row;
  for (const Row& row : kHandWritten) *end++ = row;
  // By insertion, which keeps the order of equals.
  for (std::size_t i = 1; i < table.size(); ++i) {
    for (std::size_t at = i; at > 0 && table[at - 1].specificity() < table[at].specificity(); --at) {
      std::swap(table[at - 1], table[at]);
    }
  }
  return table;
}();

std::string text_of(std::uint32_t value) { return std::to_string(value); }
template <typename Enum>
std::string text_of(Enum value) {
  return std::string(word_of(value));
}

template <typename T>
std::string differs(std::string_view field, const T& value, const OneOf<T>& wanted) {
  if (wanted.takes(value)) return {};
  std::string allowed;
  for (const T& one : wanted.values()) allowed += (allowed.empty() ? "" : " or ") + text_of(one);
  return std::string(field) + " is " + text_of(value) + ", the row takes " + allowed;
}

}  // namespace

std::string Row::mismatch(const KernelSpec& spec) const {
  for (std::string reason :
       {differs("family", spec.family, OneOf(family)), differs("element", spec.element, element),
        differs("head_dim_qk", spec.head_dim_qk, head_dim_qk), differs("head_dim_v", spec.head_dim_v, head_dim_v),
        differs("mask", spec.mask, mask), differs("lse", spec.lse, lse),
        differs("probability", spec.probability, probability),
        differs("block_exponents", spec.block_exponents, block_exponents), differs("form", spec.form, form),
        differs("near", spec.near_keys, near_keys), differs("smoothing", spec.smoothing, smoothing)}) {
    if (!reason.empty()) return reason;
  }
  return {};
}

std::string Row::mismatch(const KernelSpec& spec, SequenceLength wanted) const {
  std::string reason = mismatch(spec);
  return reason.empty() ? differs("length", wanted, length) : reason;
}

std::span<const Row> kernel_table() { return kTable; }

const Row* select_row(std::span<const Row> table, const KernelSpec& spec, SequenceLength length) {
  for (const Row& row : table) {
    if (row.use == RowUse::kSelected && row.mismatch(spec, length).empty()) return &row;
  }
  return nullptr;
}

std::vector<KernelSpec> variants_of(const Row& row) {
  const KernelSpec bf16{.mask = MaskKind::kCausal, .lse = LseOutput::kWritten};
  std::vector<KernelSpec> specs{bf16};
  const auto vary = [&specs]<typename T>(T KernelSpec::* field, std::initializer_list<T> values) {
    std::vector<KernelSpec> varied;
    for (const KernelSpec& spec : specs) {
      for (const T& value : values) (varied.emplace_back(spec)).*field = value;
    }
    specs = std::move(varied);
  };
  vary(&KernelSpec::element, {ElementType::kFp8E4M3, ElementType::kInt8});
  vary(&KernelSpec::head_dim_qk, {128U, 192U});
  vary(&KernelSpec::near_keys, {NearKeys::kSame, NearKeys::kBf16});
  vary(&KernelSpec::probability, {ProbabilityRule::kLean, ProbabilityRule::kExact});
  vary(&KernelSpec::form, {ScoreForm::kMultiplyAdd, ScoreForm::kFolded});
  vary(&KernelSpec::block_exponents, {BlockExponents::kUsed, BlockExponents::kNone});
  vary(&KernelSpec::row_sum, {RowSum::kSparse, RowSum::kDense});
  std::erase_if(specs, [&](const KernelSpec& spec) {
    const bool folds = spec.element == ElementType::kFp8E4M3 && spec.probability == ProbabilityRule::kLean;
    return !row.mismatch(spec).empty() || (spec.form == ScoreForm::kFolded && !folds);
  });
  if (row.mismatch(bf16).empty()) specs.push_back(bf16);
  return specs;
}

const Row* find_row(std::span<const Row> table, std::string_view name) {
  for (const Row& row : table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Expected<std::string> resolve_placement(std::string_view name_or_text) {
  const Row* row = find_row(kernel_table(), name_or_text);
  if (row == nullptr && name_or_text.find('=') == std::string_view::npos) {
    std::string names;
    for (const Row& known : kernel_table()) names += (names.empty() ? "" : ", ") + std::string(known.name);
    return make_error(ErrorCode::kScheduleError, "no schedule is named '" + std::string(name_or_text) +
                                                     "'; give one of " + names + ", or a placement in text form");
  }
  Expected<Placement> placement = parse_placement(row != nullptr ? row->placement : name_or_text);
  if (!placement) return tl::unexpected(placement.error());
  return unparse(*placement);
}

std::string_view name_of(Family family) {
  switch (family) {
    case Family::kAttentionForward:
      return "attention_forward";
    case Family::kQuantiseStatistics:
      return "quantise_statistics";
    case Family::kQuantise:
      return "quantise";
  }
  return "unknown";
}

std::string_view name_of(ElementType element) {
  switch (element) {
    case ElementType::kBf16:
      return "bf16";
    case ElementType::kFp8E4M3:
      return "fp8e4m3";
    case ElementType::kInt8:
      return "int8";
  }
  return "unknown";
}

std::string_view name_of(MaskKind mask) {
  switch (mask) {
    case MaskKind::kFull:
      return "full";
    case MaskKind::kCausal:
      return "causal";
  }
  return "unknown";
}

std::string_view name_of(LseOutput lse) {
  switch (lse) {
    case LseOutput::kNone:
      return "none";
    case LseOutput::kWritten:
      return "lse";
  }
  return "unknown";
}

std::string_view name_of(ProbabilityRule rule) {
  switch (rule) {
    case ProbabilityRule::kLean:
      return "lean";
    case ProbabilityRule::kExact:
      return "exact";
  }
  return "unknown";
}

std::string_view name_of(BlockExponents exponents) {
  switch (exponents) {
    case BlockExponents::kUsed:
      return "blocks";
    case BlockExponents::kNone:
      return "unscaled";
  }
  return "unknown";
}

std::string_view name_of(ScoreForm form) {
  switch (form) {
    case ScoreForm::kMultiplyAdd:
      return "fma";
    case ScoreForm::kFolded:
      return "folded";
  }
  return "unknown";
}

std::string_view name_of(NearKeys keys) {
  switch (keys) {
    case NearKeys::kSame:
      return "same";
    case NearKeys::kBf16:
      return "bf16";
  }
  return "unknown";
}

std::string_view name_of(RowSum sum) {
  switch (sum) {
    case RowSum::kAuto:
      return "auto";
    case RowSum::kSparse:
      return "sparse";
    case RowSum::kDense:
      return "dense";
  }
  return "unknown";
}

std::string_view name_of(ByteRounding rounding) {
  switch (rounding) {
    case ByteRounding::kNearest:
      return "nearest";
    case ByteRounding::kTruncate:
      return "truncate";
  }
  return "unknown";
}

std::string_view name_of(Operand operand) {
  switch (operand) {
    case Operand::kQuery:
      return "q";
    case Operand::kKey:
      return "k";
    case Operand::kValue:
      return "v";
  }
  return "unknown";
}

std::string_view name_of(Rotation rotation) {
  switch (rotation) {
    case Rotation::kNone:
      return "none";
    case Rotation::kHadamard:
      return "hadamard";
  }
  return "unknown";
}

std::string_view name_of(Smoothing smoothing) {
  switch (smoothing) {
    case Smoothing::kNone:
      return "none";
    case Smoothing::kMean:
      return "mean";
  }
  return "unknown";
}

std::string_view name_of(SequenceLength length) {
  switch (length) {
    case SequenceLength::kLong:
      return "long";
    case SequenceLength::kShort:
      return "short";
  }
  return "unknown";
}

std::string_view name_of(ScaleScope scope) {
  switch (scope) {
    case ScaleScope::kHead:
      return "head";
    case ScaleScope::kTensor:
      return "tensor";
  }
  return "unknown";
}

}  // namespace zyfa::schedules
