// Registers and register tuples, virtual before allocation and physical after it.
//
// A tuple is a run of 32-bit registers of one bank. A virtual tuple is named by its id in a RegTable; a Reg may denote
// a part of it (first, count). After allocation `id` is the tuple's first physical register and `first` is 0-based on
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zyfa::jit {

enum class Bank : std::uint8_t { kSgpr, kVgpr, kAgpr, kSpecial };

// Special registers, as ids of Bank::kSpecial. kVcc and kExec are 64-bit pairs (count 2).
enum class Special : std::uint8_t { kVcc, kExec, kM0, kScc, kMode };

struct Reg {
  Bank bank = Bank::kVgpr;
  bool is_virtual = false;
  std::uint16_t count = 0;  // registers denoted; 0 = no register
  std::uint16_t first = 0;  // offset inside the virtual tuple (virtual) or 0 (physical)
  std::uint32_t id = 0;     // virtual tuple id, physical register number, or Special

  bool operator==(const Reg&) const = default;

  // The part [offset, offset + n) of this tuple. Precondition: offset + n <= count.
  [[nodiscard]] Reg sub(std::uint16_t offset, std::uint16_t n = 1) const {
    Reg part = *this;
    part.count = n;
    if (is_virtual) {
      part.first = static_cast<std::uint16_t>(first + offset);
    } else {
      part.id = id + offset;
    }
    return part;
  }
};

inline Reg vgpr(std::uint32_t n, std::uint16_t count = 1) { return {Bank::kVgpr, false, count, 0, n}; }
inline Reg agpr(std::uint32_t n, std::uint16_t count = 1) { return {Bank::kAgpr, false, count, 0, n}; }
inline Reg sgpr(std::uint32_t n, std::uint16_t count = 1) { return {Bank::kSgpr, false, count, 0, n}; }
inline Reg special(Special s) {
  const bool pair = s == Special::kVcc || s == Special::kExec;
  return {Bank::kSpecial, false, static_cast<std::uint16_t>(pair ? 2 : 1), 0, static_cast<std::uint32_t>(s)};
}
inline Reg vcc() { return special(Special::kVcc); }
inline Reg exec() { return special(Special::kExec); }
inline Reg m0() { return special(Special::kM0); }

// "v[4:7]", "s3", "vcc", "m0" for physical registers; "%name[0:3]" needs the table and is printed by RegTable::name.
std::string to_string(const Reg& reg);

// The virtual tuples of one program. Tuples of two registers or more are even-aligned (gfx950-isa.md 1.2); SGPR tuples
// of four or more are 4-aligned (3.2, 3.5).
class RegTable {
 public:
  struct Tuple {
    Bank bank;
    std::uint16_t count;
    std::uint16_t align;
    std::string name;          // as printed in the register map: "score", "out[2]"
    std::int32_t pinned = -1;  // physical register the allocator must give, or -1
  };

  // A new virtual tuple. `pinned` fixes it to a physical register (kernel ABI inputs).
  Reg add(Bank bank, std::uint16_t count, std::string name, std::int32_t pinned = -1);

  [[nodiscard]] const Tuple& at(std::uint32_t id) const { return tuples_[id]; }
  [[nodiscard]] std::size_t size() const { return tuples_.size(); }
  // "%name[0:3]" for a virtual register, to_string for a physical one.
  [[nodiscard]] std::string name(const Reg& reg) const;

 private:
  std::vector<Tuple> tuples_;
};

}  // namespace zyfa::jit
