#include "tools/tune_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace zyfa::tools {
namespace {

tl::unexpected<Error> io_error(const std::string& path) {
  return make_error(ErrorCode::kIoError, fmt::format("{}: {}", path, std::strerror(errno)));
}

tl::unexpected<Error> corrupt(const std::string& path, std::size_t line, const std::string& what) {
  return make_error(ErrorCode::kCorruptData, fmt::format("{} line {}: {}", path, line, what));
}

// Whole lines of a file, and how many bytes they take; none when there is no file.
struct Lines {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
};

Expected<Lines> read_lines(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) {
      return Lines{};
    }
    return io_error(path);
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (file.bad()) {
    return io_error(path);
  }
  Lines result;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', result.bytes)) {
    result.lines.push_back(text.substr(result.bytes, end - result.bytes));
    result.bytes = end + 1;
  }
  return result;
}

Expected<TuneTrial> trial_of(const std::string& path, std::size_t number, const std::string& line) {
  const OrderedJson json = OrderedJson::parse(line, nullptr, false);
  const auto has = [&](const char* key, bool (OrderedJson::*is)() const noexcept) {
    return json.contains(key) && (json[key].*is)();
  };
  if (!json.is_object() || !has("placement", &OrderedJson::is_string) || !json.contains("cycles") ||
      !(json["cycles"].is_number() || json["cycles"].is_null()) || !has("also", &OrderedJson::is_number) ||
      !has("toggles", &OrderedJson::is_number) || !has("why", &OrderedJson::is_string)) {
    return corrupt(path, number, "this is no trial");
  }
  TuneTrial trial{.placement = json["placement"], .also = json["also"], .toggles = json["toggles"], .why = json["why"]};
  if (json["cycles"].is_number()) {
    trial.cycles = json["cycles"].get<double>();
  }
  return trial;
}

Status check_question(const std::string& path, const std::string& line, const OrderedJson& question) {
  const OrderedJson asked = OrderedJson::parse(line, nullptr, false);
  if (!asked.is_object() || !asked.contains("tune")) {
    return corrupt(path, 1, "this is no log of zyfa-jit tune");
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

OrderedJson to_json(const TuneTrial& trial) {
  return {{"placement", trial.placement},
          {"cycles", trial.cycles ? OrderedJson(*trial.cycles) : OrderedJson()},
          {"also", trial.also},
          {"toggles", trial.toggles},
          {"why", trial.why}};
}

Expected<TuneLog> TuneLog::open(const std::string& path, const OrderedJson& question) {
  const Expected<Lines> read = read_lines(path);
  if (!read) {
    return tl::unexpected<Error>(read.error());
  }
  TuneLog log;
  log.path_ = path;
  for (std::size_t i = 0; i < read->lines.size(); ++i) {
    if (i == 0) {
      if (Status status = check_question(path, read->lines[0], question); !status) {
        return tl::unexpected<Error>(status.error());
      }
      continue;
    }
    Expected<TuneTrial> trial = trial_of(path, i + 1, read->lines[i]);
    if (!trial) {
      return tl::unexpected<Error>(trial.error());
    }
    log.known_.push_back(*std::move(trial));
  }
  log.file_.reset(std::fopen(path.c_str(), read->bytes == 0 ? "wb" : "r+b"));
  if (!log.file_ || std::fseek(log.file_.get(), static_cast<long>(read->bytes), SEEK_SET) != 0) {
    return io_error(path);
  }
  if (read->bytes == 0) {
    if (Status status = log.write_line(question.dump()); !status) {
      return tl::unexpected<Error>(status.error());
    }
  }
  return log;
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
  return write_line(json.dump());
}

}  // namespace zyfa::tools
