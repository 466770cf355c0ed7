// JSON text to a value, stricter than the parser's defaults: a repeated key or nesting deeper than any of our formats
// needs is an error. Internal to runtime/io.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "zyfa/error.h"

namespace zyfa::io {

using Json = nlohmann::json;

// kCorruptData; `where` (a file name, perhaps with a part of it) starts the message.
[[nodiscard]] Expected<Json> parse_json(std::string_view text, const std::string& where);

// A JSON value for use in a message, cut at 80 characters.
[[nodiscard]] std::string show(const Json& value);

}  // namespace zyfa::io
