// The section .zyfa.listing: stage, comment and DSL source of every instruction of the kernel, in program order.
//
// All printable where the strings are, so that it fits one .ascii directive. Grammar:
//   section = "zyfa-listing 1\n" strings notes instructions
//   strings = number { number bytes }          count, then length and bytes of each
//   notes   = number { number number number }  count, then string ids of stage, comment, source
//   instructions = number { number }           count, then a note id for each instruction
//   number  = digits of base 32, least significant first: "A".."Z","a".."z","0".."9","+","/" stand for 0..63; 32 is
//             added to every digit but the last
// Strings longer than kMaxNoteText bytes are cut when written.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/object/code_object.h"
#include "zyfa/error.h"

namespace zyfa::jit {

inline constexpr std::string_view kListingSection = ".zyfa.listing";
inline constexpr std::size_t kMaxNoteText = 512;

class ListingNotesWriter {
 public:
  void add(std::string_view stage, std::string_view comment, std::string_view source);
  [[nodiscard]] std::string finish() const;

 private:
  std::size_t string_id(std::string_view text);

  std::vector<std::string> strings_;
  std::vector<std::size_t> string_index_;  // ids sorted by text
  std::vector<std::size_t> notes_;         // three string ids each
  std::vector<std::size_t> instructions_;
};

// Any bytes are safe; kCorruptData when they do not follow the grammar or name more than max_instructions.
[[nodiscard]] Expected<std::vector<ListingNote>> read_listing_notes(std::string_view section,
                                                                    std::size_t max_instructions);

}  // namespace zyfa::jit
