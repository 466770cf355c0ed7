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

// The shadow arrays as plain pointers: byte stores may alias a vector's own, which would be loaded anew for every lane.
struct QuietPass {
  u8* __restrict writer;
  u8* __restrict reader;
  u8* __restrict atomic;
  u8* __restrict valid;
  u32 size, low, high;

  template <typename Word>
  static Word load(const u8* p) {
    Word w;
    std::memcpy(&w, p, sizeof(w));
    return w;
  }

  // Lanes whose bytes are not, word by word, all untouched or all of one kind that does not conflict; the others enter.
  template <LdsUse Use, typename Word, u32 Words>
  u64 enter(u64 lanes, const u32* address, u32 offset, Word mine) {
    constexpr auto kAll = static_cast<Word>(~Word{0}), kWritten = static_cast<Word>(kOnes);
    constexpr u32 kBytes = sizeof(Word) * Words;
    u8* const marked = Use == LdsUse::kRead ? reader : Use == LdsUse::kWrite ? writer : atomic;
    u32 least = low, most = high;
    u64 loud = 0;
    for (u64 rest = lanes; rest != 0; rest &= rest - 1) {
      const u32 at = address[__builtin_ctzll(rest)] + offset;
      bool bad = at % kBytes != 0 || at >= size || kBytes > size - at;
      for (u32 i = 0; i < Words && !bad; ++i) {
        const u32 byte = at + i * static_cast<u32>(sizeof(Word));
        const Word w = load<Word>(writer + byte), r = load<Word>(reader + byte);
        const bool foreign = (r != 0) & (r != mine);
        bad = ((w != 0) & (w != mine)) | (Use == LdsUse::kRead ? foreign & (r != kAll) : foreign);
        if constexpr (Use != LdsUse::kWrite) bad |= load<Word>(valid + byte) != kWritten;
        if constexpr (Use == LdsUse::kAtomic) {
          const Word a = load<Word>(atomic + byte);
          bad |= (a != 0) & (a != mine) & (a != kAll);
        }
      }
      if (bad) {
        loud |= rest & (0 - rest);
        continue;
      }
      for (u32 i = 0; i < Words; ++i) {
        const u32 byte = at + i * static_cast<u32>(sizeof(Word));
        if (load<Word>(marked + byte) == 0) std::memcpy(marked + byte, &mine, sizeof(mine));
        if constexpr (Use == LdsUse::kWrite) std::memcpy(valid + byte, &kWritten, sizeof(kWritten));
      }
      least = at < least ? at : least;
      most = at + kBytes > most ? at + kBytes : most;
    }
    low = least;
    high = most;
    return loud;
  }
};

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

u64 LdsShadow::enter_quietly(u32 wave, LdsUse use, u64 lanes, const u32* address, u32 offset, u32 bytes) {
  switch (use) {
    case LdsUse::kRead:
      return any_atomic_ ? lanes : enter_as<LdsUse::kRead>(wave, lanes, address, offset, bytes);
    case LdsUse::kWrite:
      return any_atomic_ ? lanes : enter_as<LdsUse::kWrite>(wave, lanes, address, offset, bytes);
    case LdsUse::kAtomic:
      any_atomic_ = true;
      return enter_as<LdsUse::kAtomic>(wave, lanes, address, offset, bytes);
  }
  return lanes;
}

template <LdsUse Use>
u64 LdsShadow::enter_as(u32 wave, u64 lanes, const u32* address, u32 offset, u32 bytes) {
  QuietPass pass{writer_.data(), reader_.data(), atomic_.data(), valid_.data(), static_cast<u32>(valid_.size()),
                 low_,           high_};
  const u64 mine = (wave + 1) * kOnes;
  u64 loud = lanes;
  switch (bytes) {
    case 1:
      loud = pass.enter<Use, u8, 1>(lanes, address, offset, static_cast<u8>(mine));
      break;
    case 2:
      loud = pass.enter<Use, std::uint16_t, 1>(lanes, address, offset, static_cast<std::uint16_t>(mine));
      break;
    case 4:
      loud = pass.enter<Use, u32, 1>(lanes, address, offset, static_cast<u32>(mine));
      break;
    case 8:
      loud = pass.enter<Use, u64, 1>(lanes, address, offset, mine);
      break;
    case 16:
      loud = pass.enter<Use, u64, 2>(lanes, address, offset, mine);
      break;
    default:
      break;
  }
  low_ = pass.low;
  high_ = pass.high;
  return loud;
}

u32 LdsShadow::first_unwritten(u32 address, u32 bytes) const {
  u32 at = address;
  while (at < address + bytes && valid_[at] != 0) ++at;
  return at;
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
