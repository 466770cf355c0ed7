// A hash of the kernel-argument layout (kernel_args.h, quantise_args.h): name, offset and size of every field, in
// order. It is part of every cache key, so a changed layout can never meet a kernel built for the old one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "schedules/select/kernel_args.h"
#include "schedules/select/kernel_spec.h"
#include "schedules/select/quantise_args.h"

namespace zyfa::schedules {

struct ArgumentField {
  std::string_view name;
  std::size_t offset, size;
};

#define ZYFA_FIELD(args, field) \
  ArgumentField { #field, offsetof(args, field), sizeof(args::field) }
#define ZYFA_PART(args, whole, type, part) \
  ArgumentField { #whole "." #part, offsetof(args, whole) + offsetof(type, part), sizeof(type::part) }
#define ZYFA_TENSOR(args, tensor)                                                                  \
  ZYFA_PART(args, tensor, TensorArgs, address), ZYFA_PART(args, tensor, TensorArgs, token_stride), \
      ZYFA_PART(args, tensor, TensorArgs, head_stride), ZYFA_PART(args, tensor, TensorArgs, batch_stride)
#define ZYFA_DESCALE(args, descale)                                                                    \
  ZYFA_PART(args, descale, DescaleArgs, address), ZYFA_PART(args, descale, DescaleArgs, batch_stride), \
      ZYFA_PART(args, descale, DescaleArgs, head_stride)

inline constexpr std::array kAttentionForwardFields{
    ZYFA_TENSOR(AttentionForwardArgs, q),
    ZYFA_TENSOR(AttentionForwardArgs, k),
    ZYFA_TENSOR(AttentionForwardArgs, v),
    ZYFA_TENSOR(AttentionForwardArgs, o),
    ZYFA_FIELD(AttentionForwardArgs, lse_address),
    ZYFA_FIELD(AttentionForwardArgs, lse_head_stride),
    ZYFA_FIELD(AttentionForwardArgs, lse_batch_stride),
    ZYFA_FIELD(AttentionForwardArgs, query_length),
    ZYFA_FIELD(AttentionForwardArgs, key_length),
    ZYFA_FIELD(AttentionForwardArgs, head_ratio_magic),
    ZYFA_FIELD(AttentionForwardArgs, score_scale_log2),
    ZYFA_DESCALE(AttentionForwardArgs, q_descale),
    ZYFA_DESCALE(AttentionForwardArgs, k_descale),
    ZYFA_DESCALE(AttentionForwardArgs, v_descale),
    ZYFA_TENSOR(AttentionForwardArgs, q_near),
    ZYFA_TENSOR(AttentionForwardArgs, k_near),
    ZYFA_TENSOR(AttentionForwardArgs, v_near),
};

inline constexpr std::array kQuantiseFields{
    ZYFA_TENSOR(QuantiseArgs, input),
    ZYFA_TENSOR(QuantiseArgs, codes),
    ZYFA_FIELD(QuantiseArgs, partials),
    ZYFA_FIELD(QuantiseArgs, partials_head_stride),
    ZYFA_FIELD(QuantiseArgs, partials_batch_stride),
    ZYFA_DESCALE(QuantiseArgs, descale),
    ZYFA_DESCALE(QuantiseArgs, key_descale),
    ZYFA_FIELD(QuantiseArgs, tokens),
    ZYFA_FIELD(QuantiseArgs, group_tokens),
    ZYFA_FIELD(QuantiseArgs, heads),
    ZYFA_FIELD(QuantiseArgs, partial_count),
    ZYFA_FIELD(QuantiseArgs, entry_count),
    ZYFA_FIELD(QuantiseArgs, score_mantissa),
};

#undef ZYFA_DESCALE
#undef ZYFA_TENSOR
#undef ZYFA_PART
#undef ZYFA_FIELD

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

static_assert(covers(kQuantiseFields, sizeof(QuantiseArgs)));

inline constexpr std::uint64_t kAttentionForwardLayout = hash_layout(kAttentionForwardFields);
inline constexpr std::uint64_t kQuantiseLayout = hash_layout(kQuantiseFields);

// Of a family's kernels.
[[nodiscard]] constexpr std::uint64_t argument_layout(Family family) {
  return family == Family::kAttentionForward ? kAttentionForwardLayout : kQuantiseLayout;
}

}  // namespace zyfa::schedules
