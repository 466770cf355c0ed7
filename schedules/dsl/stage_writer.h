// What a stage's emit function writes through: its tiles for this iteration, temporaries, instructions.
//
// Errors stick: after the first one nothing more is appended, and error() tells it. So stage code reads straight
// through.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/emit/emitter.h"
#include "jit/isa/instruction.h"
#include "schedules/dsl/plan.h"

namespace zyfa::schedules {

// A source file's path relative to the repository, whatever the build's own path is: origins must not depend on it.
[[nodiscard]] const char* repository_path(const char* file);

// The register tuples and LDS tokens of every tile copy, shared by all stage instances of one listing.
class TileRegisters {
 public:
  // `before`: the tiles of the loop that runs first, or null; state and constants of equal name and shape are shared.
  TileRegisters(const Plan& plan, jit::Listing& listing, const TileRegisters* before = nullptr);

  [[nodiscard]] jit::Reg at(std::string_view tile, std::uint32_t copy, std::uint32_t tuple) const;
  [[nodiscard]] jit::Token arrival_token(std::string_view tile, std::uint32_t copy) const;
  [[nodiscard]] jit::Token reads_token(std::string_view tile, std::uint32_t copy) const;
  // Tokens of all data on its way to LDS, and of all reads of it.
  [[nodiscard]] std::vector<jit::Token> arrival_tokens() const;
  [[nodiscard]] std::vector<jit::Token> reads_tokens() const;
  [[nodiscard]] jit::Reg trips() const { return trips_; }
  [[nodiscard]] jit::Reg wave() const { return wave_; }
  // The tile that a virtual register belongs to, or null.
  [[nodiscard]] const Tile* owner(const jit::Reg& reg) const;

 private:
  struct Entry {
    std::vector<std::vector<jit::Reg>> copies;  // [copy][tuple]
    jit::Token first_token = 0;                 // arrival of copy c: first + 2c, reads: first + 2c + 1
    std::uint32_t token_copies = 0;
  };
  std::map<std::string, Entry, std::less<>> tiles_;
  [[nodiscard]] const Entry* shared_entry(const Tile& tile, const jit::Listing& listing) const;

  std::map<std::uint32_t, const Tile*> owners_;  // by virtual tuple id
  jit::Reg trips_, wave_;
  jit::Token next_token_ = 1;
};

class StageWriter {
 public:
  // Straight-line code outside the loop (setup, finish, glue), appended to `code`.
  StageWriter(const Plan& plan, const TileRegisters& tiles, jit::Listing& listing, std::vector<jit::Instruction>& code,
              std::string name);
  // One stage for the iteration whose index modulo the unroll count is `slot`. Only the tiles that the stage declares,
  // and constants, may be used.
  StageWriter(const Plan& plan, const TileRegisters& tiles, jit::Listing& listing, std::vector<jit::Instruction>& code,
              const PlacedStage& placed, std::uint32_t slot);

  // From here on a tile's name means the one that this suffix makes of it, where the algorithm has that: one body
  // serves several instances of its tiles.
  void use_instance(std::string suffix) { instance_ = std::move(suffix); }

  // The tuple of a tile in this iteration's copy. A state tile has one copy, usable in setup and finish too.
  [[nodiscard]] jit::Reg reg(std::string_view tile, std::uint32_t tuple = 0);
  // LDS byte offset of this iteration's copy.
  [[nodiscard]] std::uint32_t lds(std::string_view tile);
  // Of its first copy, in setup too.
  [[nodiscard]] std::uint32_t lds_base(std::string_view tile) const { return plan_.lds_offset(tile, 0); }
  [[nodiscard]] jit::Reg temp(jit::Bank bank, std::uint16_t registers, const std::string& name);
  [[nodiscard]] jit::Reg vtemp(const std::string& name, std::uint16_t registers = 1) {
    return temp(jit::Bank::kVgpr, registers, name);
  }
  [[nodiscard]] jit::Reg stemp(const std::string& name, std::uint16_t registers = 1) {
    return temp(jit::Bank::kSgpr, registers, name);
  }
  // A tuple that the kernel ABI places.
  [[nodiscard]] jit::Reg pinned(jit::Bank bank, std::uint16_t registers, std::string name, std::uint32_t physical);

  [[nodiscard]] jit::Reg trips() const { return tiles_.trips(); }
  [[nodiscard]] jit::Reg wave() const { return tiles_.wave(); }
  [[nodiscard]] const Placement& placement() const { return plan_.placement; }

  void op(jit::Op op, std::initializer_list<jit::Operand> operands, std::string comment = {}, jit::Modifiers mods = {},
          std::source_location where = std::source_location::current());
  // A direct-to-LDS load that brings part of `tile`; M0 holds its LDS address.
  void load_to_lds(jit::Op op, std::string_view tile, std::initializer_list<jit::Operand> operands,
                   std::string comment = {}, jit::Modifiers mods = {},
                   std::source_location where = std::source_location::current());
  // An LDS read of part of `tile` at the lane's `address` + `offset`, which may be beyond the instruction's 16-bit
  // field.
  void read_lds(jit::Op op, std::string_view tile, jit::Reg to, jit::Reg address, std::uint32_t offset,
                std::string comment = {}, std::source_location where = std::source_location::current());

  [[nodiscard]] jit::Label new_label() { return listing_.new_label(); }
  void place(jit::Label label);

  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void emit(jit::Op op, std::initializer_list<jit::Operand> operands, jit::Modifiers mods, std::string comment,
            jit::Token token, const std::source_location& where);
  [[nodiscard]] std::uint32_t copy_of(std::string_view tile) const;
  [[nodiscard]] const Tile* find_tile(std::string_view tile) const;
  [[nodiscard]] const Tile* usable_tile(std::string_view tile, TileSpace space);
  void check_writes(const jit::Instruction& instruction);
  void fail(std::string message);

  const Plan& plan_;
  const TileRegisters& tiles_;
  jit::Listing& listing_;
  std::vector<jit::Instruction>& code_;
  jit::Emitter emitter_;
  std::string stage_;
  std::string instance_;
  const Stage* declared_ = nullptr;  // null outside the loop
  std::optional<std::uint32_t> slot_;
  Status status_;
};

}  // namespace zyfa::schedules
