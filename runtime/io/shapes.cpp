#include "runtime/io/shapes.h"

#include "runtime/io/file.h"
#include "runtime/io/json.h"

namespace zyfa::io {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

Expected<std::vector<ShapeEntry>> parse_json_shapes(std::string_view text, const std::string& name) {
  const Expected<Json> root = parse_json(text, name);
  if (!root) {
    return tl::unexpected<Error>(root.error());
  }
  const bool wrapped = root->is_object() && root->size() == 1 && root->contains("problems");
  const Json& problems = wrapped ? (*root)["problems"] : *root;
  if (!problems.is_array()) {
    return make_error(ErrorCode::kCorruptData,
                      name + ": " + show(*root) + "; must be an array of problem texts, or {\"problems\": [...]}");
  }
  std::vector<ShapeEntry> entries;
  for (const Json& problem : problems) {
    const std::string location = name + ": problem " + std::to_string(entries.size() + 1);
    if (!problem.is_string()) {
      return make_error(ErrorCode::kCorruptData,
                        location + " is " + show(problem) + "; must be a text such as \"bf16,d=128,causal\"");
    }
    entries.push_back({std::string(trim(problem.get_ref<const std::string&>())), location});
  }
  return entries;
}

}  // namespace

Expected<std::vector<ShapeEntry>> parse_shapes(std::string_view text, const std::string& name) {
  if (text.find('\0') != std::string_view::npos) {
    return make_error(ErrorCode::kCorruptData, name + ": holds a NUL byte; a shape file is text or JSON");
  }
  const std::string_view content = trim(text);
  if (content.starts_with('[') || content.starts_with('{')) {
    return parse_json_shapes(text, name);
  }
  std::vector<ShapeEntry> entries;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    const std::string_view problem = trim(line.substr(0, line.find('#')));
    if (!problem.empty()) {
      entries.push_back({std::string(problem), name + ":" + std::to_string(number)});
    }
  }
  return entries;
}

Expected<std::vector<ShapeEntry>> read_shapes(const std::filesystem::path& path) {
  const Expected<std::vector<std::byte>> bytes = read_file(path);
  if (!bytes) {
    return tl::unexpected<Error>(bytes.error());
  }
  return parse_shapes({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path.string());
}

}  // namespace zyfa::io
