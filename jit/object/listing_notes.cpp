// Writer and bounds-checked reader of the listing section.
#include "jit/object/listing_notes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace zyfa::jit {
namespace {

constexpr std::string_view kMagic = "zyfa-listing 1\n";
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
// Notes are expanded to one struct an instruction; a small section must not ask for gigabytes.
constexpr std::size_t kMaxExpandedBytes = std::size_t{256} << 20;

void put_number(std::string& out, std::size_t value) {
  for (; value >= 32; value /= 32) out.push_back(kDigits[32 + value % 32]);
  out.push_back(kDigits[value]);
}

constexpr std::array<std::int8_t, 256> make_digit_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}

class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  std::optional<std::size_t> number() {
    static constexpr std::array<std::int8_t, 256> kValues = make_digit_values();
    std::size_t value = 0;
    for (unsigned shift = 0; shift <= 30; shift += 5) {
      if (rest_.empty()) return std::nullopt;
      const int digit = kValues[static_cast<unsigned char>(rest_.front())];
      rest_.remove_prefix(1);
      if (digit < 0) return std::nullopt;
      value |= static_cast<std::size_t>(digit & 31) << shift;
      if (digit < 32) return value;
    }
    return std::nullopt;
  }

  // A count of things that take at least `bytes_each` more bytes.
  std::optional<std::size_t> count(std::size_t bytes_each) {
    const auto n = number();
    return n && *n <= rest_.size() / bytes_each ? n : std::nullopt;
  }

  std::optional<std::string_view> bytes(std::size_t n) {
    if (n > rest_.size()) return std::nullopt;
    const std::string_view text = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return text;
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

tl::unexpected<Error> corrupt(const std::string& what) {
  return make_error(ErrorCode::kCorruptData, "section .zyfa.listing is malformed: " + what);
}

}  // namespace

std::size_t ListingNotesWriter::string_id(std::string_view text) {
  text = text.substr(0, kMaxNoteText);
  const auto at = std::lower_bound(string_index_.begin(), string_index_.end(), text,
                                   [this](std::size_t id, std::string_view t) { return strings_[id] < t; });
  if (at != string_index_.end() && strings_[*at] == text) return *at;
  const std::size_t id = strings_.size();
  string_index_.insert(at, id);
  strings_.emplace_back(text);
  return id;
}

void ListingNotesWriter::add(std::string_view stage, std::string_view comment, std::string_view source) {
  const std::array<std::size_t, 3> note{string_id(stage), string_id(comment), string_id(source)};
  // Neighbours mostly share their note or repeat a recent one: look back a little, else append.
  const std::size_t count = notes_.size() / 3;
  const std::size_t oldest = count > 64 ? count - 64 : 0;
  for (std::size_t i = count; i > oldest; --i) {
    if (std::equal(note.begin(), note.end(), notes_.begin() + static_cast<std::ptrdiff_t>(3 * (i - 1)))) {
      instructions_.push_back(i - 1);
      return;
    }
  }
  notes_.insert(notes_.end(), note.begin(), note.end());
  instructions_.push_back(count);
}

std::string ListingNotesWriter::finish() const {
  std::string out(kMagic);
  put_number(out, strings_.size());
  for (const std::string& text : strings_) {
    put_number(out, text.size());
    out += text;
  }
  put_number(out, notes_.size() / 3);
  for (const std::size_t id : notes_) put_number(out, id);
  put_number(out, instructions_.size());
  for (const std::size_t id : instructions_) put_number(out, id);
  return out;
}

Expected<std::vector<ListingNote>> read_listing_notes(std::string_view section, std::size_t max_instructions) {
  Reader in(section);
  if (!in.skip(kMagic)) return corrupt("it does not start with \"zyfa-listing 1\"");

  const auto string_count = in.count(1);
  if (!string_count) return corrupt("bad string count");
  std::vector<std::string_view> strings;
  strings.reserve(*string_count);
  for (std::size_t i = 0; i < *string_count; ++i) {
    const auto length = in.number();
    const auto text = length && *length <= kMaxNoteText ? in.bytes(*length) : std::nullopt;
    if (!text) return corrupt("string " + std::to_string(i) + " is cut off or longer than allowed");
    strings.push_back(*text);
  }

  const auto note_count = in.count(3);
  if (!note_count) return corrupt("bad note count");
  std::vector<std::array<std::size_t, 3>> notes(*note_count);
  for (auto& note : notes) {
    for (std::size_t& id : note) {
      const auto value = in.number();
      if (!value || *value >= strings.size()) return corrupt("a note names a string that does not exist");
      id = *value;
    }
  }

  const auto instruction_count = in.count(1);
  if (!instruction_count || *instruction_count > max_instructions) {
    return corrupt("bad instruction count; the text section holds at most " + std::to_string(max_instructions));
  }
  std::vector<ListingNote> result;
  result.reserve(*instruction_count);
  std::size_t expanded = 0;
  for (std::size_t i = 0; i < *instruction_count; ++i) {
    const auto id = in.number();
    if (!id || *id >= notes.size()) return corrupt("instruction " + std::to_string(i) + " names no note");
    const auto& note = notes[*id];
    expanded += strings[note[0]].size() + strings[note[1]].size() + strings[note[2]].size() + sizeof(ListingNote);
    if (expanded > kMaxExpandedBytes) return corrupt("it expands to more than 256 MiB");
    result.push_back({std::string(strings[note[0]]), std::string(strings[note[1]]), std::string(strings[note[2]])});
  }
  if (!in.at_end()) return corrupt("bytes follow the last instruction");
  return result;
}

}  // namespace zyfa::jit
