// zyfa/tune.h: the tuned rows of the kernel table, and the file that holds them.
#include <algorithm>
#include <list>
#include <utility>

#include "schedules/select/placement.h"
#include "schedules/select/tuned_rows.h"
#include "zyfa/tune.h"

namespace zyfa {
namespace {

using schedules::TunedRow;

Expected<std::string> named(std::string_view placement, std::string_view name) {
  Expected<schedules::Placement> parsed = schedules::parse_placement(placement);
  if (!parsed) return tl::unexpected(std::move(parsed.error()));
  parsed->name = name;
  return unparse(*parsed);
}

}  // namespace

std::vector<TuneRow> tune_rows() {
  std::vector<TuneRow> rows;
  for (const TunedRow& tuned : schedules::kTunedRows) {
    if (tuned.problem.empty()) continue;
    rows.push_back({.name = std::string(tuned.row.name),
                    .problem = std::string(tuned.problem),
                    .tokens = tuned.tokens,
                    .placement = std::string(tuned.row.placement)});
  }
  return rows;
}

Expected<std::string> tuned_table(std::span<const TuneRow> rows) {
  std::vector<TunedRow> table(schedules::kTunedRows.begin(), schedules::kTunedRows.end());
  std::list<std::string> texts;  // that the table's rows point to
  for (const TuneRow& row : rows) {
    const auto tuned = std::ranges::find(table, row.name, [](const TunedRow& t) { return t.row.name; });
    if (tuned == table.end()) {
      return make_error(ErrorCode::kInvalidArgument, "the table has no tuned row '" + row.name + "'");
    }
    Expected<std::string> placement = named(row.placement, row.name);
    if (!placement) {
      return make_error(ErrorCode::kScheduleError, "tuned row '" + row.name + "': " + placement.error().message);
    }
    tuned->row.placement = texts.emplace_back(*std::move(placement));
  }
  for (auto tuned = table.begin(); tuned != table.end(); ++tuned) {
    const auto same = std::find_if(table.begin(), tuned, [&](const TunedRow& before) {
      return same_schedule(std::string(before.row.placement), std::string(tuned->row.placement));
    });
    if (same != tuned) {
      tuned->row.placement = same->row.placement;
    } else if (Expected<std::string> own = named(tuned->row.placement, tuned->row.name); own) {
      tuned->row.placement = texts.emplace_back(*std::move(own));  // what it shared has changed
    }
  }
  return write_tuned_rows(table);
}

bool same_schedule(const std::string& a, const std::string& b) {
  const Expected<std::string> first = named(a, "any"), second = named(b, "any");
  return first && second && *first == *second;
}

}  // namespace zyfa
