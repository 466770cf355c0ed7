// LDS race and definedness tracking: see strict_lds.h.
#include "runtime/sim/exec/strict_lds.h"

#include <algorithm>
#include <cstring>

namespace zyfa::sim {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u8 kSeveral = 0xff;
constexpr u64 kOnes = 0x0101010101010101ull;

u64 load8(const u8* p) {
  u64 x;
  std::memcpy(&x, p, 8);
  return x;
}
void store8(u8* p, u64 x) { std::memcpy(p, &x, 8); }

// Every byte is 0 or `tag`. Eight at a time while they are uniform, which is nearly always.
bool only(const u8* p, u32 bytes, u8 tag) {
  while (bytes >= 8) {
    const u64 x = load8(p);
    if (x != 0 && x != tag * kOnes) break;
    p += 8;
    bytes -= 8;
  }
  for (u32 i = 0; i < bytes; ++i)
    if (p[i] != 0 && p[i] != tag) return false;
  return true;
}

}  // namespace

void LdsShadow::reset(u32 bytes) {
  for (auto* v : {&writer_, &reader_, &atomic_, &valid_}) v->assign(bytes, 0);
  low_ = ~0u;
  high_ = 0;
  any_atomic_ = false;
}

LdsVerdict LdsShadow::check(u32 wave, u32 address, u32 bytes, bool is_write, bool is_atomic) const {
  const u8 mine = static_cast<u8>(wave + 1);
  for (u32 i = address; i < address + bytes; ++i) {
    const u8 w = writer_[i], r = reader_[i], a = atomic_[i];
    if ((w & kDma) && ((w & kCarried) || (w & kWave) == mine))
      return {LdsConflict::kInFlight, static_cast<u32>(w & kWave) - 1, i};
    const bool race = (w != 0 && w != mine) || (is_write && r != 0 && r != mine) || (!is_atomic && a != 0 && a != mine);
    if (race) return {LdsConflict::kRace, 0, i};
  }
  return {};
}

template <unsigned Words>
u64 LdsShadow::read_words(u32 wave, u64 lanes, const u32* address, u32 offset) {
  constexpr u32 kBytes = 8 * Words;
  const u64 mine = (wave + 1) * kOnes;
  const auto size = static_cast<u32>(valid_.size());
  const u8 *writer = writer_.data(), *valid = valid_.data();
  u8* reader = reader_.data();
  u32 low = low_, high = high_;
  u64 loud = 0;
  for (u64 rest = lanes; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctzll(rest));
    const u32 at = address[l] + offset;
    if (at % kBytes != 0 || at >= size || kBytes > size - at) {
      loud |= rest & (0 - rest);
      continue;
    }
    // One branch for all of an access: nearly always nothing is wrong.
    u64 bad = 0, r[Words];
    for (unsigned i = 0; i < Words; ++i) {
      const u64 w = load8(writer + at + 8 * i), v = load8(valid + at + 8 * i);
      r[i] = load8(reader + at + 8 * i);
      bad |= static_cast<u64>((w != 0) & (w != mine)) | (v ^ kOnes) |
             static_cast<u64>((r[i] != 0) & (r[i] != mine) & (r[i] != ~0ull));
    }
    if (bad != 0) {
      loud |= rest & (0 - rest);
      continue;
    }
    for (unsigned i = 0; i < Words; ++i)
      if (r[i] == 0) store8(reader + at + 8 * i, mine);
    low = at < low ? at : low;
    high = at + kBytes > high ? at + kBytes : high;
  }
  low_ = low;
  high_ = high;
  return loud;
}

u64 LdsShadow::read_quietly(u32 wave, u64 lanes, const u32* address, u32 offset, u32 bytes) {
  if (any_atomic_ || (bytes != 8 && bytes != 16)) return lanes;
  return bytes == 16 ? read_words<2>(wave, lanes, address, offset) : read_words<1>(wave, lanes, address, offset);
}

LdsVerdict LdsShadow::read(u32 wave, u32 address, u32 bytes) {
  const u8 mine = static_cast<u8>(wave + 1);
  LdsVerdict verdict;
  if (!only(&writer_[address], bytes, mine) || any_atomic_) verdict = check(wave, address, bytes, false, false);
  touch(address, bytes);
  u8* p = &reader_[address];
  while (bytes >= 8) {
    const u64 x = load8(p);
    if (x == 0) {
      store8(p, mine * kOnes);
    } else if (x != mine * kOnes && x != ~0ull) {
      for (u32 i = 0; i < 8; ++i) p[i] = p[i] == 0 || p[i] == mine ? mine : kSeveral;
    }
    p += 8;
    bytes -= 8;
  }
  for (u32 i = 0; i < bytes; ++i) p[i] = p[i] == 0 || p[i] == mine ? mine : kSeveral;
  return verdict;
}

LdsVerdict LdsShadow::write(u32 wave, u32 address, u32 bytes) {
  const u8 mine = static_cast<u8>(wave + 1);
  LdsVerdict verdict;
  if (!only(&writer_[address], bytes, mine) || !only(&reader_[address], bytes, mine) || any_atomic_)
    verdict = check(wave, address, bytes, true, false);
  touch(address, bytes);
  std::memset(&writer_[address], mine, bytes);
  return verdict;
}

LdsVerdict LdsShadow::atomic(u32 wave, u32 address, u32 bytes) {
  const u8 mine = static_cast<u8>(wave + 1);
  const LdsVerdict verdict = check(wave, address, bytes, true, true);
  touch(address, bytes);
  any_atomic_ = true;
  for (u32 i = address; i < address + bytes; ++i) atomic_[i] = atomic_[i] == 0 || atomic_[i] == mine ? mine : kSeveral;
  return verdict;
}

LdsVerdict LdsShadow::begin_dma(u32 wave, u32 address, u32 bytes, DmaAge age) {
  const LdsVerdict verdict = write(wave, address, bytes);
  std::memset(&writer_[address], static_cast<u8>(wave + 1) | kDma | (age == DmaAge::kCarried ? kCarried : 0), bytes);
  return verdict;
}

void LdsShadow::end_dma(u32 wave, u32 address, u32 bytes) {
  touch(address, bytes);
  std::memset(&writer_[address], static_cast<u8>(wave + 1), bytes);
  mark_written(address, bytes);
}

bool LdsShadow::written(u32 address, u32 bytes) const {
  const u8* p = &valid_[address];
  while (bytes >= 8) {
    if (load8(p) != kOnes) return false;
    p += 8;
    bytes -= 8;
  }
  for (u32 i = 0; i < bytes; ++i)
    if (p[i] == 0) return false;
  return true;
}

void LdsShadow::mark_written(u32 address, u32 bytes) { std::memset(&valid_[address], 1, bytes); }

void LdsShadow::barrier() {
  if (low_ < high_) {
    std::memset(&writer_[low_], 0, high_ - low_);
    std::memset(&reader_[low_], 0, high_ - low_);
    if (any_atomic_) std::memset(&atomic_[low_], 0, high_ - low_);
  }
  low_ = ~0u;
  high_ = 0;
  any_atomic_ = false;
}

}  // namespace zyfa::sim
