// Simulated device memory: buffers in a 48-bit address space with guard gaps between them.
//
// Invariants: addresses are never reused, so an access to a released buffer is found; no two buffers are adjacent;
// find() is byte exact. Buffers are created and released only while no launch runs (SimDevice holds the lock).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zyfa::sim {

// Host bytes of one buffer. Large ones are mapped and take memory only where they are touched, so that a test may span
// more address space than the host has memory.
struct ReleaseBytes {
  std::size_t mapped = 0;  // bytes to unmap; 0: from new[]
  void operator()(std::byte* bytes) const;
};
using HostBytes = std::unique_ptr<std::byte[], ReleaseBytes>;

struct Region {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  HostBytes bytes;
};

class Memory {
 public:
  // Unwritten bytes are 0xff: NaN in every float format, so that their use shows. Buffers of kMapped bytes and more
  // hold 0.
  static constexpr std::byte kUnwritten{0xff};
  static constexpr std::uint64_t kMapped = 1ull << 30;

  // 0 when the host has no memory or the address space is used up.
  std::uint64_t allocate(std::uint64_t bytes);
  // False when `address` is not the start of a live buffer.
  bool release(std::uint64_t address);

  // Host bytes of [address, address + size), or nullptr when any byte is outside of one live buffer.
  [[nodiscard]] std::byte* find(std::uint64_t address, std::uint64_t size) const {
    const Region* r = region_of(address);
    if (r == nullptr || size > r->size || address - r->address > r->size - size) return nullptr;
    return r->bytes.get() + (address - r->address);
  }
  // The live buffer with the greatest start <= address, or nullptr.
  [[nodiscard]] const Region* region_of(std::uint64_t address) const;

  // "128 bytes past the end of the buffer 0x2000... (4096 bytes)".
  [[nodiscard]] std::string describe(std::uint64_t address) const;

 private:
  std::vector<Region> regions_;  // ascending
  std::uint64_t next_ = 0x2000'0000'0000ull;
};

}  // namespace zyfa::sim
