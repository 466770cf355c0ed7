// Buffer bookkeeping of the simulated address space: see memory.h.
#include "runtime/sim/exec/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace zyfa::sim {
namespace {

constexpr std::uint64_t kAlign = 4096;
constexpr std::uint64_t kGuard = 1ull << 20;
constexpr std::uint64_t kEnd = 1ull << 47;

auto first_after(const std::vector<Region>& regions, std::uint64_t address) {
  return std::upper_bound(regions.begin(), regions.end(), address,
                          [](std::uint64_t a, const Region& r) { return a < r.address; });
}

HostBytes allocate_host(std::uint64_t bytes) {
  if (bytes >= Memory::kMapped) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    return HostBytes(static_cast<std::byte*>(mapped), ReleaseBytes{bytes});
  }
  // A buffer of no bytes still has an address of its own.
  HostBytes host(new (std::nothrow) std::byte[bytes ? bytes : 1]);
  if (host) std::memset(host.get(), static_cast<int>(Memory::kUnwritten), bytes);
  return host;
}

}  // namespace

void ReleaseBytes::operator()(std::byte* bytes) const {
  if (mapped != 0) {
    munmap(bytes, mapped);
  } else {
    delete[] bytes;
  }
}

std::uint64_t Memory::allocate(std::uint64_t bytes) {
  if (bytes > kEnd || next_ + bytes + kGuard > kEnd) return 0;
  HostBytes host = allocate_host(bytes);
  if (!host) return 0;
  const std::uint64_t address = next_;
  regions_.push_back(Region{address, bytes, std::move(host)});
  next_ += (bytes + kAlign - 1) / kAlign * kAlign + kGuard;
  return address;
}

bool Memory::release(std::uint64_t address) {
  auto it = first_after(regions_, address);
  if (it == regions_.begin()) return false;
  const auto index = (it - regions_.begin()) - 1;
  if (regions_[index].address != address) return false;
  regions_.erase(regions_.begin() + index);
  return true;
}

const Region* Memory::region_of(std::uint64_t address) const {
  auto it = first_after(regions_, address);
  return it == regions_.begin() ? nullptr : &*(it - 1);
}

std::string Memory::describe(std::uint64_t address) const {
  const Region* below = region_of(address);
  auto it = first_after(regions_, address);
  if (below != nullptr && address - below->address < below->size) {
    return fmt::format("inside the buffer 0x{:x} ({} bytes), {} bytes before its end", below->address, below->size,
                       below->size - (address - below->address));
  }
  const std::uint64_t past = below ? address - (below->address + below->size) : ~0ull;
  const std::uint64_t before = it != regions_.end() ? it->address - address : ~0ull;
  if (past == ~0ull && before == ~0ull) return "there is no buffer";
  if (past <= before)
    return fmt::format("{} bytes past the end of the buffer 0x{:x} ({} bytes)", past, below->address, below->size);
  return fmt::format("{} bytes before the buffer 0x{:x} ({} bytes)", before, it->address, it->size);
}

}  // namespace zyfa::sim
