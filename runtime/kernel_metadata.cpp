#include "runtime/kernel_metadata.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "cache/entry.h"

namespace zyfa {
namespace {

struct NumberField {
  std::string_view name;
  std::uint32_t schedules::KernelInfo::* member;
  std::uint32_t least, most;
};

// Limits of gfx950 (gfx950-isa.md 5), so that no later arithmetic needs to fear a hostile entry.
constexpr NumberField kNumbers[] = {
    {"waves", &schedules::KernelInfo::waves, 1, 16},
    {"query_tile", &schedules::KernelInfo::query_tile, 1, 1u << 16},
    {"vgprs", &schedules::KernelInfo::vgprs, 0, 512},
    {"agprs", &schedules::KernelInfo::agprs, 0, 256},
    {"sgprs", &schedules::KernelInfo::sgprs, 0, 128},
    {"lds_bytes", &schedules::KernelInfo::lds_bytes, 0, 163840},
    {"kernarg_bytes", &schedules::KernelInfo::kernarg_bytes, 0, 1u << 16},
    {"instructions", &schedules::KernelInfo::instructions, 0, 1u << 24},
};

struct TextField {
  std::string_view name;
  std::string KernelMetadata::* member;
};
constexpr TextField kTexts[] = {
    {"llvm_version", &KernelMetadata::llvm_version},
    {"assembler", &KernelMetadata::assembler},
    {"register_map", &KernelMetadata::register_map},
    {"schedule_chart", &KernelMetadata::schedule_chart},
};

tl::unexpected<Error> corrupt(std::string_view name, std::string_view what) {
  return make_error(ErrorCode::kCorruptData, "cache entry metadata: " + std::string(name) + " " + std::string(what));
}

const std::string* find(const cache::MetadataPairs& pairs, std::string_view name) {
  for (const auto& [key, value] : pairs) {
    if (key == name) return &value;
  }
  return nullptr;
}

Status take_number(const cache::MetadataPairs& pairs, const NumberField& field, schedules::KernelInfo& info) {
  const std::string* text = find(pairs, field.name);
  if (text == nullptr) return corrupt(field.name, "is missing");
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < field.least || value > field.most) {
    return corrupt(field.name,
                   "is not a number from " + std::to_string(field.least) + " to " + std::to_string(field.most));
  }
  info.*field.member = value;
  return {};
}

}  // namespace

std::string encode(const KernelMetadata& metadata) {
  cache::MetadataPairs pairs{{"symbol", metadata.info.symbol}};
  for (const NumberField& field : kNumbers) pairs.emplace_back(field.name, std::to_string(metadata.info.*field.member));
  for (const TextField& field : kTexts) pairs.emplace_back(field.name, metadata.*field.member);
  return cache::encode_metadata(pairs);
}

Expected<KernelMetadata> decode_kernel_metadata(std::span<const std::byte> bytes) {
  Expected<cache::MetadataPairs> pairs = cache::decode_metadata(bytes);
  if (!pairs) return tl::unexpected(std::move(pairs.error()));
  KernelMetadata metadata;
  const std::string* symbol = find(*pairs, "symbol");
  if (symbol == nullptr || symbol->empty()) return corrupt("symbol", "is missing");
  metadata.info.symbol = *symbol;
  for (const NumberField& field : kNumbers) {
    if (Status status = take_number(*pairs, field, metadata.info); !status) {
      return tl::unexpected(std::move(status.error()));
    }
  }
  for (const TextField& field : kTexts) {
    if (const std::string* text = find(*pairs, field.name)) metadata.*field.member = *text;
  }
  return metadata;
}

}  // namespace zyfa
