#include "tests/unit/picture/trace_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace zyfa::sim_test {
namespace {

using nlohmann::json;
using Track = std::pair<std::uint64_t, std::uint64_t>;

// Of catapult's color_scheme.html, which reserves them.
const std::set<std::string> kColours = {"thread_state_running",
                                        "thread_state_runnable",
                                        "thread_state_unknown",
                                        "thread_state_iowait",
                                        "rail_response",
                                        "rail_animation",
                                        "rail_idle",
                                        "rail_load",
                                        "startup",
                                        "cq_build_passed",
                                        "cq_build_running",
                                        "vsync_highlight_color",
                                        "generic_work",
                                        "good",
                                        "bad",
                                        "terrible",
                                        "yellow",
                                        "olive",
                                        "black",
                                        "grey",
                                        "white"};

class Checker {
 public:
  std::vector<std::string> check(const json& trace) {
    if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
      return {"no object with an array traceEvents"};
    for (const auto& [key, value] : trace.items())
      require(key == "traceEvents" || key == "displayTimeUnit" || key == "otherData", "unknown key " + key);
    const json& unit = trace.value("displayTimeUnit", json());
    require(unit == "ns" || unit == "ms", "displayTimeUnit is neither ns nor ms");
    require(trace.value("otherData", json()).is_object(), "otherData is no object");
    for (const json& event : trace["traceEvents"]) {
      at_ = event.dump(-1, ' ', false, json::error_handler_t::replace);
      check_event(event);
    }
    at_ = "at the end";
    for (const auto& [track, open] : open_) {
      require(threads_.contains(track), fmt::format("track {} of process {} has no name", track.second, track.first));
      require(named_.contains(track.first), fmt::format("process {} has no name", track.first));
    }
    return std::move(faults_);
  }

 private:
  void require(bool good, const std::string& fault) {
    if (!good) faults_.push_back(fault + ": " + at_);
  }
  static bool whole(const json& event, const char* key) {
    return event.contains(key) && event[key].is_number_unsigned();
  }
  static bool text(const json& event, const char* key) {
    return event.contains(key) && event[key].is_string() && !event[key].get_ref<const std::string&>().empty();
  }
  void check_event(const json& event) {
    if (!event.is_object() || !text(event, "name") || !text(event, "ph") || !whole(event, "pid") ||
        !whole(event, "tid") || !event.value("args", json()).is_object()) {
      require(false, "an event without name, ph, pid, tid or args");
      return;
    }
    if (event["ph"] == "M") {
      check_metadata(event);
    } else if (event["ph"] == "X") {
      check_slice(event);
    } else {
      require(false, "an event that is neither X nor M");
    }
  }
  void check_metadata(const json& event) {
    const Track track{event["pid"], event["tid"]};
    const bool thread = event["name"] == "thread_name" || event["name"] == "thread_sort_index";
    const bool process = event["name"] == "process_name" || event["name"] == "process_sort_index";
    require(thread || process, "metadata of an unknown name");
    const bool name = event["name"] == "thread_name" || event["name"] == "process_name";
    require(event["args"].size() == 1 && (name ? text(event["args"], "name") : whole(event["args"], "sort_index")),
            "metadata without its value");
    if (event["name"] == "thread_name") require(threads_.insert(track).second, "a track named twice");
    if (event["name"] == "process_name") require(named_.insert(track.first).second, "a process named twice");
  }
  void check_slice(const json& event) {
    if (!whole(event, "ts") || !whole(event, "dur") || !text(event, "cat") || !text(event, "cname")) {
      require(false, "a slice without whole ts and dur, or without cat and cname");
      return;
    }
    require(event.size() == 9, "a slice with other keys");
    require(kColours.contains(event["cname"]), "a colour that is not reserved");
    check_arguments(event["args"]);
    const std::uint64_t begin = event["ts"], end = begin + event["dur"].get<std::uint64_t>();
    Open& open = open_[{event["pid"], event["tid"]}];
    require(begin >= open.last, "a slice that begins before the one ahead of it on its track");
    open.last = std::max(open.last, begin);
    while (!open.ends.empty() && open.ends.back() <= begin) open.ends.pop_back();
    require(open.ends.empty() || end <= open.ends.back(), "a slice that overlaps another in part");
    open.ends.push_back(end);
  }
  // A slice that encloses others has none.
  void check_arguments(const json& args) {
    if (args.empty()) return;
    require(text(args, "instruction") && text(args, "unit") && whole(args, "offset") && whole(args, "wave") &&
                whole(args, "issue") && whole(args, "unit_start") && whole(args, "end"),
            "arguments that lack one");
    require(args.contains("stalled") == args.contains("stall"), "stalled without stall");
    for (const auto& [key, value] : args.items()) {
      static const std::set<std::string> kKeys = {"instruction", "unit",  "offset",  "wave",    "issue", "unit_start",
                                                  "end",         "stage", "comment", "stalled", "stall"};
      require(kKeys.contains(key), "an unknown argument " + key);
    }
  }

  struct Open {
    std::uint64_t last = 0;
    std::vector<std::uint64_t> ends;  // of the slices that enclose what comes
  };
  std::string at_;
  std::map<Track, Open> open_;
  std::set<Track> threads_;
  std::set<std::uint64_t> named_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> trace_faults(const json& trace) { return Checker().check(trace); }

}  // namespace zyfa::sim_test
