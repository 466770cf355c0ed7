#include "schedules/dsl/stage_writer.h"

#include <algorithm>

#include "jit/isa/op_info.h"

namespace zyfa::schedules {
namespace {

constexpr std::uint32_t kDsOffsetLimit = 0x10000;  // DS instruction offsets have 16 bits (gfx950-isa.md 3.3)

}  // namespace

const char* repository_path(const char* file) {
  // This file's own path, as the build spells it, less its known end is what every path starts with.
  constexpr std::string_view kHere = __FILE__;
  constexpr std::string_view kEnd = "schedules/dsl/stage_writer.cpp";
  static_assert(kHere.ends_with(kEnd));
  constexpr std::string_view kRoot = kHere.substr(0, kHere.size() - kEnd.size());
  return std::string_view(file).starts_with(kRoot) ? file + kRoot.size() : file;
}

TileRegisters::TileRegisters(const Plan& plan, jit::Listing& listing, const TileRegisters* before) {
  if (before != nullptr) {
    trips_ = before->trips_;
    wave_ = before->wave_;
    next_token_ = before->next_token_;
  } else {
    trips_ = listing.regs.add(jit::Bank::kSgpr, 1, "trips");
    wave_ = listing.regs.add(jit::Bank::kSgpr, 1, "wave");
  }
  for (const Tile& tile : plan.algorithm->tiles) {
    Entry entry;
    if (const Entry* shared = before != nullptr ? before->shared_entry(tile, listing) : nullptr) entry = *shared;
    const std::uint32_t copies = plan.copies(tile.name);
    if (tile.space == TileSpace::kLds) {
      entry.first_token = next_token_;
      entry.token_copies = copies;
      next_token_ += 2 * copies;
    }
    for (std::uint32_t copy = 0; tile.space == TileSpace::kRegisters && entry.copies.size() < copies; ++copy) {
      const std::string name = copies == 1 ? tile.name : tile.name + "#" + std::to_string(copy);
      std::vector<jit::Reg>& tuples = entry.copies.emplace_back();
      for (std::uint32_t t = 0; t < tile.shape.tuples; ++t) {
        tuples.push_back(listing.regs.add(tile.shape.bank, tile.shape.registers,
                                          tile.shape.tuples == 1 ? name : name + "[" + std::to_string(t) + "]"));
      }
    }
    for (const std::vector<jit::Reg>& tuples : entry.copies) {
      for (const jit::Reg& tuple : tuples) owners_[tuple.id] = &tile;
    }
    tiles_.emplace(tile.name, std::move(entry));
  }
}

const TileRegisters::Entry* TileRegisters::shared_entry(const Tile& tile, const jit::Listing& listing) const {
  if (tile.space != TileSpace::kRegisters || tile.life == TileLife::kIteration) return nullptr;
  const auto found = tiles_.find(tile.name);
  if (found == tiles_.end() || found->second.copies.size() != 1) return nullptr;
  const std::vector<jit::Reg>& tuples = found->second.copies.front();
  const jit::RegTable::Tuple& first = listing.regs.at(tuples.front().id);
  const bool same =
      tuples.size() == tile.shape.tuples && first.bank == tile.shape.bank && first.count == tile.shape.registers;
  return same ? &found->second : nullptr;
}

const Tile* TileRegisters::owner(const jit::Reg& reg) const {
  const auto found = reg.is_virtual ? owners_.find(reg.id) : owners_.end();
  return found == owners_.end() ? nullptr : found->second;
}

jit::Reg TileRegisters::at(std::string_view tile, std::uint32_t copy, std::uint32_t tuple) const {
  return tiles_.find(tile)->second.copies.at(copy).at(tuple);
}

jit::Token TileRegisters::arrival_token(std::string_view tile, std::uint32_t copy) const {
  return tiles_.find(tile)->second.first_token + 2 * copy;
}

jit::Token TileRegisters::reads_token(std::string_view tile, std::uint32_t copy) const {
  return arrival_token(tile, copy) + 1;
}

std::vector<jit::Token> TileRegisters::arrival_tokens() const {
  std::vector<jit::Token> tokens;
  for (const auto& [name, entry] : tiles_) {
    for (std::uint32_t copy = 0; copy < entry.token_copies; ++copy) tokens.push_back(entry.first_token + 2 * copy);
  }
  return tokens;
}

std::vector<jit::Token> TileRegisters::reads_tokens() const {
  std::vector<jit::Token> tokens = arrival_tokens();
  for (jit::Token& token : tokens) ++token;
  return tokens;
}

StageWriter::StageWriter(const Plan& plan, const TileRegisters& tiles, jit::Listing& listing,
                         std::vector<jit::Instruction>& code, std::string name)
    : plan_(plan),
      tiles_(tiles),
      listing_(listing),
      code_(code),
      emitter_(code, listing.regs),
      stage_(std::move(name)) {}

StageWriter::StageWriter(const Plan& plan, const TileRegisters& tiles, jit::Listing& listing,
                         std::vector<jit::Instruction>& code, const PlacedStage& placed, std::uint32_t slot)
    : plan_(plan),
      tiles_(tiles),
      listing_(listing),
      code_(code),
      emitter_(code, listing.regs),
      stage_(placed.stage->name + (placed.lead == 0 ? "" : "@" + std::to_string(placed.lead)) + "#" +
             std::to_string(slot)),
      declared_(placed.stage),
      slot_(slot) {}

void StageWriter::fail(std::string message) {
  if (status_) status_ = make_error(ErrorCode::kInternal, "stage '" + stage_ + "': " + std::move(message));
}

std::uint32_t StageWriter::copy_of(std::string_view tile) const { return slot_.value_or(0) % plan_.copies(tile); }

const Tile* StageWriter::find_tile(std::string_view tile) const {
  const Tile* instance = instance_.empty() ? nullptr : plan_.algorithm->find_tile(std::string(tile) + instance_);
  return instance != nullptr ? instance : plan_.algorithm->find_tile(tile);
}

const Tile* StageWriter::usable_tile(std::string_view tile, TileSpace space) {
  const Tile* found = find_tile(tile);
  if (found == nullptr || found->space != space) {
    fail("the algorithm has no such tile '" + std::string(tile) + "'");
    return nullptr;
  }
  if (found->life == TileLife::kConstant) return found;
  if (declared_ == nullptr) {
    if (found->life == TileLife::kState) return found;
    fail("tile '" + std::string(tile) + "' belongs to iterations and is used outside the loop");
    return nullptr;
  }
  const auto is_it = [&](const Access& a) { return a.tile == found->name; };
  if (std::none_of(declared_->accesses.begin(), declared_->accesses.end(), is_it)) {
    fail("tile '" + std::string(tile) + "' is used but not declared among the stage's accesses");
    return nullptr;
  }
  return found;
}

jit::Reg StageWriter::reg(std::string_view tile, std::uint32_t tuple) {
  const Tile* found = usable_tile(tile, TileSpace::kRegisters);
  if (found == nullptr) return jit::vgpr(0);
  if (tuple >= found->shape.tuples) {
    fail("tile '" + std::string(tile) + "' has no tuple " + std::to_string(tuple));
    return jit::vgpr(0);
  }
  return tiles_.at(found->name, copy_of(found->name), tuple);
}

std::uint32_t StageWriter::lds(std::string_view tile) {
  return usable_tile(tile, TileSpace::kLds) == nullptr ? 0 : plan_.lds_offset(tile, copy_of(tile));
}

jit::Reg StageWriter::temp(jit::Bank bank, std::uint16_t registers, const std::string& name) {
  return listing_.regs.add(bank, registers, stage_ + "." + name);
}

jit::Reg StageWriter::pinned(jit::Bank bank, std::uint16_t registers, std::string name, std::uint32_t physical) {
  return listing_.regs.add(bank, registers, std::move(name), static_cast<std::int32_t>(physical));
}

void StageWriter::emit(jit::Op op, std::initializer_list<jit::Operand> operands, jit::Modifiers mods,
                       std::string comment, jit::Token token, const std::source_location& where) {
  if (!status_) return;
  emitter_.set_origin({stage_, repository_path(where.file_name()), where.line()});
  status_ = emitter_.emit(op, operands, mods, std::move(comment), token);
  if (status_) check_writes(code_.back());
}

// The planner's proof rests on the declared accesses, so a write that is not declared must not pass.
void StageWriter::check_writes(const jit::Instruction& instruction) {
  if (declared_ == nullptr) return;
  const jit::OpInfo& info = jit::op_info(instruction.op);
  for (std::size_t i = 0; i < instruction.operands.size() && i < info.operands.size(); ++i) {
    const auto* reg = std::get_if<jit::Reg>(&instruction.operands[i]);
    if (reg == nullptr || info.operands[i].role == jit::Role::kUse) continue;
    const Tile* tile = tiles_.owner(*reg);
    if (tile == nullptr) continue;
    const bool declared = std::any_of(declared_->accesses.begin(), declared_->accesses.end(), [&](const Access& a) {
      return a.tile == tile->name && a.kind != AccessKind::kRead;
    });
    if (!declared) fail("tile '" + tile->name + "' is written but not declared so among the stage's accesses");
  }
}

void StageWriter::op(jit::Op op, std::initializer_list<jit::Operand> operands, std::string comment, jit::Modifiers mods,
                     std::source_location where) {
  emit(op, operands, mods, std::move(comment), 0, where);
}

void StageWriter::load_to_lds(jit::Op op, std::string_view tile, std::initializer_list<jit::Operand> operands,
                              std::string comment, jit::Modifiers mods, std::source_location where) {
  mods.lds = true;
  emit(op, operands, mods, std::move(comment), tiles_.arrival_token(tile, copy_of(tile)), where);
}

void StageWriter::read_lds(jit::Op op, std::string_view tile, jit::Reg to, jit::Reg address, std::uint32_t offset,
                           std::string comment, std::source_location where) {
  if (offset >= kDsOffsetLimit) {
    const jit::Reg high = vtemp("high_address");
    const auto part = static_cast<std::int32_t>(offset / kDsOffsetLimit * kDsOffsetLimit);
    emit(jit::Op::kVAddU32, {high, jit::Imm{part}, address}, {}, "beyond the offset field", 0, where);
    address = high;
    offset %= kDsOffsetLimit;
  }
  emit(op, {to, address}, {.offset = static_cast<std::int32_t>(offset)}, std::move(comment),
       tiles_.reads_token(tile, copy_of(tile)), where);
}

void StageWriter::place(jit::Label label) {
  if (status_) status_ = emitter_.place(label);
}

}  // namespace zyfa::schedules
