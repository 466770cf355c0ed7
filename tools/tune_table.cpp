#include "tools/tune_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/io/file.h"
#include "tools/tune_log.h"
#include "tools/tune_walk.h"

namespace zyfa::tools {
namespace {

// Empty when there is no such file.
Expected<std::optional<std::string>> text_of(const std::string& path) {
  const Expected<std::vector<std::byte>> bytes = io::read_file(path);
  if (!bytes) {
    if (bytes.error().code == ErrorCode::kNotFound) {
      return std::optional<std::string>();
    }
    return tl::unexpected<Error>(bytes.error());
  }
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

Expected<std::vector<TuneRow>> rows_of(const std::vector<std::string>& names) {
  std::vector<TuneRow> all = tune_rows();
  std::vector<std::string> known;
  for (const TuneRow& row : all) {
    known.push_back(row.name);
  }
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("no tuned row is named '{}'; there are {}", name, fmt::join(known, ", ")));
    }
  }
  if (!names.empty()) {
    std::erase_if(all, [&](const TuneRow& row) { return std::ranges::find(names, row.name) == names.end(); });
  }
  return all;
}

std::size_t first_difference(std::string_view a, std::string_view b) {
  const auto at = std::ranges::mismatch(a, b).in1;
  return 1 + static_cast<std::size_t>(std::count(a.begin(), at, '\n'));
}

// A file that somebody has changed since this program was built would lose that.
Status check_file(const std::string& path, const std::string& now) {
  const Expected<std::optional<std::string>> text = text_of(path);
  if (!text) {
    return tl::unexpected<Error>(text.error());
  }
  const Expected<std::string> built = tuned_table({});
  if (!built) {
    return tl::unexpected<Error>(built.error());
  }
  if (!*text || **text == *built || **text == now) {
    return {};
  }
  return make_error(
      ErrorCode::kInvalidArgument,
      fmt::format("{} line {}: differs from the rows that this zyfa-jit was built with; build it anew, or "
                  "restore the file",
                  path, first_difference(**text, *built)));
}

struct RowWalk {
  TuneRow row;
  Walk walk;
};

// The row, and what the table has with another number of queries a wave.
Expected<std::vector<std::string>> starts_of(const AttentionProblem& problem, const TuneRow& row) {
  Expected<std::vector<std::string>> starts = tune_starts(problem);
  if (starts && std::ranges::find(*starts, row.placement) == starts->end()) {
    starts->insert(starts->begin(), row.placement);
  }
  return starts;
}

Expected<RowWalk> walk_row(const TableRequest& request, const TuneRow& row) {
  const Expected<AttentionProblem> problem = parse_problem(row.problem);
  if (!problem) {
    return tl::unexpected<Error>(problem.error());
  }
  WalkRequest one{.problem = *problem,
                  .tune = request.tune,
                  .log = (std::filesystem::path(request.logs) / (row.name + ".jsonl")).string(),
                  .title = row.name + ": "};
  one.tune.tokens = row.tokens;
  one.tune.row = row.name;
  const Expected<std::optional<std::vector<std::string>>> begun = logged_starts(one.log);
  if (!begun) {
    return tl::unexpected<Error>(begun.error());
  }
  Expected<std::vector<std::string>> starts = *begun ? **begun : starts_of(*problem, row);
  if (!starts) {
    return tl::unexpected<Error>(starts.error());
  }
  one.tune.starts = *std::move(starts);
  bool seen = false;
  one.step = [&](const TuneStep& step) { seen = seen || same_schedule(step.trial.placement, row.placement); };
  Expected<Walk> walked = walk(one);
  if (!walked) {
    return tl::unexpected<Error>(walked.error());
  }
  if (!seen && !walked->result.ended) {
    return make_error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: its walk did not try what row '{}' has now; give another folder of logs", one.log, row.name));
  }
  return RowWalk{row, *std::move(walked)};
}

OrderedJson table_json(const TableRequest& request, const std::vector<RowWalk>& walks) {
  OrderedJson rows = OrderedJson::array();
  for (const RowWalk& one : walks) {
    rows.push_back({{"row", one.row.name},
                    {"problem", one.row.problem},
                    {"tokens", one.row.tokens},
                    {"trials", one.walk.result.trials},
                    {"from_log", one.walk.known},
                    {"start", to_json(one.walk.result.start)},
                    {"best", to_json(one.walk.result.best)}});
  }
  return {{"file", request.file}, {"rows", rows}};
}

void print_table(const TableRequest& request, const std::vector<RowWalk>& walks) {
  for (const RowWalk& one : walks) {
    const TuneResult& r = one.walk.result;
    fmt::print("{:<24} {}, {} tokens: {}\n{:<24} start {}, {} trials, {} from the log\n", one.row.name, one.row.problem,
               one.row.tokens, cycles_text(r.best), "", cycles_text(r.start), r.trials, one.walk.known);
  }
  fmt::print("{:<24} {}\n", "written", request.file);
  fmt::print("{:<24} cycles are predicted by the model of docs/performance-model.md, measured on no device\n", "note");
}

Expected<std::vector<RowWalk>> walk_rows(const TableRequest& request) {
  const Expected<std::vector<TuneRow>> rows = rows_of(request.rows);
  if (!rows) {
    return tl::unexpected<Error>(rows.error());
  }
  std::error_code failed;
  std::filesystem::create_directories(request.logs, failed);
  if (failed) {
    return make_error(ErrorCode::kIoError, request.logs + ": " + failed.message());
  }
  std::vector<RowWalk> walks;
  for (const TuneRow& row : *rows) {
    Expected<RowWalk> one = walk_row(request, row);
    if (!one) {
      return tl::unexpected<Error>(one.error());
    }
    if (one->walk.result.ended) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("interrupted in row '{}': nothing was written; the same command goes on from the "
                                    "logs in {}",
                                    row.name, request.logs));
    }
    walks.push_back(*std::move(one));
  }
  return walks;
}

Status write(const TableRequest& request, const std::vector<RowWalk>& walks) {
  std::vector<TuneRow> winners;
  for (const RowWalk& one : walks) {
    winners.push_back(one.row);
    winners.back().placement = one.walk.result.best.placement;
  }
  const Expected<std::string> text = tuned_table(winners);
  if (!text) {
    return tl::unexpected<Error>(text.error());
  }
  if (Status sound = check_file(request.file, *text); !sound) {
    return sound;
  }
  return io::write_file(request.file, {std::as_bytes(std::span(*text))});
}

}  // namespace

int write_table(const TableRequest& request) {
  const Expected<std::vector<RowWalk>> walks = walk_rows(request);
  if (!walks) {
    return report(walks.error(), request.form);
  }
  if (const Status written = write(request, *walks); !written) {
    return report(written.error(), request.form);
  }
  if (request.form == OutputForm::kJson) {
    print_json(table_json(request, *walks));
  } else {
    print_table(request, *walks);
  }
  return kSuccess;
}

}  // namespace zyfa::tools
