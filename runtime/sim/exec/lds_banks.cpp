// Phase tables and counting of bank conflicts: see lds_banks.h.
#include "runtime/sim/exec/lds_banks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "runtime/sim/exec/lds_access.h"
#include "runtime/sim/exec/traffic.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u64 lanes(unsigned first, unsigned last) {
  return (last == 63 ? ~0ull : (1ull << (last + 1)) - 1) & ~((1ull << first) - 1);
}

struct Phases {
  unsigned banks = 64, count = 1;
  std::array<u64, 8> mask{};
};

// The masks of lanes 0-31 and the same of lanes 32-63.
template <std::size_t N>
constexpr Phases both_halves(unsigned banks, const std::array<u64, N>& low) {
  Phases p;
  p.banks = banks;
  p.count = 2 * N;
  for (std::size_t i = 0; i < N; ++i) {
    p.mask[i] = low[i];
    p.mask[N + i] = low[i] << 32;
  }
  return p;
}
template <std::size_t N>
constexpr Phases consecutive(unsigned banks) {
  std::array<u64, N> low{};
  for (unsigned i = 0; i < N; ++i) low[i] = lanes(32 / N * i, 32 / N * (i + 1) - 1);
  return both_halves(banks, low);
}

constexpr Phases kReadB128 =
    both_halves<2>(64, {lanes(0, 3) | lanes(12, 15) | lanes(20, 27), lanes(4, 11) | lanes(16, 19) | lanes(28, 31)});
constexpr Phases kReadB96 = both_halves<4>(32, {lanes(0, 3) | lanes(20, 23), lanes(4, 7) | lanes(16, 19),
                                                lanes(8, 11) | lanes(28, 31), lanes(12, 15) | lanes(24, 27)});
constexpr Phases kReadB64 = consecutive<1>(64);
constexpr Phases kReadB32{64, 1, {~0ull}};
constexpr Phases kWriteB32 = consecutive<1>(32), kWriteB64 = consecutive<2>(32), kWriteB128 = consecutive<4>(32);

const Phases& phases_of(LdsAccessKind kind, u32 bytes) {
  const bool read =
      kind == LdsAccessKind::kRead || kind == LdsAccessKind::kTransposedRead || kind == LdsAccessKind::kRead2;
  if (bytes <= 4) return read ? kReadB32 : kWriteB32;
  if (bytes <= 8) return read ? kReadB64 : kWriteB64;
  if (!read) return kWriteB128;
  return bytes <= 12 ? kReadB96 : kReadB128;
}

// Dwords in the fullest bank. Lanes that touch the same dword count once where they share it.
u32 fullest_bank(u64 mask, u32 bytes, const u32* address, unsigned banks, bool shared) {
  std::array<std::array<u32, 64>, 64> seen;  // dwords by bank; a lane brings at most one to a bank
  std::array<u32, 64> count{};
  u32 most = 0;
  for (u64 rest = mask; rest != 0; rest &= rest - 1) {
    const u32 at = address[std::countr_zero(rest)];
    for (u32 dword = at / 4; dword <= (at + bytes - 1) / 4; ++dword) {
      const u32 bank = dword % banks;
      auto& in_bank = seen[bank];
      const auto end = in_bank.begin() + count[bank];
      if (shared && std::find(in_bank.begin(), end, dword) != end) continue;
      in_bank[count[bank]++] = dword;
      most = std::max(most, count[bank]);
    }
  }
  return most;
}

LdsCost one_access(LdsAccessKind kind, u32 bytes, u64 mask, const u32* address) {
  const Phases& p = phases_of(kind, bytes);
  LdsCost cost;
  for (unsigned i = 0; i < p.count; ++i) {
    if ((p.mask[i] & mask) == 0) continue;
    ++cost.phases;
    cost.extra_cycles += fullest_bank(p.mask[i] & mask, bytes, address, p.banks, kind != LdsAccessKind::kAtomic) - 1;
  }
  return cost;
}

}  // namespace

LdsCost lds_cost(LdsAccessKind kind, u32 bytes, u64 mask, const u32* address, const u32* second) {
  LdsCost cost = one_access(kind, bytes, mask, address);
  if (second != nullptr) {
    const LdsCost other = one_access(kind, bytes, mask, second);
    cost.phases += other.phases;
    cost.extra_cycles += other.extra_cycles;
  }
  return cost;
}

LdsCost lds_cost_of(const Wave& w, const MicroOp& op) {
  const LdsShape shape = lds_shape_of(op);
  if (shape.elements == 0) return {};
  u32 address[kLanes], second[kLanes];
  lds_addresses(w, op, address);
  const u32 scale = shape.elements == 2 ? op.arg : 1;
  for (unsigned l = 0; l < kLanes; ++l) {
    second[l] = address[l] + static_cast<u32>(op.imm2) * scale;
    address[l] += static_cast<u32>(op.imm) * scale;
  }
  // Equal offsets are one access (CDNA4 guide 11.3.1); append and consume update one dword once.
  const bool two = shape.elements == 2 && op.imm != op.imm2;
  const u64 mask = op.sources == 0 && (op.flags & kAtomic) ? w.exec() & (0 - w.exec()) : w.exec();
  return lds_cost(shape.kind, shape.bytes, mask, address, two ? second : nullptr);
}

}  // namespace zyfa::sim
