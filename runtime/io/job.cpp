#include "runtime/io/job.h"

#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>

#include "runtime/io/file.h"
#include "runtime/io/json.h"

namespace zyfa::io {
namespace {

constexpr std::uint64_t kLargestLds = 163840;         // bytes of a workgroup, gfx950-isa.md 5
constexpr std::uint64_t kLargestWorkgroup = 1024;     // work-items
constexpr std::uint64_t kLargestSegment = 64 * 1024;  // bytes of kernel arguments we accept an offset in
constexpr std::uint64_t kLargestBuffer = 1ULL << 34;  // bytes; more is a mistake in the file
constexpr std::uint32_t kLargestAlignment = 16;

tl::unexpected<Error> bad(const std::string& message) { return make_error(ErrorCode::kCorruptData, message); }

// Reads the fields of one JSON object; the first error is kept and later calls do nothing.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  void allow_only(std::initializer_list<std::string_view> names) {
    for (const auto& [key, unused] : object_.items()) {
      bool known = false;
      std::string list;
      for (const std::string_view name : names) {
        known = known || key == name;
        list.append(list.empty() ? "" : ", ").append(name);
      }
      if (!known) {
        fail("unknown key " + quote(key) + "; allowed are " + list);
      }
    }
  }

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  std::string text(const char* key) {
    const Json* value = get(key, "a string that is not empty");
    if (value != nullptr && (!value->is_string() || value->get_ref<const std::string&>().empty())) {
      fail(std::string(key) + " is " + show(*value) + "; must be a string that is not empty");
      value = nullptr;
    }
    const std::string result = value == nullptr ? std::string() : value->get<std::string>();
    if (result.find('\0') != std::string::npos) {
      fail(std::string(key) + " is " + show(*value) + "; must not hold a NUL");
    }
    return result;
  }

  // An integer in [low, high], which must lie inside the range of int64 or of uint64.
  std::uint64_t unsigned_integer(const char* key, std::uint64_t low, std::uint64_t high) {
    const Json* value = get(key, "an integer");
    return value == nullptr ? 0 : to_unsigned(*value, key, low, high);
  }

  std::int64_t signed_integer(const char* key, std::int64_t low, std::int64_t high) {
    const Json* value = get(key, "an integer");
    const bool fits = value != nullptr && value->is_number_integer() &&
                      !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX) &&
                      value->get<std::int64_t>() >= low && value->get<std::int64_t>() <= high;
    if (value != nullptr && !fits) {
      fail(std::string(key) + " is " + show(*value) + "; must be an integer from " + std::to_string(low) + " to " +
           std::to_string(high));
    }
    return fits ? value->get<std::int64_t>() : 0;
  }

  float single(const char* key) {
    const Json* value = get(key, "a number");
    if (value == nullptr || !value->is_number()) {
      fail(std::string(key) + " is " + (value == nullptr ? "missing" : show(*value)) + "; must be a number");
      return 0;
    }
    const double number = value->get<double>();
    if (!(number >= -std::numeric_limits<float>::max() && number <= std::numeric_limits<float>::max())) {
      fail(std::string(key) + " is " + show(*value) + "; must fit a 32-bit float (use raw for infinities and NaN)");
      return 0;
    }
    return static_cast<float>(number);
  }

  std::array<std::uint32_t, 3> extents(const char* key) {
    std::array<std::uint32_t, 3> result{1, 1, 1};
    const Json* value = get(key, "three integers of at least 1");
    if (value != nullptr && (!value->is_array() || value->size() != 3)) {
      fail(std::string(key) + " is " + show(*value) + "; must be three integers of at least 1");
      return result;
    }
    for (std::size_t i = 0; value != nullptr && i < 3; ++i) {
      result[i] = static_cast<std::uint32_t>(to_unsigned((*value)[i], key, 1, UINT32_MAX));
    }
    return result;
  }

  std::vector<std::int64_t> shape(const char* key) {
    std::vector<std::int64_t> result;
    const Json* value = get(key, "an array of integers");
    if (value != nullptr && !value->is_array()) {
      fail(std::string(key) + " is " + show(*value) + "; must be an array of integers of at least 0");
      return result;
    }
    for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
      result.push_back(static_cast<std::int64_t>(to_unsigned((*value)[i], key, 0, INT64_MAX)));
    }
    return result;
  }

  const Json* get(const char* key, const std::string& expected) {
    const auto found = object_.find(key);
    if (found == object_.end()) {
      fail(std::string("no ") + key + "; must be " + expected);
      return nullptr;
    }
    return &*found;
  }

  void fail(const std::string& message) {
    if (error_.empty()) {
      error_ = where_ + ": " + message;
    }
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  std::uint64_t to_unsigned(const Json& value, const char* key, std::uint64_t low, std::uint64_t high) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < low || value.get<std::uint64_t>() > high) {
      fail(std::string(key) + " has " + show(value) + "; must be an integer from " + std::to_string(low) + " to " +
           std::to_string(high));
      return 0;
    }
    return value.get<std::uint64_t>();
  }

  const Json& object_;
  std::string where_;
  std::string error_;
};

template <typename T>
void set_value(JobArgument& argument, T value) {
  argument.value.resize(sizeof value);
  std::memcpy(argument.value.data(), &value, sizeof value);
  argument.alignment = sizeof value;
}

int hex_digit(char c) {
  constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
  const std::size_t at = kDigits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at % 16);
}

void set_raw(JobArgument& argument, Fields& fields) {
  const std::string hex = fields.text("raw");
  if (hex.size() % 2 != 0 || hex.size() / 2 > kLargestSegment) {
    fields.fail("raw has " + std::to_string(hex.size()) + " digits; must be an even number up to " +
                std::to_string(2 * kLargestSegment));
    return;
  }
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) {
      fields.fail("raw has " + quote(std::string_view(hex).substr(i, 2)) + " at digit " + std::to_string(i) +
                  "; must be hexadecimal digits");
      return;
    }
    argument.value.push_back(static_cast<std::byte>(high * 16 + low));
  }
  // The largest power of two that divides the size, as for an array of the widest fitting element.
  while (argument.alignment < kLargestAlignment && argument.value.size() % (2 * argument.alignment) == 0) {
    argument.alignment *= 2;
  }
}

void read_buffer(JobArgument& argument, Fields& fields, const std::filesystem::path& folder) {
  if (fields.has("write")) {
    argument.write = folder / fields.text("write");
  }
  if (fields.has("dtype")) {
    const std::string name = fields.text("dtype");
    argument.type = from_dtype_name(name);
    if (!argument.type) {
      fields.fail("dtype is " + quote(name) + "; must be one of " + dtype_names());
    }
  }
  if (fields.has("shape")) {
    argument.shape = fields.shape("shape");
  }
  std::uint64_t labelled = 0;
  if (argument.shape && argument.kind == JobArgument::Kind::kFilled &&
      (!checked_bytes(*argument.shape, argument.type ? element_bytes(*argument.type) : 1, labelled) ||
       labelled != argument.bytes)) {
    fields.fail("dtype and shape label " + std::to_string(labelled) + " bytes, but the buffer has " +
                std::to_string(argument.bytes));
  }
}

JobArgument read_argument(Fields& fields, const std::filesystem::path& folder) {
  using Kind = JobArgument::Kind;
  JobArgument argument;
  if (fields.has("offset")) {
    argument.offset = static_cast<std::uint32_t>(fields.unsigned_integer("offset", 0, kLargestSegment));
  }
  if (fields.has("buffer")) {
    fields.allow_only({"buffer", "write", "dtype", "shape", "offset"});
    argument.kind = Kind::kFile;
    argument.source = folder / fields.text("buffer");
    read_buffer(argument, fields, folder);
  } else if (fields.has("bytes")) {
    fields.allow_only({"bytes", "fill", "write", "dtype", "shape", "offset"});
    argument.kind = Kind::kFilled;
    argument.bytes = fields.unsigned_integer("bytes", 0, kLargestBuffer);
    argument.fill = static_cast<std::byte>(fields.has("fill") ? fields.unsigned_integer("fill", 0, 255) : 0);
    read_buffer(argument, fields, folder);
  } else if (fields.has("i32")) {
    fields.allow_only({"i32", "offset"});
    set_value(argument, static_cast<std::int32_t>(fields.signed_integer("i32", INT32_MIN, INT32_MAX)));
  } else if (fields.has("u32")) {
    fields.allow_only({"u32", "offset"});
    set_value(argument, static_cast<std::uint32_t>(fields.unsigned_integer("u32", 0, UINT32_MAX)));
  } else if (fields.has("i64")) {
    fields.allow_only({"i64", "offset"});
    set_value(argument, fields.signed_integer("i64", INT64_MIN, INT64_MAX));
  } else if (fields.has("f32")) {
    fields.allow_only({"f32", "offset"});
    set_value(argument, fields.single("f32"));
  } else if (fields.has("raw")) {
    fields.allow_only({"raw", "offset"});
    set_raw(argument, fields);
  } else if (fields.has("null")) {
    fields.allow_only({"null", "offset"});
    const Json* value = fields.get("null", "true");
    if (*value != true) {
      fields.fail("null is " + show(*value) + "; must be true");
    }
    set_value(argument, std::uint64_t{0});
  } else {
    fields.fail("must have one of buffer, bytes, i32, u32, i64, f32, raw, null");
  }
  return argument;
}

}  // namespace

Expected<Job> parse_job(std::string_view text, const std::filesystem::path& folder, const std::string& name) {
  const Expected<Json> root = parse_json(text, name);
  if (!root) {
    return tl::unexpected<Error>(root.error());
  }
  if (!root->is_object()) {
    return bad(name + ": is " + show(*root) + "; must be an object with object, kernel, grid, block and args");
  }
  Fields fields(*root, name);
  fields.allow_only({"object", "kernel", "grid", "block", "lds", "args"});
  Job job;
  job.object = folder / fields.text("object");
  job.kernel = fields.text("kernel");
  job.launch.grid = fields.extents("grid");
  job.launch.block = fields.extents("block");
  if (fields.has("lds")) {
    job.launch.dynamic_lds = static_cast<std::uint32_t>(fields.unsigned_integer("lds", 0, kLargestLds));
  }
  std::uint64_t items = 0;
  const std::array<std::int64_t, 3> block{job.launch.block[0], job.launch.block[1], job.launch.block[2]};
  if (!checked_bytes(block, 1, items) || items > kLargestWorkgroup) {
    fields.fail("block is " + show((*root)["block"]) + "; its product must be at most " +
                std::to_string(kLargestWorkgroup) + " work-items");
  }
  const Json none = Json::array();
  const Json& arguments = fields.has("args") ? (*root)["args"] : none;
  if (!arguments.is_array()) {
    fields.fail("args is " + show(arguments) + "; must be an array");
  }
  if (!fields.error().empty()) {
    return bad(fields.error());
  }
  for (const Json& entry : arguments) {
    const std::string where = name + ": args[" + std::to_string(job.arguments.size()) + "]";
    if (!entry.is_object()) {
      return bad(where + " is " + show(entry) + "; must be an object");
    }
    Fields argument(entry, where);
    job.arguments.push_back(read_argument(argument, folder));
    if (!argument.error().empty()) {
      return bad(argument.error());
    }
  }
  return job;
}

Expected<Job> read_job(const std::filesystem::path& path) {
  const Expected<std::vector<std::byte>> bytes = read_file(path);
  if (!bytes) {
    return tl::unexpected<Error>(bytes.error());
  }
  return parse_job({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path.parent_path(), path.string());
}

}  // namespace zyfa::io
