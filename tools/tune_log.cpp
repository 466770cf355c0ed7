#include "tools/tune_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/io/file.h"

namespace zyfa::tools {
namespace {

constexpr const char* kNoLog = "this is no log of zyfa-jit tune";

tl::unexpected<Error> io_error(const std::string& path) {
  return make_error(ErrorCode::kIoError, fmt::format("{}: {}", path, std::strerror(errno)));
}

tl::unexpected<Error> corrupt(const std::string& path, std::size_t line, const std::string& what) {
  return make_error(ErrorCode::kCorruptData, fmt::format("{} line {}: {}", path, line, what));
}

// Nobody else's: a device or a pipe would never end, and two runs would write over one another.
Status lock(const std::string& path, int file) {
  struct stat info{};
  if (::fstat(file, &info) != 0) {
    return io_error(path);
  }
  if (!S_ISREG(info.st_mode)) {
    return make_error(ErrorCode::kIoError, path + ": not a regular file");
  }
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) {
    return {};
  }
  if (errno != EWOULDBLOCK) {
    return io_error(path);
  }
  return make_error(ErrorCode::kIoError, path + ": another run writes this log; wait for it or give another file");
}

// Whole lines of a text, how many bytes they take, and what follows them.
struct Lines {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  std::string rest;
};

Lines lines_of(std::string_view text) {
  Lines result;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', result.bytes)) {
    result.lines.emplace_back(text.substr(result.bytes, end - result.bytes));
    result.bytes = end + 1;
  }
  result.rest = text.substr(result.bytes);
  return result;
}

bool is_numbers(const OrderedJson& json, const char* key) {
  return json.contains(key) && json[key].is_array() &&
         std::ranges::all_of(json[key], [](const OrderedJson& value) { return value.is_number(); });
}

// Lines are added one after another: one that is missing or stands elsewhere was not left so by a run.
Expected<TuneTrial> trial_of(const std::string& path, std::size_t number, const std::string& line) {
  const OrderedJson json = OrderedJson::parse(line, nullptr, false);
  const auto has = [&](const char* key, bool (OrderedJson::*is)() const noexcept) {
    return json.contains(key) && (json[key].*is)();
  };
  if (!json.is_object() || !has("placement", &OrderedJson::is_string) || !json.contains("cycles") ||
      !(json["cycles"].is_number() || json["cycles"].is_null()) || !is_numbers(json, "also") ||
      !has("toggles", &OrderedJson::is_number) || !has("why", &OrderedJson::is_string)) {
    return corrupt(path, number, "this is no trial");
  }
  if (!json.contains("number") || json["number"] != number - 1) {
    return corrupt(path, number, fmt::format("this is not trial {}", number - 1));
  }
  TuneTrial trial{.placement = json["placement"],
                  .also = json["also"].get<std::vector<double>>(),
                  .toggles = json["toggles"],
                  .why = json["why"]};
  if (json["cycles"].is_number()) {
    trial.cycles = json["cycles"].get<double>();
  }
  return trial;
}

Status check_question(const std::string& path, const std::string& line, const OrderedJson& question) {
  const OrderedJson asked = OrderedJson::parse(line, nullptr, false);
  if (!asked.is_object() || !asked.contains("tune")) {
    return corrupt(path, 1, kNoLog);
  }
  for (const auto& [key, value] : question.items()) {
    const OrderedJson before = asked.contains(key) ? asked[key] : OrderedJson();
    if (before != value) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("{} is of another run: {} was {}, now it is {}; give another file", path, key,
                                    before.dump(), value.dump()));
    }
  }
  return {};
}

}  // namespace

Expected<std::optional<std::vector<std::string>>> logged_starts(const std::string& path) {
  using Starts = std::optional<std::vector<std::string>>;
  const Expected<std::vector<std::byte>> bytes = io::read_file(path);
  if (!bytes) {
    if (bytes.error().code == ErrorCode::kNotFound) {
      return Starts();
    }
    return tl::unexpected<Error>(bytes.error());
  }
  const Lines read = lines_of({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (read.lines.empty()) {
    return Starts();
  }
  const OrderedJson asked = OrderedJson::parse(read.lines.front(), nullptr, false);
  if (!asked.is_object() || !asked.contains("tune") || !asked.contains("starts") || !asked["starts"].is_array() ||
      !std::ranges::all_of(asked["starts"], [](const OrderedJson& start) { return start.is_string(); })) {
    return corrupt(path, 1, kNoLog);
  }
  return Starts(asked["starts"].get<std::vector<std::string>>());
}

OrderedJson to_json(const TuneTrial& trial) {
  return {{"placement", trial.placement},
          {"cycles", trial.cycles ? OrderedJson(*trial.cycles) : OrderedJson()},
          {"also", trial.also},
          {"toggles", trial.toggles},
          {"why", trial.why}};
}

Expected<TuneLog> TuneLog::open(const std::string& path, const OrderedJson& question) {
  // O_NONBLOCK: a pipe without a reader must not block.
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0) {
    return io_error(path);
  }
  TuneLog log;
  log.path_ = path;
  log.file_.reset(::fdopen(file, "r+b"));
  if (Status locked = lock(path, file); !locked) {
    return tl::unexpected<Error>(locked.error());
  }
  const Expected<std::vector<std::byte>> bytes = io::read_file(path);
  if (!bytes) {
    return tl::unexpected<Error>(bytes.error());
  }
  const Lines read = lines_of({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (Status taken = log.take(read.lines, read.rest, question); !taken) {
    return tl::unexpected<Error>(taken.error());
  }
  if (::ftruncate(file, static_cast<off_t>(read.bytes)) != 0 || std::fseek(log.file_.get(), 0, SEEK_END) != 0) {
    return io_error(path);
  }
  return log;
}

Status TuneLog::take(const std::vector<std::string>& lines, const std::string& rest, const OrderedJson& question) {
  if (lines.empty()) {
    head_ = question.dump();
    // Only a head that was cut off is ours to drop.
    return head_.starts_with(rest) ? Status() : corrupt(path_, 1, kNoLog);
  }
  if (Status same = check_question(path_, lines.front(), question); !same) {
    return same;
  }
  for (std::size_t i = 1; i < lines.size(); ++i) {
    Expected<TuneTrial> trial = trial_of(path_, i + 1, lines[i]);
    if (!trial) {
      return tl::unexpected<Error>(trial.error());
    }
    known_.push_back(*std::move(trial));
  }
  return {};
}

Status TuneLog::write_line(const std::string& line) {
  const std::string text = line + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0) {
    return io_error(path_);
  }
  return {};
}

Status TuneLog::add(const TuneStep& step) {
  OrderedJson json{{"number", step.number}, {"change", step.change}, {"best", step.best}};
  json.update(to_json(step.trial));
  if (!head_.empty()) {
    if (Status written = write_line(head_); !written) {
      return written;
    }
    head_.clear();
  }
  return write_line(json.dump());
}

}  // namespace zyfa::tools
