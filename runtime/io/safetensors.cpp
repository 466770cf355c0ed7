#include "runtime/io/safetensors.h"

#include <algorithm>
#include <tuple>

#include "runtime/io/file.h"
#include "runtime/io/json.h"

namespace zyfa::io {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr const char* kMetadataKey = "__metadata__";

tl::unexpected<Error> corrupt(const std::string& message) { return make_error(ErrorCode::kCorruptData, message); }

std::uint64_t load_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return value;
}

Expected<std::map<std::string, std::string>> read_metadata(const Json& value, const std::string& file) {
  std::map<std::string, std::string> metadata;
  if (!value.is_object()) {
    return corrupt(file + ": __metadata__ is " + show(value) + "; must be an object of strings");
  }
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      return corrupt(file + ": __metadata__ entry " + quote(key) + " is " + show(text) + "; must be a string");
    }
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

Expected<std::vector<std::int64_t>> read_shape(const Json& value, const std::string& where) {
  std::vector<std::int64_t> shape;
  if (!value.is_array()) {
    return corrupt(where + ": shape is " + show(value) + "; must be an array of integers of at least 0");
  }
  for (const Json& extent : value) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > INT64_MAX) {
      return corrupt(where + ": shape " + show(value) + " has the extent " + show(extent) +
                     "; must be an integer from 0 to 2^63 - 1");
    }
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

// Begin and end inside `data`, checked against its size and each other.
Expected<std::pair<std::uint64_t, std::uint64_t>> read_offsets(const Json& value, std::uint64_t data_bytes,
                                                               const std::string& where) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned()) {
    return corrupt(where + ": data_offsets is " + show(value) + "; must be two integers of at least 0");
  }
  const auto begin = value[0].get<std::uint64_t>(), end = value[1].get<std::uint64_t>();
  if (begin > end || end > data_bytes) {
    return corrupt(where + ": data_offsets " + show(value) + " must ascend and end within the " +
                   std::to_string(data_bytes) + " data bytes of the file (is it truncated?)");
  }
  return std::pair{begin, end};
}

Expected<Tensor> read_tensor(const Json& entry, std::span<const std::byte> data, const std::string& where) {
  if (!entry.is_object()) {
    return corrupt(where + ": is " + show(entry) + "; must be an object with dtype, shape and data_offsets");
  }
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!entry.contains(key)) {
      return corrupt(where + ": has no " + key);
    }
  }
  Tensor tensor;
  const Json& dtype = entry["dtype"];
  const auto type = dtype.is_string() ? from_safetensors_name(dtype.get_ref<const std::string&>()) : std::nullopt;
  if (!type) {
    return corrupt(where + ": dtype is " + show(dtype) + "; must be one of " + safetensors_names());
  }
  tensor.type = *type;
  Expected<std::vector<std::int64_t>> shape = read_shape(entry["shape"], where);
  if (!shape) {
    return tl::unexpected<Error>(shape.error());
  }
  tensor.shape = *std::move(shape);
  std::uint64_t bytes = 0;
  if (!checked_bytes(tensor.shape, element_bytes(tensor.type), bytes)) {
    return corrupt(where + ": shape " + shape_text(tensor.shape) + " of " + std::string(safetensors_name(tensor.type)) +
                   " passes 2^63 - 1 bytes");
  }
  const auto offsets = read_offsets(entry["data_offsets"], data.size(), where);
  if (!offsets) {
    return tl::unexpected<Error>(offsets.error());
  }
  const auto [begin, end] = *offsets;
  if (end - begin != bytes) {
    return corrupt(where + ": data_offsets " + show(entry["data_offsets"]) + " hold " + std::to_string(end - begin) +
                   " bytes, but shape " + shape_text(tensor.shape) + " of " +
                   std::string(safetensors_name(tensor.type)) + " needs " + std::to_string(bytes));
  }
  tensor.bytes = data.subspan(begin, bytes);
  return tensor;
}

// Tensors must tile the data: no overlap, no byte that belongs to none.
Status check_tiling(const std::map<std::string, Tensor>& tensors, std::span<const std::byte> data,
                    const std::string& file) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string_view>> spans;
  for (const auto& [name, tensor] : tensors) {
    const auto begin = static_cast<std::uint64_t>(tensor.bytes.data() - data.data());
    spans.emplace_back(begin, begin + tensor.bytes.size(), name);
  }
  std::sort(spans.begin(), spans.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end, name] : spans) {
    if (begin != at) {
      return corrupt(file + ": tensor " + quote(name) + " begins at data byte " + std::to_string(begin) +
                     (begin < at ? ", inside the tensor before it, which ends at " : ", after unused bytes from ") +
                     std::to_string(at));
    }
    at = end;
  }
  if (at != data.size()) {
    return corrupt(file + ": the tensors end at data byte " + std::to_string(at) + ", but the file has " +
                   std::to_string(data.size()) + " data bytes");
  }
  return {};
}

}  // namespace

Expected<Safetensors> Safetensors::parse(std::vector<std::byte> bytes, const std::string& name) {
  Safetensors file;
  file.name_ = name;
  file.bytes_ = std::move(bytes);
  const std::span<const std::byte> all = file.bytes_;
  if (all.size() < kLengthBytes) {
    return corrupt(name + ": " + std::to_string(all.size()) +
                   " bytes are too few for a safetensors file, which starts with an 8-byte header length");
  }
  const std::uint64_t header_bytes = load_u64(all);
  const std::uint64_t allowed = std::min<std::uint64_t>(all.size() - kLengthBytes, kLongestHeader);
  if (header_bytes > allowed) {
    return corrupt(name + ": header length " + std::to_string(header_bytes) + " exceeds " + std::to_string(allowed) +
                   (allowed == kLongestHeader ? ", the limit of the format" : ", what the file has left"));
  }
  const auto text = all.subspan(kLengthBytes, header_bytes);
  const auto data = all.subspan(kLengthBytes + header_bytes);
  const Expected<Json> header =
      parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, name + ": header");
  if (!header) {
    return tl::unexpected<Error>(header.error());
  }
  if (!header->is_object()) {
    return corrupt(name + ": header is " + show(*header) + "; must be an object");
  }
  for (const auto& [key, entry] : header->items()) {
    if (key == kMetadataKey) {
      auto metadata = read_metadata(entry, name);
      if (!metadata) {
        return tl::unexpected<Error>(metadata.error());
      }
      file.metadata_ = *std::move(metadata);
      continue;
    }
    Expected<Tensor> tensor = read_tensor(entry, data, name + ": tensor " + quote(key));
    if (!tensor) {
      return tl::unexpected<Error>(tensor.error());
    }
    file.tensors_.emplace(key, *std::move(tensor));
  }
  if (Status tiling = check_tiling(file.tensors_, data, name); !tiling) {
    return tl::unexpected<Error>(tiling.error());
  }
  return file;
}

Expected<Safetensors> Safetensors::read(const std::filesystem::path& path) {
  Expected<std::vector<std::byte>> bytes = read_file(path);
  if (!bytes) {
    return tl::unexpected<Error>(bytes.error());
  }
  return parse(*std::move(bytes), path.string());
}

Expected<Tensor> Safetensors::find(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  if (found != tensors_.end()) {
    return found->second;
  }
  std::string names;
  for (const auto& [name, unused] : tensors_) {
    names += (names.empty() ? "" : ", ") + quote(name);
  }
  return make_error(ErrorCode::kNotFound,
                    name_ + ": no tensor " + quote(tensor) + "; the file has " + (names.empty() ? "none" : names));
}

Status write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) {
    header[kMetadataKey] = metadata;
  }
  std::vector<std::byte> data;
  for (const auto& [name, tensor] : tensors) {
    std::uint64_t bytes = 0;
    if (name == kMetadataKey || !checked_bytes(tensor.shape, element_bytes(tensor.type), bytes) ||
        bytes != tensor.bytes.size()) {
      return make_error(ErrorCode::kInvalidArgument,
                        path.string() + ": tensor " + quote(name) + " of shape " + shape_text(tensor.shape) + " has " +
                            std::to_string(tensor.bytes.size()) + " bytes, which do not match its shape or name");
    }
    header[name] = {{"dtype", safetensors_name(tensor.type)},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + bytes}}};
    data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  std::string text = header.dump(-1, ' ', true, Json::error_handler_t::replace);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  std::byte length[kLengthBytes];
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<std::byte>(text.size() >> (8 * i));
  }
  return write_file(path, {length, std::as_bytes(std::span(text)), data});
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  }
  return text + "]";
}

}  // namespace zyfa::io
