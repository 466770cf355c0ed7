#include "runtime/io/npy.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "runtime/io/file.h"
#include "runtime/io/safetensors.h"

namespace zyfa::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;

tl::unexpected<Error> corrupt(const std::string& message) { return make_error(ErrorCode::kCorruptData, message); }

struct Header {
  std::optional<std::string> descriptor;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// Reads the dict literal that NumPy writes: three keys with a string, a truth value and a tuple of integers.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Expected<Header> parse() {
    Header header;
    if (!take('{')) {
      return fail("'{'");
    }
    while (!take('}')) {
      const std::optional<std::string> key = string();
      if (!key || !take(':')) {
        return fail("a quoted key and ':'");
      }
      if (!value(*key, header)) {
        return fail("descr, fortran_order or shape, each once, with a string, True or False, and a tuple of integers");
      }
      if (!take(',') && !peek('}')) {
        return fail("',' or '}'");
      }
    }
    skip_space();
    if (at_ != text_.size()) {
      return fail("the end of the header");
    }
    if (!header.descriptor || !header.fortran_order || !header.shape) {
      return corrupt(name_ + ": .npy header " + quote(text_) + " lacks one of descr, fortran_order, shape");
    }
    return header;
  }

 private:
  bool value(const std::string& key, Header& header) {
    if (key == "descr" && !header.descriptor) {
      // A structured type is a list; it is told apart from rubbish so that it can be named.
      header.descriptor = peek('[') ? list() : string();
      return header.descriptor.has_value();
    }
    if (key == "fortran_order" && !header.fortran_order) {
      header.fortran_order = word("True") ? std::optional(true) : word("False") ? std::optional(false) : std::nullopt;
      return header.fortran_order.has_value();
    }
    if (key == "shape" && !header.shape) {
      header.shape = tuple();
      return header.shape.has_value();
    }
    return false;
  }

  std::optional<std::string> string() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
      return std::nullopt;
    }
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }

  std::optional<std::string> list() {
    const std::size_t end = text_.find(']', at_);
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    std::string result(text_.substr(at_, end + 1 - at_));
    at_ = end + 1;
    return result;
  }

  std::optional<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> result;
    if (!take('(')) {
      return std::nullopt;
    }
    while (!take(')')) {
      skip_space();
      std::int64_t extent = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) {
        return std::nullopt;
      }
      at_ += static_cast<std::size_t>(end - begin);
      result.push_back(extent);
      if (!take(',') && !peek(')')) {
        return std::nullopt;
      }
    }
    return result;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool peek(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    const bool found = peek(c);
    at_ += found ? 1 : 0;
    return found;
  }
  bool word(std::string_view expected) {
    skip_space();
    const bool found = text_.substr(at_, expected.size()) == expected;
    at_ += found ? expected.size() : 0;
    return found;
  }
  tl::unexpected<Error> fail(const std::string& expected) const {
    return corrupt(name_ + ": .npy header " + quote(text_) + ": expected " + expected + " at byte " +
                   std::to_string(at_));
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
};

}  // namespace

Expected<Npy> parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(bytes[i]); };
  if (all.size() < 10 || all.substr(0, kMagic.size()) != kMagic) {
    return corrupt(name + ": not a .npy file (it must start with \\x93NUMPY, a version and a header length)");
  }
  const std::size_t major = byte(6), length_bytes = major == 1 ? 2 : 4;
  if (major < 1 || major > 3 || byte(7) != 0) {
    return corrupt(name + ": .npy version " + std::to_string(major) + "." + std::to_string(byte(7)) +
                   "; must be 1.0, 2.0 or 3.0");
  }
  const std::size_t prefix = 8 + length_bytes;
  std::size_t header_bytes = 0;
  for (std::size_t i = 0; i < length_bytes && 8 + i < all.size(); ++i) {
    header_bytes |= byte(8 + i) << (8 * i);
  }
  if (all.size() < prefix || header_bytes > all.size() - prefix) {
    return corrupt(name + ": .npy header length " + std::to_string(header_bytes) + " exceeds the file's " +
                   std::to_string(all.size()) + " bytes");
  }
  const Expected<Header> header = HeaderParser(all.substr(prefix, header_bytes), name).parse();
  if (!header) {
    return tl::unexpected<Error>(header.error());
  }
  const std::optional<ElementType> type = from_npy_descriptor(*header->descriptor);
  if (!type || *header->fortran_order) {
    return make_error(ErrorCode::kInvalidArgument,
                      name + ": descr " + quote(*header->descriptor) +
                          (*header->fortran_order ? " in Fortran order" : "") +
                          "; must be a little-endian bool, integer or float of at most 8 bytes, in C order");
  }
  std::uint64_t needed = 0;
  const std::span<const std::byte> data = bytes.subspan(prefix + header_bytes);
  if (!checked_bytes(*header->shape, element_bytes(*type), needed) || needed != data.size()) {
    return corrupt(name + ": shape " + shape_text(*header->shape) + " of " + std::string(dtype_name(*type)) +
                   " does not match the " + std::to_string(data.size()) + " data bytes of the file");
  }
  return Npy{*type, *header->shape, {data.begin(), data.end()}};
}

Expected<Npy> read_npy(const std::filesystem::path& path) {
  const Expected<std::vector<std::byte>> bytes = read_file(path);
  if (!bytes) {
    return tl::unexpected<Error>(bytes.error());
  }
  return parse_npy(*bytes, path.string());
}

Status write_npy(const std::filesystem::path& path, ElementType type, std::span<const std::int64_t> shape,
                 std::span<const std::byte> data) {
  std::uint64_t bytes = 0;
  if (!checked_bytes(shape, element_bytes(type), bytes) || bytes != data.size()) {
    return make_error(ErrorCode::kInvalidArgument, path.string() + ": shape " + shape_text(shape) + " of " +
                                                       std::string(dtype_name(type)) + " does not match " +
                                                       std::to_string(data.size()) + " bytes");
  }
  std::string tuple;
  for (const std::int64_t extent : shape) {
    tuple += (tuple.empty() ? "" : ", ") + std::to_string(extent);
  }
  std::string header = "{'descr': '" + std::string(npy_descriptor(type)) + "', 'fortran_order': False, 'shape': (" +
                       tuple + (shape.size() == 1 ? ",), }" : "), }");
  constexpr std::size_t kPrefix = 10;
  const std::size_t total = (kPrefix + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.resize(total - kPrefix - 1, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return write_file(path, {std::as_bytes(std::span(prefix)), std::as_bytes(std::span(header)), data});
}

}  // namespace zyfa::io
