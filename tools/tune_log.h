// The log of zyfa-jit tune: one JSON object a line, first what was asked, then every trial as it ends. A later run with
// the same question takes the trials from it and goes on.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli.h"
#include "zyfa/tune.h"

namespace zyfa::tools {

class TuneLog {
 public:
  // Opens or makes the file; its trials are then in known(). A last line that was cut off (a killed run) is dropped.
  // kInvalidArgument: it answers another question (what differs is named); kCorruptData: no such log; kIoError.
  static Expected<TuneLog> open(const std::string& path, const OrderedJson& question);

  [[nodiscard]] const std::vector<TuneTrial>& known() const { return known_; }
  // On disk when it returns. kIoError.
  Status add(const TuneStep& step);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Status write_line(const std::string& line);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<TuneTrial> known_;
};

[[nodiscard]] OrderedJson to_json(const TuneTrial& trial);

}  // namespace zyfa::tools
