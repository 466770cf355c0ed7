// The log of zyfa-jit tune: one JSON object a line, first what was asked, then every trial as it ends. A later run with
// the same question takes the trials from it and goes on.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli.h"
#include "zyfa/tune.h"

namespace zyfa::tools {

class TuneLog {
 public:
  // Opens or makes the file, for this process alone; its trials are then in known(). A last line that was cut off (a
  // killed run) is dropped. Nothing is written before the first trial, so a question that is refused leaves no log.
  // kInvalidArgument: it answers another question (what differs is named); kCorruptData: no such log; kIoError: the
  // system, no regular file, or another run has it.
  static Expected<TuneLog> open(const std::string& path, const OrderedJson& question);

  [[nodiscard]] const std::vector<TuneTrial>& known() const { return known_; }
  // In the file when it returns, so that a killed run loses none. kIoError.
  Status add(const TuneStep& step);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Status take(const std::vector<std::string>& lines, const std::string& rest, const OrderedJson& question);
  Status write_line(const std::string& line);

  std::string path_;
  std::string head_;  // to be written before the first trial
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<TuneTrial> known_;
};

// Where the walk of a log began; none when there is no log yet. kCorruptData, kIoError.
[[nodiscard]] Expected<std::optional<std::vector<std::string>>> logged_starts(const std::string& path);

[[nodiscard]] OrderedJson to_json(const TuneTrial& trial);

}  // namespace zyfa::tools
