#include "schedules/select/tuned_rows.h"

#include <algorithm>
#include <concepts>
#include <utility>

#include "schedules/select/placement.h"

namespace zyfa::schedules {
namespace {

constexpr std::string_view kHead =
    "// Tuned rows of the kernel table, by name, as tuned_rows.h reads and writes them. docs/schedules.md, \"The tuned "
    "rows\".\n";

tl::unexpected<Error> refuse(const TunedRow& row, std::string_view why) {
  return make_error(ErrorCode::kScheduleError, "tuned row '" + std::string(row.row.name) + "': " + std::string(why));
}

bool same_conditions(Row a, Row b) {
  for (Row* row : {&a, &b}) row->name = row->placement = {};
  return a == b;
}

bool fits_a_literal(std::string_view text) { return text.find_first_of("\"\\\n\r") == std::string_view::npos; }

// The first of the rows with this placement: rows that share a text share its kernels.
std::string_view owner_of(std::span<const TunedRow> rows, std::string_view placement) {
  return std::ranges::find(rows, placement, [](const TunedRow& tuned) { return tuned.row.placement; })->row.name;
}

Status check_row(std::span<const TunedRow> rows, std::size_t index) {
  const TunedRow& tuned = rows[index];
  const Row& row = tuned.row;
  Expected<Placement> placement = parse_placement(row.placement);
  if (!placement) return refuse(tuned, placement.error().message);
  if (unparse(*placement) != row.placement) return refuse(tuned, "its placement is not in canonical form");
  if (placement->name != owner_of(rows, row.placement)) {
    return refuse(tuned, "its placement is named '" + placement->name + "'");
  }
  if (tuned.problem.empty() != (tuned.tokens == 0)) return refuse(tuned, "a problem needs tokens, and they it");
  for (const std::string_view text : {row.name, tuned.problem, tuned.note}) {
    if (!fits_a_literal(text)) return refuse(tuned, "a text holds a quote, a backslash or a line break");
  }
  if (index == 0) return {};
  if (rows[index - 1].row.name == row.name) return refuse(tuned, "the name is there twice");
  if (rows[index - 1].row.name > row.name) return refuse(tuned, "rows must be sorted by name");
  for (const TunedRow& before : rows.first(index)) {
    if (row.use == RowUse::kSelected && same_conditions(before.row, row)) {
      return refuse(tuned, "it has the conditions of '" + std::string(before.row.name) + "'");
    }
  }
  return {};
}

// Names of the constants, in their order.
std::string identifier(RowUse use) { return use == RowUse::kByName ? "RowUse::kByName" : "RowUse::kSelected"; }
std::string identifier(Family family) {
  constexpr std::array kNames{"kAttentionForward", "kQuantiseStatistics", "kQuantise"};
  return std::string("Family::") + kNames[static_cast<std::size_t>(family)];
}
std::string identifier(ElementType element) {
  constexpr std::array kNames{"kBf16", "kFp8E4M3", "kInt8"};
  return std::string("ElementType::") + kNames[static_cast<std::size_t>(element)];
}
std::string identifier(std::uint32_t number) { return std::to_string(number); }
std::string identifier(MaskKind mask) { return mask == MaskKind::kCausal ? "MaskKind::kCausal" : "MaskKind::kFull"; }
std::string identifier(LseOutput lse) {
  return lse == LseOutput::kWritten ? "LseOutput::kWritten" : "LseOutput::kNone";
}
std::string identifier(ProbabilityRule rule) {
  return rule == ProbabilityRule::kExact ? "ProbabilityRule::kExact" : "ProbabilityRule::kLean";
}
std::string identifier(BlockExponents exponents) {
  return exponents == BlockExponents::kNone ? "BlockExponents::kNone" : "BlockExponents::kUsed";
}
std::string identifier(ScoreForm form) {
  return form == ScoreForm::kFolded ? "ScoreForm::kFolded" : "ScoreForm::kMultiplyAdd";
}
std::string identifier(NearKeys keys) { return keys == NearKeys::kBf16 ? "NearKeys::kBf16" : "NearKeys::kSame"; }
std::string identifier(Smoothing smoothing) {
  return smoothing == Smoothing::kMean ? "Smoothing::kMean" : "Smoothing::kNone";
}

std::string identifier(SequenceLength length) {
  return length == SequenceLength::kShort ? "SequenceLength::kShort" : "SequenceLength::kLong";
}

class RowText {
 public:
  std::string of(const TunedRow& tuned) && {
    const Row& row = tuned.row;
    text_ =
        "TunedRow{\n    .row = {.name = " + quoted(row.name) + ",\n            .placement = " + lines(row.placement);
    if (row.use != RowUse::kSelected) field("use", identifier(row.use));
    if (row.family != Family::kAttentionForward) field("family", identifier(row.family));
    condition("element", row.element);
    condition("head_dim_qk", row.head_dim_qk);
    condition("head_dim_v", row.head_dim_v);
    condition("mask", row.mask);
    condition("lse", row.lse);
    condition("probability", row.probability);
    condition("block_exponents", row.block_exponents);
    condition("form", row.form);
    condition("near_keys", row.near_keys);
    condition("smoothing", row.smoothing);
    condition("length", row.length);
    text_ += "},\n";
    if (!tuned.problem.empty()) {
      text_ += "    .problem = " + quoted(tuned.problem) + ",\n    .tokens = " + std::to_string(tuned.tokens) + ",\n";
    }
    if (!tuned.note.empty()) text_ += "    .note = " + quoted(tuned.note) + ",\n";
    return std::move(text_) + "},\n";
  }

 private:
  static std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

  // A clause or phase a line.
  static std::string lines(std::string_view placement) {
    std::string text;
    while (!placement.empty()) {
      const std::size_t end = std::min(placement.find_first_of(";|"), placement.size() - 1) + 1;
      if (!text.empty()) text += "\n                         ";
      text += quoted(placement.substr(0, end));
      placement.remove_prefix(end);
    }
    return text;
  }

  void field(std::string_view name, const std::string& value) {
    text_.append(",\n            .").append(name).append(" = ").append(value);
  }

  template <typename T>
  void condition(std::string_view name, const OneOf<T>& wanted) {
    if (!wanted.has_value()) return;
    std::string values;
    for (const T& value : wanted.values()) values += (values.empty() ? "" : ", ") + identifier(value);
    field(name, wanted.values().size() == 1 ? values : "{" + values + "}");
  }

  std::string text_;
};

}  // namespace

Status check_tuned_rows(std::span<const TunedRow> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (Status status = check_row(rows, i); !status) return status;
  }
  return {};
}

Expected<std::string> write_tuned_rows(std::span<const TunedRow> rows) {
  if (Status status = check_tuned_rows(rows); !status) return tl::unexpected(std::move(status.error()));
  std::string text(kHead);
  for (const TunedRow& row : rows) text += RowText().of(row);
  return text;
}

}  // namespace zyfa::schedules
