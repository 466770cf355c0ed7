#include "runtime/io/json.h"

#include <set>
#include <stdexcept>
#include <vector>

#include "runtime/io/file.h"

namespace zyfa::io {
namespace {

constexpr int kDeepest = 16;

// Leaves the parser from inside its callback; never leaves this file.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

Expected<Json> parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest) {
      throw Refused("nested deeper than " + std::to_string(kDeepest) + " levels");
    }
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key && !keys.back().insert(value.get_ref<const std::string&>()).second) {
      throw Refused("key " + quote(value.get_ref<const std::string&>()) + " appears twice in one object");
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    return make_error(ErrorCode::kCorruptData, where + ": not valid JSON at byte " + std::to_string(error.byte) +
                                                   " of " + std::to_string(text.size()));
  } catch (const Refused& error) {
    return make_error(ErrorCode::kCorruptData, where + ": " + error.what());
  } catch (const Json::exception& error) {
    return make_error(ErrorCode::kCorruptData, where + ": " + error.what());
  }
}

std::string show(const Json& value) {
  constexpr std::size_t kLongest = 80;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) {
    text.resize(kLongest);
    text += "...";
  }
  return text;
}

}  // namespace zyfa::io
