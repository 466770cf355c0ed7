// The kernel table: which placement serves which kernel. Pure data and pure functions, no timing, so that every rank of
// a job chooses alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/select/kernel_spec.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

enum class RowUse : std::uint8_t {
  kSelected,  // chosen by select_row()
  kByName,    // only when its name is asked for: executable references
};

// What the placement is for (zyfa/problem.h). No part of a KernelSpec: a kernel takes any length, and rows of either
// may share one.
enum class SequenceLength : std::uint8_t { kLong, kShort };

// A condition of a row: the values it takes. Empty takes any.
template <typename T>
class OneOf {
 public:
  constexpr OneOf() = default;
  constexpr OneOf(T value) : values_{value}, count_(1) {}
  constexpr OneOf(T first, T second) : values_{first, second}, count_(2) {}

  [[nodiscard]] constexpr bool has_value() const { return count_ != 0; }
  [[nodiscard]] constexpr std::span<const T> values() const { return std::span(values_).first(count_); }
  [[nodiscard]] constexpr bool takes(T value) const {
    return count_ == 0 || values_[0] == value || (count_ == 2 && values_[1] == value);
  }
  bool operator==(const OneOf&) const = default;

 private:
  std::array<T, 2> values_{};
  std::size_t count_ = 0;
};

struct Row {
  std::string_view name;
  std::string_view placement = {};  // text form (placement.h)
  RowUse use = RowUse::kSelected;
  Family family = Family::kAttentionForward;
  OneOf<ElementType> element = {};
  OneOf<std::uint32_t> head_dim_qk = {}, head_dim_v = {};
  OneOf<MaskKind> mask = {};
  OneOf<LseOutput> lse = {};
  OneOf<ProbabilityRule> probability = {};
  OneOf<BlockExponents> block_exponents = {};
  OneOf<ScoreForm> form = {};
  OneOf<NearKeys> near_keys = {};
  OneOf<Smoothing> smoothing = {};
  OneOf<SequenceLength> length = {};  // of the selection alone: asked for by name, the row serves any length

  [[nodiscard]] constexpr unsigned specificity() const {  // number of conditions
    return unsigned{element.has_value()} + unsigned{head_dim_qk.has_value()} + unsigned{head_dim_v.has_value()} +
           unsigned{mask.has_value()} + unsigned{lse.has_value()} + unsigned{probability.has_value()} +
           unsigned{block_exponents.has_value()} + unsigned{form.has_value()} + unsigned{near_keys.has_value()} +
           unsigned{smoothing.has_value()} + unsigned{length.has_value()};
  }
  bool operator==(const Row&) const = default;

  // Empty when the row takes the spec, else the first condition that does not hold: "head_dim_qk is 64, row wants 128".
  [[nodiscard]] std::string mismatch(const KernelSpec& spec) const;
  [[nodiscard]] std::string mismatch(const KernelSpec& spec, SequenceLength wanted) const;  // as a selection has it
};

// The tuned rows (tuned_rows.h) and those written by hand. Most specific first; equal specificity in order of
// preference. Names are unique.
[[nodiscard]] std::span<const Row> kernel_table();

// The first row of use kSelected that takes the spec (its placement is ignored) and the length, or nullptr.
[[nodiscard]] const Row* select_row(std::span<const Row> table, const KernelSpec& spec,
                                    SequenceLength length = SequenceLength::kLong);
// The attention kernels that differ in their stages and that the row serves: one mask, with LSE.
[[nodiscard]] std::vector<KernelSpec> variants_of(const Row& row);
[[nodiscard]] const Row* find_row(std::span<const Row> table, std::string_view name);

// Canonical placement text of a row's name or of a placement in text form. kScheduleError when it is neither.
[[nodiscard]] Expected<std::string> resolve_placement(std::string_view name_or_text);

// Words of the text forms.
[[nodiscard]] std::string_view name_of(Family family);
[[nodiscard]] std::string_view name_of(ElementType element);
[[nodiscard]] std::string_view name_of(MaskKind mask);
[[nodiscard]] std::string_view name_of(LseOutput lse);
[[nodiscard]] std::string_view name_of(ProbabilityRule rule);
[[nodiscard]] std::string_view name_of(BlockExponents exponents);
[[nodiscard]] std::string_view name_of(ScoreForm form);
[[nodiscard]] std::string_view name_of(NearKeys keys);
[[nodiscard]] std::string_view name_of(RowSum sum);
[[nodiscard]] std::string_view name_of(ByteRounding rounding);
[[nodiscard]] std::string_view name_of(Operand operand);
[[nodiscard]] std::string_view name_of(Rotation rotation);
[[nodiscard]] std::string_view name_of(Smoothing smoothing);
[[nodiscard]] std::string_view name_of(ScaleScope scope);
[[nodiscard]] std::string_view name_of(SequenceLength length);

// What messages say for a value: its name, or what a problem line has instead (`near=fp8`).
template <typename Enum>
[[nodiscard]] std::string_view word_of(Enum value) {
  return name_of(value);
}
[[nodiscard]] inline std::string_view word_of(NearKeys keys) { return keys == NearKeys::kSame ? "fp8" : name_of(keys); }

}  // namespace zyfa::schedules
