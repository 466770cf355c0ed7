// A hash of the kernel-argument layout (kernel_args.h): name, offset and size of every field, in order. It is part of
// every cache key, so a changed layout can never meet a kernel built for the old one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "schedules/select/kernel_args.h"

namespace zyfa::schedules {

struct ArgumentField {
  std::string_view name;
  std::size_t offset, size;
};

inline constexpr std::array kAttentionForwardFields{
#define ZYFA_FIELD(field) \
  ArgumentField{#field, offsetof(AttentionForwardArgs, field), sizeof(AttentionForwardArgs::field)}
#define ZYFA_TENSOR(tensor)                                                                                 \
  ArgumentField{#tensor ".address", offsetof(AttentionForwardArgs, tensor) + offsetof(TensorArgs, address), \
                sizeof(TensorArgs::address)},                                                               \
      ArgumentField{#tensor ".token_stride",                                                                \
                    offsetof(AttentionForwardArgs, tensor) + offsetof(TensorArgs, token_stride),            \
                    sizeof(TensorArgs::token_stride)},                                                      \
      ArgumentField{#tensor ".head_stride",                                                                 \
                    offsetof(AttentionForwardArgs, tensor) + offsetof(TensorArgs, head_stride),             \
                    sizeof(TensorArgs::head_stride)},                                                       \
      ArgumentField{#tensor ".batch_stride",                                                                \
                    offsetof(AttentionForwardArgs, tensor) + offsetof(TensorArgs, batch_stride),            \
                    sizeof(TensorArgs::batch_stride)}
#define ZYFA_DESCALE(descale)                                                                                  \
  ArgumentField{#descale ".address", offsetof(AttentionForwardArgs, descale) + offsetof(DescaleArgs, address), \
                sizeof(DescaleArgs::address)},                                                                 \
      ArgumentField{#descale ".batch_stride",                                                                  \
                    offsetof(AttentionForwardArgs, descale) + offsetof(DescaleArgs, batch_stride),             \
                    sizeof(DescaleArgs::batch_stride)},                                                        \
      ArgumentField{#descale ".head_stride",                                                                   \
                    offsetof(AttentionForwardArgs, descale) + offsetof(DescaleArgs, head_stride),              \
                    sizeof(DescaleArgs::head_stride)}
    ZYFA_TENSOR(q),
    ZYFA_TENSOR(k),
    ZYFA_TENSOR(v),
    ZYFA_TENSOR(o),
    ZYFA_FIELD(lse_address),
    ZYFA_FIELD(lse_head_stride),
    ZYFA_FIELD(lse_batch_stride),
    ZYFA_FIELD(query_length),
    ZYFA_FIELD(key_length),
    ZYFA_FIELD(head_ratio_magic),
    ZYFA_FIELD(score_scale_log2),
    ZYFA_DESCALE(q_descale),
    ZYFA_DESCALE(k_descale),
    ZYFA_DESCALE(v_descale),
    ZYFA_TENSOR(q_near),
    ZYFA_TENSOR(k_near),
    ZYFA_TENSOR(v_near),
#undef ZYFA_DESCALE
#undef ZYFA_TENSOR
#undef ZYFA_FIELD
};

// FNV-1a, 64 bits, over "name:offset:size;" of each field with little-endian numbers.
[[nodiscard]] constexpr std::uint64_t hash_layout(std::span<const ArgumentField> fields) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const ArgumentField& field : fields) {
    for (char c : field.name) mix(static_cast<std::uint8_t>(c));
    for (std::size_t number : {field.offset, field.size}) {
      mix(':');
      for (unsigned byte = 0; byte < 8; ++byte) mix(static_cast<std::uint8_t>(number >> (8 * byte)));
    }
    mix(';');
  }
  return hash;
}

// The fields cover the whole struct: no padding, nothing forgotten.
[[nodiscard]] constexpr bool covers(std::span<const ArgumentField> fields, std::size_t size) {
  std::size_t next = 0;
  for (const ArgumentField& field : fields) {
    if (field.offset != next) return false;
    next += field.size;
  }
  return next == size;
}
static_assert(covers(kAttentionForwardFields, sizeof(AttentionForwardArgs)));

inline constexpr std::uint64_t kAttentionForwardLayout = hash_layout(kAttentionForwardFields);

}  // namespace zyfa::schedules
