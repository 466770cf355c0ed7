// The whole way from listing to code object, and back again: what was linked is decoded and must be what was asked for.
#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "jit/isa/op_info.h"
#include "jit/llvm/assembler.h"
#include "jit/llvm/mc_assemble.h"
#include "jit/llvm/print_assembly.h"
#include "jit/object/code_object.h"
#include "jit/object/descriptor.h"

namespace zyfa::jit {
namespace {

constexpr std::size_t kMaxDetails = 32;

tl::unexpected<Error> rejected(const Listing& listing, const PrintedAssembly& printed,
                               std::vector<Diagnostic> diagnostics) {
  std::vector<std::string> details;
  for (Diagnostic& diagnostic : diagnostics) {
    const std::size_t index = std::size_t{diagnostic.line} - printed.first_line;
    if (diagnostic.line >= printed.first_line && index < listing.code.size()) {
      diagnostic.origin = to_string(listing.code[index].origin);
    }
    if (details.size() < kMaxDetails) details.push_back(to_string(diagnostic));
  }
  std::string message = fmt::format("LLVM MC rejected {} of {} instructions of kernel {} for gfx950: {}",
                                    diagnostics.size(), listing.code.size(), listing.symbol, details.front());
  return make_error(ErrorCode::kCompileError, std::move(message), std::move(details));
}

// The mnemonic of a decoded instruction without the encoding suffix that listings leave out.
std::string_view without_suffix(std::string_view mnemonic) {
  if (mnemonic.ends_with("_e32") || mnemonic.ends_with("_e64")) mnemonic.remove_suffix(4);
  return mnemonic;
}

// The next token of an operand list; separators are blanks and commas.
std::string_view next_token(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" ,");
  if (begin == std::string_view::npos) {
    text = {};
    return {};
  }
  const std::size_t end = std::min(text.find_first_of(" ,", begin), text.size());
  const std::string_view token = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return token;
}

// "-16", "0x10", "offset:16" as prefix and 32-bit value.
struct Number {
  std::string_view prefix;
  std::uint32_t value = 0;
};

std::optional<Number> parse_number(std::string_view token) {
  Number number;
  const std::size_t colon = token.find(':');
  if (colon != std::string_view::npos) {
    number.prefix = token.substr(0, colon);
    token.remove_prefix(colon + 1);
  }
  const bool negative = token.starts_with('-');
  if (negative) token.remove_prefix(1);
  const bool hex = token.starts_with("0x");
  if (hex) token.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != token.data() + token.size()) return std::nullopt;
  number.value = static_cast<std::uint32_t>(negative ? 0 - value : value);
  return number;
}

// Operands and modifiers agree: token by token, numbers by value (a listing may say 255 where LLVM prints 0xff).
bool same_operands(std::string_view listed, std::string_view decoded) {
  if (listed == decoded) return true;
  while (true) {
    const std::string_view a = next_token(listed);
    const std::string_view b = next_token(decoded);
    if (a.empty() && b.empty()) return true;
    if (a == b) continue;
    const auto x = parse_number(a);
    const auto y = parse_number(b);
    if (!x || !y || x->prefix != y->prefix || x->value != y->value) return false;
  }
}

bool same_text(std::string_view listed, const Decoded& decoded) {
  const std::size_t end = std::min(listed.find(' '), listed.size());
  const std::string_view mnemonic = listed.substr(0, end);
  if (mnemonic != decoded.mnemonic && mnemonic != without_suffix(decoded.mnemonic)) return false;
  std::string_view operands = std::string_view(decoded.text).substr(decoded.mnemonic.size());
  // LLVM prints the default of this instruction, since it differs from that of other VOP3P ones (gfx950-isa.md 1.3).
  constexpr std::string_view kScaleDefault = " op_sel_hi:[0,0,0]";
  const bool drops_default = mnemonic.starts_with("v_mfma_scale_") && operands.ends_with(kScaleDefault) &&
                             listed.find("op_sel_hi") == std::string_view::npos;
  if (drops_default) operands.remove_suffix(kScaleDefault.size());
  return same_operands(listed.substr(end), operands);
}

const Label* branch_label(const Instruction& instruction) {
  return op_info(instruction.op).unit == Unit::kBranch ? label_of(instruction) : nullptr;
}

// Compares the decoded kernel with the listing it came from.
class Comparison {
 public:
  Comparison(const Listing& listing, const PrintedAssembly& printed, std::span<const Decoded> decoded)
      : listing_(listing), printed_(printed), decoded_(decoded) {}

  std::vector<std::string> differences() {
    find_labels();
    std::size_t at = 0;
    for (std::size_t i = 0; i < listing_.code.size() && rows_.size() < kMaxDetails; ++i) {
      if (!is_machine(listing_.code[i])) continue;
      if (at == decoded_.size()) {
        rows_.push_back(fmt::format("the code ends before \"{}\"", printed_.line(i)));
        return rows_;
      }
      compare(i, decoded_[at++]);
    }
    if (at != decoded_.size()) {
      rows_.push_back(fmt::format("the code holds {} instructions, the listing {}", decoded_.size(), at));
    }
    return rows_;
  }

 private:
  void find_labels() {
    label_offsets_.assign(listing_.label_count, -1);
    std::size_t at = 0;
    for (const Instruction& instruction : listing_.code) {
      if (is_machine(instruction)) {
        ++at;
      } else if (instruction.op == Op::kLabel) {
        const Label* label = label_of(instruction);
        if (label == nullptr || label->id >= label_offsets_.size()) continue;
        const bool at_end = at >= decoded_.size();
        if (!at_end) label_offsets_[label->id] = static_cast<std::int64_t>(decoded_[at].offset);
        if (at_end && !decoded_.empty()) {
          label_offsets_[label->id] = static_cast<std::int64_t>(decoded_.back().offset + decoded_.back().size);
        }
      }
    }
  }

  void compare(std::size_t index, const Decoded& decoded) {
    const Instruction& instruction = listing_.code[index];
    const std::string_view line = printed_.line(index);
    const Label* const label = branch_label(instruction);
    const bool same = label == nullptr
                          ? decoded.valid && same_text(line, decoded)
                          : line.substr(0, line.find(' ')) == decoded.mnemonic && label->id < label_offsets_.size() &&
                                label_offsets_[label->id] == decoded.branch_target;
    if (!same) {
      rows_.push_back(fmt::format("listing \"{}\" came back as \"{}\" at offset 0x{:x} | {}", line, decoded.text,
                                  decoded.offset, to_string(instruction.origin)));
    }
  }

  const Listing& listing_;
  const PrintedAssembly& printed_;
  std::span<const Decoded> decoded_;
  std::vector<std::int64_t> label_offsets_;
  std::vector<std::string> rows_;
};

Status check_listing(const Listing& listing) {
  if (listing.code.empty()) {
    return make_error(ErrorCode::kCompileError, "the listing of kernel " + listing.symbol + " is empty");
  }
  for (std::size_t i = 0; i < listing.code.size(); ++i) {
    const Instruction& instruction = listing.code[i];
    if (Status s = check(instruction, listing.regs); !s) return s;
    if (instruction.op == Op::kAwait) {
      return make_error(ErrorCode::kCompileError,
                        fmt::format("instruction {} of kernel {} is an await; run insert_waits before assembling | {}",
                                    i, listing.symbol, to_string(instruction.origin)));
    }
  }
  return {};
}

Status check_linked(const Listing& listing, const KernelDeclaration& declaration, const PrintedAssembly& printed,
                    const std::vector<std::byte>& linked) {
  const auto object = read_code_object(linked);
  if (!object) return tl::unexpected<Error>(object.error());
  const KernelImage* const kernel = object->find(declaration.symbol);
  if (kernel == nullptr) {
    return make_error(ErrorCode::kCompileError, "the linked object has no kernel " + declaration.symbol);
  }
  std::vector<std::string> rows = image_differences(*kernel, expected_image(declaration));
  const auto decoded = disassemble(object->text.subspan(kernel->entry_offset, kernel->code_bytes));
  if (!decoded) return tl::unexpected<Error>(decoded.error());
  for (std::string& row : Comparison(listing, printed, *decoded).differences()) rows.push_back(std::move(row));
  if (rows.empty()) return {};
  std::string message =
      fmt::format("the code object of kernel {} is not what was asked for: {}", declaration.symbol, rows.front());
  return make_error(ErrorCode::kCompileError, std::move(message), std::move(rows));
}

}  // namespace

Expected<std::vector<std::byte>> assemble(const Listing& listing, const KernelDeclaration& declaration) {
  if (Status s = check_declaration(declaration); !s) return tl::unexpected<Error>(s.error());
  if (Status s = check_listing(listing); !s) return tl::unexpected<Error>(s.error());
  const PrintedAssembly printed = print_with_lines(listing, declaration);
  auto outcome = mc_assemble(printed.text);
  if (!outcome) return tl::unexpected<Error>(outcome.error());
  if (outcome->object.empty()) return rejected(listing, printed, std::move(outcome->diagnostics));
  auto linked = link_object(outcome->object);
  if (!linked) return linked;
  if (Status s = check_linked(listing, declaration, printed, *linked); !s) return tl::unexpected<Error>(s.error());
  return linked;
}

}  // namespace zyfa::jit
