// The rows of the kernel table whose placements zyfa-jit tune finds. They stand in tuned_rows.inc, which is plain rows
// in C++: the compiler reads it, write_tuned_rows() writes it.
//
// The generator id leaves that file out: a placement is part of its kernel's key, so that new rows make no other kernel
// miss.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "schedules/select/select.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

struct TunedRow {
  Row row;
  std::string_view problem = {};  // text form, what the placement is looked for; empty: it is kept as it stands
  std::uint32_t tokens = 0;       // of the tuner's sample, 0 without a problem
  std::string_view note = {};     // for a reader of the file, kept by the writer
  bool operator==(const TunedRow&) const = default;
};

inline constexpr auto kTunedRows = std::to_array<TunedRow>({
#include "schedules/select/tuned_rows.inc"
});

// kScheduleError, naming the row: names sorted and unique, placements readable, canonical and of the row's name (or of
// the name of a row before it with the same text), no two rows that are chosen under the same conditions, a problem
// with its tokens, texts without quotes, backslashes and line breaks. Whether a placement is legal is the planner's to
// say.
[[nodiscard]] Status check_tuned_rows(std::span<const TunedRow> rows);

// The text of tuned_rows.inc: a pure function of the rows, which check_tuned_rows() must accept.
[[nodiscard]] Expected<std::string> write_tuned_rows(std::span<const TunedRow> rows);

}  // namespace zyfa::schedules
