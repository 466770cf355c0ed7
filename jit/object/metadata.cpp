// MessagePack through msgpack-cxx, with limits on depth and counts so that a short note cannot ask for much memory.
#include "jit/object/metadata.h"

#include <algorithm>
#include <exception>
#include <limits>

#define MSGPACK_NO_BOOST
#include <msgpack.hpp>

namespace zyfa::jit {
namespace {

using Node = msgpack::object;

tl::unexpected<Error> corrupt(const std::string& what) {
  return make_error(ErrorCode::kCorruptData, "code object metadata is malformed: " + what);
}

std::string_view text_of(const Node& node) {
  return node.type == msgpack::type::STR ? std::string_view(node.via.str.ptr, node.via.str.size) : std::string_view();
}

const Node* find(const Node& map, std::string_view key) {
  if (map.type != msgpack::type::MAP) return nullptr;
  for (std::uint32_t i = 0; i < map.via.map.size; ++i) {
    const auto& entry = map.via.map.ptr[i];
    if (text_of(entry.key) == key) return &entry.val;
  }
  return nullptr;
}

// Reads an unsigned number that fits 32 bits into `value`; an absent key leaves it alone.
bool read_number(const Node& map, std::string_view key, std::uint32_t& value) {
  const Node* const node = find(map, key);
  if (node == nullptr) return true;
  if (node->type != msgpack::type::POSITIVE_INTEGER || node->via.u64 > std::numeric_limits<std::uint32_t>::max()) {
    return false;
  }
  value = static_cast<std::uint32_t>(node->via.u64);
  return true;
}

bool read_argument(const Node& node, KernelArgument& argument) {
  const Node* const kind = find(node, ".value_kind");
  if (kind == nullptr || kind->type != msgpack::type::STR) return false;
  const std::string_view kind_name = text_of(*kind);
  argument.is_pointer = kind_name == "global_buffer";
  const Node* const name = find(node, ".name");
  // Hidden arguments carry no name; what they are is what a reader needs.
  argument.name = kind_name.starts_with("hidden_") || name == nullptr ? std::string() : std::string(text_of(*name));
  if (kind_name.starts_with("hidden_")) argument.name = kind_name;
  return read_number(node, ".offset", argument.offset) && read_number(node, ".size", argument.size);
}

bool read_block(const Node& node, std::array<std::uint32_t, 3>& block) {
  if (node.type != msgpack::type::ARRAY || node.via.array.size != block.size()) return false;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const Node& size = node.via.array.ptr[i];
    if (size.type != msgpack::type::POSITIVE_INTEGER || size.via.u64 > std::numeric_limits<std::uint32_t>::max())
      return false;
    block[i] = static_cast<std::uint32_t>(size.via.u64);
  }
  return true;
}

Expected<KernelMetadata> read_kernel(const Node& node) {
  KernelMetadata kernel;
  const Node* const name = find(node, ".name");
  const Node* const symbol = find(node, ".symbol");
  if (name == nullptr || text_of(*name).empty() || symbol == nullptr || text_of(*symbol).empty()) {
    return corrupt("a kernel has no .name or no .symbol");
  }
  KernelImage& image = kernel.image;
  image.name = text_of(*name);
  kernel.symbol = text_of(*symbol);
  image.has_metadata = true;
  struct Field {
    std::string_view key;
    std::uint32_t* value;
  };
  const Field fields[] = {{".kernarg_segment_size", &image.kernarg_bytes},
                          {".group_segment_fixed_size", &image.group_bytes},
                          {".private_segment_fixed_size", &image.private_bytes},
                          {".sgpr_count", &image.sgprs},
                          {".vgpr_count", &image.vgprs},
                          {".agpr_count", &image.agprs},
                          {".max_flat_workgroup_size", &image.max_workgroup},
                          {".wavefront_size", &image.wavefront_size}};
  for (const Field& field : fields) {
    if (!read_number(node, field.key, *field.value)) {
      return corrupt(std::string(field.key) + " of kernel " + image.name + " is not a 32-bit unsigned number");
    }
  }
  if (const Node* const required = find(node, ".reqd_workgroup_size"); required != nullptr) {
    if (!read_block(*required, image.required_block))
      return corrupt(".reqd_workgroup_size of kernel " + image.name + " is not a list of 3 32-bit unsigned numbers");
  }
  if (const Node* const arguments = find(node, ".args")) {
    if (arguments->type != msgpack::type::ARRAY) return corrupt(".args of kernel " + image.name + " is not a list");
    for (std::uint32_t i = 0; i < arguments->via.array.size; ++i) {
      KernelArgument argument;
      if (!read_argument(arguments->via.array.ptr[i], argument)) {
        return corrupt("argument " + std::to_string(i) + " of kernel " + image.name + " has no kind, offset or size");
      }
      image.arguments.push_back(std::move(argument));
    }
  }
  return kernel;
}

Expected<Metadata> read_root(const Node& root) {
  if (root.type != msgpack::type::MAP) return corrupt("it is not a map");
  Metadata metadata;
  if (const Node* const target = find(root, "amdhsa.target")) metadata.target = text_of(*target);
  const Node* const kernels = find(root, "amdhsa.kernels");
  if (kernels == nullptr) return metadata;
  if (kernels->type != msgpack::type::ARRAY) return corrupt("amdhsa.kernels is not a list");
  for (std::uint32_t i = 0; i < kernels->via.array.size; ++i) {
    auto kernel = read_kernel(kernels->via.array.ptr[i]);
    if (!kernel) return tl::unexpected<Error>(kernel.error());
    metadata.kernels.push_back(std::move(*kernel));
  }
  return metadata;
}

}  // namespace

Expected<Metadata> read_metadata(std::span<const std::byte> note) {
  constexpr std::size_t kMaxEntries = 1 << 16, kMaxDepth = 16;
  const std::size_t entries = std::min(kMaxEntries, note.size());
  const msgpack::unpack_limit limit(entries, entries, note.size(), note.size(), note.size(), kMaxDepth);
  try {
    const msgpack::object_handle handle =
        msgpack::unpack(reinterpret_cast<const char*>(note.data()), note.size(), nullptr, nullptr, limit);
    return read_root(handle.get());
  } catch (const std::exception& reason) {
    return corrupt(reason.what());
  }
}

}  // namespace zyfa::jit
