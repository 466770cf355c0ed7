// The rules of rules.h. Everything works line by line on plain text; no compiler is involved.
#include "tests/unit/architecture/rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace zyfa::architecture {
namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      break;
    }
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

// Everything in `code quotes` within one table cell.
std::vector<std::string> quoted_words(std::string_view cell) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t open = cell.find('`');
    if (open == std::string_view::npos) {
      return words;
    }
    const std::size_t close = cell.find('`', open + 1);
    if (close == std::string_view::npos) {
      return words;
    }
    words.emplace_back(cell.substr(open + 1, close - open - 1));
    cell.remove_prefix(close + 1);
  }
}

std::vector<Row> parse_table(const std::vector<std::string_view>& lines, std::string_view marker) {
  std::vector<Row> rows;
  auto line = std::find_if(lines.begin(), lines.end(), [&](std::string_view text) { return trim(text) == marker; });
  if (line == lines.end()) {
    return rows;
  }
  for (++line; line != lines.end() && trim(*line).starts_with("|"); ++line) {
    const std::string_view inner = trim(*line).substr(1);
    const std::size_t bar = inner.find('|');
    if (bar == std::string_view::npos) {
      continue;
    }
    const std::vector<std::string> name = quoted_words(inner.substr(0, bar));
    if (name.size() == 1) {
      rows.push_back({name.front(), quoted_words(inner.substr(bar + 1))});
    }
  }
  return rows;
}

const Row* longest_match(const std::vector<Row>& rows, std::string_view path) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (path.starts_with(row.name) && (best == nullptr || row.name.size() > best->name.size())) {
      best = &row;
    }
  }
  return best;
}

bool any_prefix(const std::vector<std::string>& prefixes, std::string_view path) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return path.starts_with(prefix); });
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text.empty() ? "nothing" : text;
}

std::string finding(std::string_view path, std::size_t line, const std::string& message) {
  return std::string(path) + ":" + std::to_string(line) + ": " + message;
}

struct Include {
  std::string path;
  bool quoted = false;
};

// The target of an #include line, or an empty path.
Include parse_include(std::string_view line) {
  line = trim(line);
  if (!line.starts_with("#")) {
    return {};
  }
  line = trim(line.substr(1));
  if (!line.starts_with("include")) {
    return {};
  }
  line = trim(line.substr(7));
  if (line.empty()) {
    return {};
  }
  const bool quoted = line.front() == '"';
  const std::size_t end = line.find(quoted ? '"' : '>', 1);
  if (end == std::string_view::npos) {
    return {};
  }
  return {std::string(line.substr(1, end - 1)), quoted};
}

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Offset of `word` in `line` as a whole word (its own non-word ends excepted), or npos.
std::size_t find_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool left = at == 0 || !is_word_char(word.front()) || !is_word_char(line[at - 1]);
    const bool right = end == line.size() || !is_word_char(word.back()) || !is_word_char(line[end]);
    if (left && right) {
      return at;
    }
  }
  return std::string_view::npos;
}

bool is_header(std::string_view path) { return path.ends_with(".h") || path.ends_with(".hpp"); }

}  // namespace

Rules parse_rules(std::string_view markdown) {
  const std::vector<std::string_view> lines = split_lines(markdown);
  return {parse_table(lines, "<!-- include-directions -->"), parse_table(lines, "<!-- third-party -->")};
}

std::string strip_comments(std::string_view text) {
  enum class State { kCode, kLineComment, kBlockComment, kString, kChar };
  std::string out(text);
  State state = State::kCode;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const auto blank = [&](std::size_t at) {
      if (out[at] != '\n') {
        out[at] = ' ';
      }
    };
    switch (state) {
      case State::kCode: {
        const bool digit_separator = c == '\'' && i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0;
        if (c == '/' && (next == '/' || next == '*')) {
          state = next == '/' ? State::kLineComment : State::kBlockComment;
          blank(i);
          blank(++i);
        } else if (c == '"') {
          state = State::kString;
        } else if (c == '\'' && !digit_separator) {
          state = State::kChar;
        }
        break;
      }
      case State::kLineComment:
        state = c == '\n' ? State::kCode : state;
        blank(i);
        break;
      case State::kBlockComment:
        blank(i);
        if (c == '*' && next == '/') {
          blank(++i);
          state = State::kCode;
        }
        break;
      case State::kString:
      case State::kChar: {
        const char quote = state == State::kString ? '"' : '\'';
        if (c == '\\' && next != '\0') {
          blank(i);
          blank(++i);
        } else if (c == quote || c == '\n') {
          state = State::kCode;  // a newline ends it too, so an apostrophe in a macro cannot swallow the file
        } else {
          blank(i);
        }
        break;
      }
    }
  }
  return out;
}

Findings check_includes(std::string_view path, std::string_view text, const Rules& rules) {
  Findings findings;
  const Row* direction = longest_match(rules.directions, path);
  if (direction == nullptr) {
    findings.push_back(finding(path, 1, "no row of the include-directions table covers this file"));
    return findings;
  }
  const std::vector<std::string_view> lines = split_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Include include = parse_include(lines[i]);
    if (include.path.empty()) {
      continue;
    }
    if (const Row* owner = longest_match(rules.third_party, include.path)) {
      if (!any_prefix(owner->entries, path)) {
        findings.push_back(finding(path, i + 1, include.path + " may be included only in " + join(owner->entries)));
      }
    } else if (include.quoted || include.path.starts_with("zyfa/")) {
      if (!any_prefix(direction->entries, include.path)) {
        findings.push_back(finding(path, i + 1,
                                   include.path + " is not allowed here; " + direction->name + " may include " +
                                       join(direction->entries) + " (paths are from the source root)"));
      }
    } else {
      // Standard headers have no dot; POSIX and compiler headers end in .h and sit in no directory or under sys/.
      const bool standard = include.path.find('.') == std::string::npos && include.path.find('/') == std::string::npos;
      const bool system =
          include.path.ends_with(".h") && (include.path.find('/') == std::string::npos ||
                                           include.path.starts_with("sys/") || include.path.starts_with("linux/"));
      if (!standard && !system) {
        findings.push_back(finding(path, i + 1, include.path + " is in no row of the third-party table"));
      }
    }
  }
  return findings;
}

Findings check_public_header(std::string_view path, std::string_view text) {
  Findings findings;
  if (text.find("#pragma once") == std::string_view::npos && text.find("#ifndef") == std::string_view::npos) {
    findings.push_back(finding(path, 1, "a public header needs #pragma once"));
  }
  constexpr std::array kForeign = {"llvm::",      "lld::",         "llvm/",      "lld/",       "hipStream_t",
                                   "hipModule_t", "hipFunction_t", "hipError_t", "hip_runtime"};
  const std::string code = strip_comments(text);
  const std::vector<std::string_view> lines = split_lines(code);
  const std::vector<std::string_view> raw = split_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Include include = parse_include(raw[i]);
    for (const std::string_view word : kForeign) {
      if (find_word(lines[i], word) != std::string_view::npos ||
          find_word(include.path, word) != std::string_view::npos) {
        findings.push_back(finding(path, i + 1, "a public header may not name " + std::string(word)));
      }
    }
  }
  return findings;
}

Findings check_words(std::string_view path, std::string_view text) {
  struct Word {
    std::string_view word;
    std::string_view why;
  };
  // Split so that this file does not find itself.
  constexpr std::array kWords = {
      Word{"TO"
           "DO",
           "finish it or file an issue"},
      Word{"FIX"
           "ME",
           "finish it or file an issue"},
      Word{"X"
           "XX",
           "finish it or file an issue"},
      Word{"HA"
           "CK",
           "say what it does and why"},
      Word{"/wo"
           "rk/",
           "a path of one machine"},
      Word{"/ho"
           "me/",
           "a path of one machine"},
  };
  Findings findings;
  const std::vector<std::string_view> lines = split_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const Word& entry : kWords) {
      if (find_word(lines[i], entry.word) != std::string_view::npos) {
        findings.push_back(finding(path, i + 1, std::string(entry.word) + ": " + std::string(entry.why)));
      }
    }
    if (is_header(path) && trim(lines[i]).starts_with("using namespace")) {
      findings.push_back(finding(path, i + 1, "using namespace in a header reaches every file that includes it"));
    }
  }
  return findings;
}

Findings check_length(std::string_view path, std::string_view text) {
  const std::size_t lines = split_lines(text).size();
  if (lines <= kMaxLines) {
    return {};
  }
  return {
      finding(path, lines, std::to_string(lines) + " lines; at most " + std::to_string(kMaxLines) + " are allowed")};
}

Findings check_file_comment(std::string_view path, std::string_view text) {
  for (const std::string_view line : split_lines(text)) {
    const std::string_view content = trim(line);
    if (!content.empty()) {
      if (content.starts_with("//") || content.starts_with("/*")) {
        return {};
      }
      break;
    }
  }
  return {finding(path, 1, "a file begins with a comment that says its purpose")};
}

Findings check_top_level(const std::vector<std::string>& folders) {
  static const std::vector<std::string> kFolders = {"cache", "docs", "jit", "runtime", "schedules", "tests", "tools"};
  Findings findings;
  for (const std::string& folder : folders) {
    if (std::find(kFolders.begin(), kFolders.end(), folder) == kFolders.end()) {
      findings.push_back(folder + "/: not one of the top-level folders " + join(kFolders));
    }
  }
  return findings;
}

Findings check_exports(std::string_view library, std::string_view nm_output) {
  // What the compiler makes for a class of ours, e.g. "typeinfo for zyfa::Device".
  constexpr std::array<std::string_view, 6> kMade = {"typeinfo for ",       "typeinfo name for ",    "vtable for ",
                                                     "guard variable for ", "non-virtual thunk to ", "VTT for "};
  Findings findings;
  for (const std::string_view line : split_lines(nm_output)) {
    // "<address> <type> <name>"; the address is absent for absolute symbols of a version script ("A").
    std::string_view rest = trim(line);
    if (rest.empty()) {
      continue;
    }
    const std::size_t space = rest.find(' ');
    rest = space == std::string_view::npos ? rest : trim(rest.substr(space));
    if (rest.size() < 3 || rest[1] != ' ') {
      findings.push_back(std::string(library) + ": cannot read nm line '" + std::string(line) + "'");
      continue;
    }
    const char type = rest[0];
    std::string_view name = trim(rest.substr(2));
    const std::string_view whole = name;
    for (const std::string_view made : kMade) {
      if (name.starts_with(made)) {
        name.remove_prefix(made.size());
      }
    }
    const bool version = type == 'A';  // a version node, not code
    if (!version && !name.starts_with("zyfa::") && !name.starts_with("zyfa_")) {
      findings.push_back(std::string(library) + " exports " + std::string(whole) +
                         "; only zyfa:: and zyfa_ names are allowed");
    }
  }
  return findings;
}

Findings check_needed(std::string_view library, std::string_view readelf_output) {
  Findings findings;
  for (const std::string_view line : split_lines(readelf_output)) {
    if (line.find("(NEEDED)") == std::string_view::npos) {
      continue;
    }
    for (const std::string_view foreign :
         {"libLLVM", "liblld", "libclang", "libamd_comgr", "libamdhip", "libhsa", "libzyfa_jit"}) {
      if (line.find(foreign) != std::string_view::npos) {
        findings.push_back(std::string(library) + " is linked with " + std::string(foreign) + ": " +
                           std::string(trim(line)));
      }
    }
  }
  return findings;
}

}  // namespace zyfa::architecture
