// Register allocation: rules by example, and a property test that runs random programs before and after allocation.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "tests/unit/jit_core/builder.h"

namespace zyfa::jit {
namespace {

using test::at;
using test::Builder;

std::map<std::string, RegisterMapRow> by_name(const RegisterMap& map) {
  std::map<std::string, RegisterMapRow> out;
  for (const RegisterMapRow& row : map.rows) out[row.name] = row;
  return out;
}

RegisterMap must_allocate(Listing& listing, const RegisterLimits& limits = {}) {
  auto map = allocate(listing, limits);
  EXPECT_TRUE(map) << (map ? "" : to_string(map.error()));
  return map ? *map : RegisterMap{};
}

TEST(Allocate, ReusesARegisterWhoseLastUseIsTheDefiningInstruction) {
  Builder b;
  const Reg x = b.v(1, "x"), y = b.v(1, "y");
  b(Op::kVMovB32, {x, Imm{1}});
  b(Op::kVAddU32, {y, Imm{2}, x});
  b(Op::kVAddU32, {y, Imm{3}, y});
  b(Op::kDsWriteB32, {y, y});
  EXPECT_EQ(must_allocate(b.listing).vgprs_used, 1);
  EXPECT_THAT(test::text(b.listing), testing::ElementsAre("v_mov_b32 v0, 1", "v_add_u32 v0, 2, v0",
                                                          "v_add_u32 v0, 3, v0", "ds_write_b32 v0, v0"));
}

TEST(Allocate, KeepsAnMfmaResultOffItsDyingSources) {
  Builder b;
  const Reg address = b.v(1, "address", 0);
  const Reg a = b.v(4, "a"), bb = b.v(4, "b"), d = b.v(4, "d");
  b(Op::kDsReadB128, {a, address});
  b(Op::kDsReadB128, {bb, address});
  b(Op::kVMfmaF32_16x16x32Bf16, {d, a, bb, Imm{0}});
  b(Op::kDsWriteB128, {address, d});
  const auto rows = by_name(must_allocate(b.listing));
  EXPECT_EQ(rows.at("a").physical, 2);
  EXPECT_EQ(rows.at("b").physical, 6);
  EXPECT_EQ(rows.at("d").physical, 10);  // first fit would take 2 if A's registers counted as free
}

TEST(Allocate, AlignsTuples) {
  Builder b;
  const Reg s1 = b.s(1, "s1"), s2 = b.s(2, "s2"), s4 = b.s(4, "s4"), kernarg = b.s(2, "kernarg", 0);
  const Reg v1 = b.v(1, "v1"), v2 = b.v(2, "v2");
  b(Op::kSLoadDword, {s1, kernarg, Imm{0}});
  b(Op::kSLoadDwordx2, {s2, kernarg, Imm{8}});
  b(Op::kSLoadDwordx4, {s4, kernarg, Imm{16}});
  b(Op::kVMovB32, {v1, s1});
  b(Op::kDsReadB64, {v2, v1});
  b(Op::kDsWriteB64, {v1, v2});
  b(Op::kBufferLoadDword, {v1, v1, s4, s1}, test::offen());
  b(Op::kGlobalStoreDword, {v1, v1, s2});
  const auto rows = by_name(must_allocate(b.listing));
  EXPECT_EQ(rows.at("kernarg").physical, 0);
  EXPECT_EQ(rows.at("s1").physical, 2);
  EXPECT_EQ(rows.at("s2").physical, 4);
  EXPECT_EQ(rows.at("s4").physical, 8);
  EXPECT_EQ(rows.at("v2").physical, 2);
}

// A tuple filled in pieces lives from its first piece; between two such tuples nothing is shared.
TEST(Allocate, KeepsATupleWholeWhileItIsFilledPieceByPiece) {
  Builder b;
  const Reg address = b.v(1, "address", 0), x = b.v(1, "x");
  const Reg pieces = b.v(4, "pieces"), d = b.v(4, "d");
  b(Op::kDsReadB64, {pieces.sub(0, 2), address});
  b(Op::kVMovB32, {x, Imm{1}});
  b(Op::kDsReadB64, {pieces.sub(2, 2), address}, at(64));
  b(Op::kDsWriteB32, {address, x});
  b(Op::kVMfmaF32_16x16x32Bf16, {d, pieces, pieces, Imm{0}});
  const auto rows = by_name(must_allocate(b.listing));
  EXPECT_EQ(rows.at("pieces").physical, 2);
  EXPECT_EQ(rows.at("pieces").first_live, 0u);
  EXPECT_EQ(rows.at("pieces").last_live, 4u);
  EXPECT_EQ(rows.at("x").physical, 1);
}

// Two tuples that each trip of a loop fills in pieces and uses up carry nothing round the back edge, so they may share.
TEST(Allocate, DoesNotCarryPiecewiseTuplesRoundALoop) {
  Builder b;
  const Reg address = b.v(1, "address", 0), n = b.s(1, "n"), acc = b.v(4, "acc");
  const Reg first = b.v(4, "first"), second = b.v(4, "second");
  const Label loop = b.listing.new_label();
  b(Op::kSMovB32, {n, Imm{8}});
  for (std::uint16_t i = 0; i < 4; ++i) b(Op::kVMovB32, {acc.sub(i), Imm{0}});
  b.place(loop);
  for (const Reg& tuple : {first, second}) {
    b(Op::kDsReadB64, {tuple.sub(0, 2), address});
    b(Op::kDsReadB64, {tuple.sub(2, 2), address});
    b(Op::kVMfmaF32_16x16x32Bf16, {acc, tuple, tuple, acc});
  }
  b(Op::kSSubI32, {n, n, Imm{1}});
  b(Op::kSCmpGtI32, {n, Imm{0}});
  b(Op::kSCbranchScc1, {loop});
  b(Op::kDsWriteB128, {address, acc});
  const RegisterMap map = must_allocate(b.listing);
  const auto rows = by_name(map);
  EXPECT_EQ(rows.at("first").physical, rows.at("second").physical);
  EXPECT_EQ(map.vgpr_peak, 9);
}

// A tuple that the next trip reads before it writes it is live through the back edge and after its own last use.
TEST(Allocate, KeepsALoopCarriedTuple) {
  Builder b;
  const Reg carried = b.v(1, "carried"), scratch = b.v(1, "scratch"), n = b.s(1, "n");
  const Label loop = b.listing.new_label();
  b(Op::kVMovB32, {carried, Imm{0}});
  b(Op::kSMovB32, {n, Imm{8}});
  b.place(loop);
  b(Op::kVAddU32, {scratch, Imm{1}, carried});
  b(Op::kVMovB32, {carried, scratch});
  b(Op::kVMovB32, {scratch, Imm{5}});
  b(Op::kDsWriteB32, {scratch, scratch});
  b(Op::kSCmpGtI32, {n, Imm{0}});
  b(Op::kSCbranchScc1, {loop});
  b(Op::kSEndpgm, {});
  const auto rows = by_name(must_allocate(b.listing));
  EXPECT_NE(rows.at("carried").physical, rows.at("scratch").physical);
}

// With EXEC masking lanes a vector write leaves the other lanes alone, so the old value stays live across it.
TEST(Allocate, PartialExecWritesDoNotEndALife) {
  const auto build = [](bool masked) {
    Builder b;
    const Reg value = b.v(1, "value"), other = b.v(1, "other"), mask = b.s(2, "mask", 0);
    b(Op::kVMovB32, {value, Imm{1}});
    if (masked) b(Op::kSMovB64, {exec(), mask});
    b(Op::kVMovB32, {other, Imm{2}});
    b(Op::kDsWriteB32, {other, other});
    b(Op::kVMovB32, {value, Imm{3}});
    if (masked) b(Op::kSMovB64, {exec(), Imm{-1}});
    b(Op::kDsWriteB32, {value, value});
    return must_allocate(b.listing).vgprs_used;
  };
  EXPECT_EQ(build(false), 1);
  EXPECT_EQ(build(true), 2);
}

// With XNACK a scalar load may be replayed after part of its result has arrived, so its address stays whole.
TEST(Allocate, KeepsAScalarLoadOffItsAddress) {
  Builder b;
  const Reg base = b.s(2, "base", 4), pointers = b.s(4, "pointers", 4);
  b(Op::kSLoadDwordx4, {pointers, base, Imm{0}});
  b(Op::kSMovB64, {vcc(), pointers.sub(0, 2)});
  const auto map = allocate(b.listing, {});
  ASSERT_FALSE(map);
  EXPECT_THAT(map.error().message, testing::HasSubstr("live at the same time"));
}

// A tuple that the first trip reads undefined is live round the back edge, not before the loop.
TEST(Allocate, NothingIsLiveBeforeItsFirstDefinition) {
  Builder b;
  const Reg before = b.v(1, "before"), late = b.v(1, "late"), n = b.s(1, "n", 0);
  const Label loop = b.listing.new_label();
  b(Op::kVMovB32, {before, Imm{1}});
  b(Op::kDsWriteB32, {before, before});
  b.place(loop);
  b(Op::kDsWriteB32, {late, late});
  b(Op::kVMovB32, {late, n});
  b(Op::kSCbranchScc1, {loop});
  b(Op::kSEndpgm, {});
  EXPECT_EQ(must_allocate(b.listing).vgprs_used, 1);
}

TEST(Allocate, TriesOtherOrdersBeforeGivingUp) {
  // In order of definition a, b, c, d land in v0..v3; then only b and d remain and no pair is free. Placing the pair
  // first leaves room for all.
  Builder b;
  const Reg a = b.v(1, "a"), bb = b.v(1, "b"), c = b.v(1, "c"), d = b.v(1, "d"), pair = b.v(2, "pair");
  for (const Reg& r : {a, bb, c, d}) b(Op::kVMovB32, {r, Imm{1}});
  b(Op::kDsWriteB32, {a, c});
  b(Op::kDsReadB64, {pair, bb});
  b(Op::kDsWriteB64, {d, pair});
  b(Op::kDsWriteB32, {bb, d});
  RegisterLimits limits;
  limits.vgprs = 4;
  const RegisterMap map = must_allocate(b.listing, limits);
  EXPECT_EQ(map.vgprs_used, 4);
  EXPECT_EQ(map.vgpr_peak, 4);
}

TEST(Allocate, MapTextListsEveryTuple) {
  Builder b;
  const Reg x = b.v(2, "score"), address = b.v(1, "address", 0);
  b(Op::kDsReadB64, {x, address});
  b(Op::kDsWriteB64, {address, x});
  EXPECT_EQ(must_allocate(b.listing).to_text(),
            "registers   tuple    live\n"
            "v0          address  0..1\n"
            "v[2:3]      score    0..1\n"
            "VGPRs: 4 used, peak demand 3 at instruction 0\n"
            "AGPRs: 0 used, peak demand 0\n"
            "SGPRs: 0 used, peak demand 0\n");
}

// Runs a listing along one path: every register holds a number that names the write it comes from.
class Machine {
 public:
  using Key = std::tuple<int, std::uint32_t, std::uint32_t>;  // bank, tuple or register, part

  // Values read by each operand register of the instruction, 0 when never written; then performs it.
  std::vector<std::uint64_t> step(const Instruction& instruction, std::uint64_t step) {
    const OpInfo& info = op_info(instruction.op);
    std::vector<std::uint64_t> read;
    std::uint64_t written = step << 8;
    const auto each = [&](bool defs, auto&& f) {
      for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
        const Reg* reg = std::get_if<Reg>(&instruction.operands[i]);
        if (reg == nullptr || reg->bank == Bank::kSpecial) continue;
        if (defs ? info.operands[i].role == Role::kUse : info.operands[i].role == Role::kDef) continue;
        for (std::uint32_t r = 0; r < reg->count; ++r) {
          f(reg->is_virtual ? Key{static_cast<int>(reg->bank), reg->id, reg->first + r}
                            : Key{static_cast<int>(reg->bank), reg->id + r, 0});
        }
      }
    };
    each(false, [&](const Key& key) { read.push_back(values_[key]); });
    each(true, [&](const Key& key) { values_[key] = ++written; });
    return read;
  }

 private:
  std::map<Key, std::uint64_t> values_;
};

// A random listing of `length` instructions with loops and forward jumps. Only conditional branches, so what stands
// earlier may always have run.
Listing random_program(std::mt19937& rng, int length) {
  Builder b;
  const auto pick = [&rng](std::size_t n) { return static_cast<std::size_t>(rng() % n); };
  std::vector<Reg> singles = {b.v(1, "tid", 0)}, scalars = {b.s(1, "arg", 2)}, pairs, quads, tiles;
  std::vector<Label> labels;
  std::vector<Label> pending;
  const auto fresh = [&](std::vector<Reg>& pool, std::uint16_t count) {
    if (!pool.empty() && pick(2) == 0) return pool[pick(pool.size())];
    pool.push_back(b.v(count, "t" + std::to_string(b.listing.regs.size())));
    return pool.back();
  };
  const auto filled_quad = [&] {
    const Reg quad = fresh(quads, 4);
    b(Op::kDsReadB64, {quad.sub(0, 2), singles[pick(singles.size())]});
    b(Op::kDsReadB64, {quad.sub(2, 2), singles[pick(singles.size())]});
    return quad;
  };
  for (int i = 0; i < length; ++i) {
    const Reg single = singles[pick(singles.size())], scalar = scalars[pick(scalars.size())];
    switch (pick(11)) {
      case 0: {
        const Reg d = fresh(singles, 1);
        b(Op::kVAddU32, {d, scalar, single});
        break;
      }
      case 1: {
        b(Op::kVFmacF32, {single, FloatImm{2.0f}, singles[pick(singles.size())]});
        break;
      }
      case 2: {
        const Reg quad = filled_quad();
        const Reg tile = fresh(tiles, 16);
        b(Op::kVMfmaF32_32x32x16Bf16, {tile, quad, filled_quad(), Imm{0}});
        break;
      }
      case 3: {
        if (tiles.empty()) break;
        const Reg tile = tiles[pick(tiles.size())];
        b(Op::kVMfmaF32_32x32x16Bf16, {tile, filled_quad(), filled_quad(), tile});
        break;
      }
      case 4: {
        if (tiles.empty()) break;
        const Reg tile = tiles[pick(tiles.size())];
        b(Op::kVExpF32,
          {tile.sub(static_cast<std::uint16_t>(pick(16))), tile.sub(static_cast<std::uint16_t>(pick(16)))});
        break;
      }
      case 5: {
        const Reg pair = fresh(pairs, 2);
        b(Op::kVMovB32, {pair.sub(0), single});
        b(Op::kVMovB32, {pair.sub(1), scalar});
        const Reg out = fresh(pairs, 2);
        b(Op::kVPkMulF32, {out, pair, pair});
        break;
      }
      case 6: {
        const Reg d = b.s(1, "s" + std::to_string(b.listing.regs.size()));
        scalars.push_back(d);
        b(Op::kVReadfirstlaneB32, {d, single});
        break;
      }
      case 7:
        labels.push_back(b.listing.new_label());
        b.place(labels.back());
        break;
      case 8:
        if (!labels.empty()) b(Op::kSCbranchScc1, {labels[pick(labels.size())]});
        break;
      case 9:
        pending.push_back(b.listing.new_label());
        b(Op::kSCbranchScc0, {pending.back()});
        break;
      default:
        if (!pending.empty()) {
          b.place(pending.back());
          pending.pop_back();
        }
        b(Op::kDsWriteB32, {single, singles[pick(singles.size())]});
        break;
    }
  }
  for (const Label label : pending) b.place(label);
  b(Op::kSEndpgm, {});
  return std::move(b.listing);
}

TEST(AllocateProperty, RandomProgramsComputeTheSame) {
  std::mt19937 rng(20250101);
  int fitted = 0;
  std::uint64_t compared = 0;
  for (int round = 0; round < 300; ++round) {
    const Listing before = random_program(rng, 20 + static_cast<int>(rng() % 150));
    Listing after = before;
    const auto map = allocate(after, {});
    if (!map) {
      ASSERT_EQ(map.error().code, ErrorCode::kScheduleError) << to_string(map.error());
      continue;
    }
    ++fitted;
    EXPECT_LE(map->vgpr_peak, map->vgprs_used);
    std::map<std::uint32_t, std::size_t> place_of;
    for (std::size_t i = 0; i < after.code.size(); ++i) {
      if (after.code[i].op == Op::kLabel) place_of[std::get<Label>(after.code[i].operands[0]).id] = i;
      const Status ok = check(after.code[i], after.regs);
      ASSERT_TRUE(ok) << to_string(ok.error());
    }
    for (int path = 0; path < 4; ++path) {
      Machine virtual_machine, physical_machine;
      std::size_t pc = 0;
      for (std::uint64_t step = 1; step < 500 && pc < after.code.size(); ++step) {
        const auto want = virtual_machine.step(before.code[pc], step);
        const auto got = physical_machine.step(after.code[pc], step);
        ASSERT_EQ(want.size(), got.size());
        for (std::size_t k = 0; k < want.size(); ++k) {
          if (want[k] == 0) continue;  // not written on this path
          ASSERT_EQ(want[k], got[k]) << "round " << round << " instruction " << pc << ": " << print(before.code[pc])
                                     << " = " << print(after.code[pc]);
          ++compared;
        }
        const bool branch = op_info(before.code[pc].op).unit == Unit::kBranch;
        pc = branch && rng() % 2 == 0 ? place_of.at(std::get<Label>(before.code[pc].operands[0]).id) : pc + 1;
      }
    }
  }
  EXPECT_GT(fitted, 100);
  EXPECT_GT(compared, 200000u);
}

}  // namespace
}  // namespace zyfa::jit
