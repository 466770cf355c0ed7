#include "tests/correctness/schedules/gemm_tile.h"

#include <cstddef>

#include "schedules/dsl/stage_writer.h"
#include "schedules/dsl/tiles.h"

namespace zyfa::tests {
namespace {

using jit::Imm;
using jit::Op;
using jit::Reg;
using schedules::StageWriter;
using enum schedules::TileLife;
using enum schedules::AccessKind;
using enum schedules::Speculation;

constexpr std::uint32_t kRowBytes = 2 * kGemmDepth;    // 128 bytes of one row and iteration
constexpr std::uint32_t kLoadRows = 1024 / kRowBytes;  // rows of one direct-to-LDS load of a wave
constexpr std::uint32_t kSteps = kGemmDepth / 16;
constexpr std::int32_t kWord3 = 0x00020000;

// One LDS row is 8 chunks of 16 bytes; chunk c of row r holds memory chunk c ^ (r % 8).
void load(StageWriter& w, const std::string& name, std::uint32_t rows) {
  const Reg desc = w.reg(name + "_desc");
  const std::uint32_t waves = w.placement().waves;
  const std::uint32_t rounds = rows / kLoadRows / waves;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint32_t at = w.lds(name) + round * waves * 1024;
    w.op(Op::kSAddU32, {jit::m0(), w.reg("wave_lds"), Imm{static_cast<std::int32_t>(at)}});
    w.load_to_lds(Op::kBufferLoadDwordx4Lds, name, {w.reg(name + "_offset", round), desc, Imm{0}}, name,
                  {.offen = true});
  }
  // Past the end of k the offset of a chunk passes the row: the lane is sent out of range, so that it reads 0.
  const Reg advanced = w.reg(name + "_left");
  w.op(Op::kSSubI32, {advanced, advanced, Imm{static_cast<std::int32_t>(kGemmDepth)}});
  const Reg limit = w.vtemp("k_limit");
  const Reg beyond = w.stemp("beyond", 2);
  const Reg away = w.vtemp("away");
  w.op(Op::kVMovB32, {limit, advanced});
  w.op(Op::kVMovB32, {away, Imm{0x7fffff00}});
  w.op(Op::kVCmpLtI32, {beyond, limit, w.reg(name + "_need")}, "does this lane's chunk end past k?");
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const Reg offset = w.reg(name + "_offset", round);
    const Reg next = w.vtemp("next");
    w.op(Op::kVAddU32, {next, Imm{static_cast<std::int32_t>(kRowBytes)}, offset});
    w.op(Op::kVCndmaskB32, {offset, next, away, beyond});
  }
}

void read(StageWriter& w, const std::string& name, std::uint32_t blocks) {
  for (std::uint32_t block = 0; block < blocks; ++block) {
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const std::uint32_t at = w.lds(name) + block * 32 * kRowBytes;
      w.read_lds(Op::kDsReadB128, name, w.reg(name + "_frag", block * kSteps + step), w.reg(name + "_read", step), at,
                 name);
    }
  }
}

void multiply(StageWriter& w) {
  for (std::uint32_t block = 0; block < 2; ++block) {
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const Reg acc = w.reg("acc", block);
      w.op(Op::kVMfmaF32_32x32x16Bf16, {acc, w.reg("a_frag", step), w.reg("b_frag", block * kSteps + step), acc});
    }
  }
}

struct SetupRegs {
  Reg lane, args;
};

void prepare_operand(StageWriter& w, const SetupRegs& s, const std::string& name, Reg first_row, Reg row_count,
                     std::uint32_t index, std::uint32_t rows) {
  const Reg desc = w.reg(name + "_desc");
  const Reg stride = s.args.sub(static_cast<std::uint16_t>(6 + index));
  const Reg k = s.args.sub(11);
  const Reg left = w.stemp("rows");
  w.op(Op::kSMovB64, {desc.sub(0, 2), s.args.sub(static_cast<std::uint16_t>(2 * index), 2)});
  const Reg bytes = w.stemp("bytes");
  w.op(Op::kSMulI32, {bytes, first_row, stride});
  w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), bytes});
  w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), Imm{0}});
  // Rows past the end are out of range; the last row ends at its 2 k bytes.
  w.op(Op::kSSubI32, {left, row_count, first_row});
  w.op(Op::kSMinI32, {left, left, Imm{static_cast<std::int32_t>(rows)}});
  w.op(Op::kSSubI32, {left, left, Imm{1}});
  w.op(Op::kSMulI32, {left, left, stride});
  w.op(Op::kSLshlB32, {bytes, k, Imm{1}});
  w.op(Op::kSAddU32, {desc.sub(2), left, bytes});
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kWord3}});
  w.op(Op::kSMovB32, {w.reg(name + "_left"), k});

  const Reg row = w.vtemp("row");
  const Reg chunk = w.vtemp("chunk");
  const Reg wave_rows = w.stemp("wave_rows");
  const std::uint32_t waves = w.placement().waves;
  w.op(Op::kVLshrrevB32, {row, Imm{3}, s.lane});
  w.op(Op::kVAndB32, {chunk, Imm{7}, s.lane});
  w.op(Op::kVXorB32, {chunk, row, chunk}, "row % 8 = lane / 8: a round starts at a multiple of 8 rows");
  w.op(Op::kVLshlrevB32, {w.reg(name + "_need"), Imm{3}, chunk});
  w.op(Op::kVAddU32, {w.reg(name + "_need"), Imm{8}, w.reg(name + "_need")}, "k that this lane's chunk needs");
  w.op(Op::kSLshlB32, {wave_rows, w.wave(), Imm{3}});
  w.op(Op::kVAddU32, {row, wave_rows, row});
  const Reg away = w.vtemp("away");
  const Reg beyond = w.stemp("beyond", 2);
  const Reg limit = w.vtemp("limit");
  w.op(Op::kVMovB32, {away, Imm{0x7fffff00}});
  w.op(Op::kVMovB32, {limit, k});
  w.op(Op::kVCmpLtI32, {beyond, limit, w.reg(name + "_need")});
  for (std::uint32_t round = 0; round < rows / kLoadRows / waves; ++round) {
    const Reg offset = w.reg(name + "_offset", round);
    const Reg this_row = w.vtemp("this_row");
    w.op(Op::kVAddU32, {this_row, Imm{static_cast<std::int32_t>(round * waves * kLoadRows)}, row});
    w.op(Op::kVMulLoU32, {offset, this_row, stride});
    w.op(Op::kVLshlOrB32, {this_row, chunk, Imm{4}, Imm{0}});
    w.op(Op::kVAddU32, {offset, offset, this_row});
    w.op(Op::kVCndmaskB32, {offset, offset, away, beyond});
  }
}

void setup(StageWriter& w) {
  const Reg kernarg = w.pinned(jit::Bank::kSgpr, 2, "abi_kernarg", 0);
  const Reg row_tile = w.pinned(jit::Bank::kSgpr, 1, "abi_workgroup_x", 2);
  const Reg column_tile = w.pinned(jit::Bank::kSgpr, 1, "abi_workgroup_y", 3);
  const Reg thread = w.pinned(jit::Bank::kVgpr, 1, "abi_thread", 0);
  const std::uint32_t waves = w.placement().waves;
  SetupRegs s{w.vtemp("lane"), w.stemp("args", 16)};
  w.op(Op::kSLoadDwordx8, {s.args.sub(0, 8), kernarg, Imm{0}});
  w.op(Op::kSLoadDwordx4, {s.args.sub(8, 4), kernarg, Imm{32}});
  w.op(Op::kSMovB64, {w.reg("c_base"), s.args.sub(4, 2)});
  const Reg wave = w.vtemp("wave");
  w.op(Op::kVLshrrevB32, {wave, Imm{6}, thread});
  w.op(Op::kVReadfirstlaneB32, {w.wave(), wave});
  w.op(Op::kVAndB32, {s.lane, Imm{63}, thread});
  w.op(Op::kSLshlB32, {w.reg("wave_lds"), w.wave(), Imm{10}});
  const Reg first_row = w.stemp("first_row");
  const Reg first_column = w.stemp("first_column");
  w.op(Op::kSMulI32, {first_row, row_tile, Imm{static_cast<std::int32_t>(32 * waves)}});
  w.op(Op::kSLshlB32, {first_column, column_tile, Imm{6}});
  prepare_operand(w, s, "a", first_row, s.args.sub(9), 0, 32 * waves);
  prepare_operand(w, s, "b", first_column, s.args.sub(10), 1, kGemmColumns);
  // Arguments 6..8 are the strides: c's is the third.
  w.op(Op::kSMovB32, {w.reg("c_stride"), s.args.sub(8)});
  w.op(Op::kSMovB32, {w.reg("m"), s.args.sub(9)});
  w.op(Op::kSMovB32, {w.reg("n"), s.args.sub(10)});
  const Reg wave_row = w.stemp("wave_row");
  w.op(Op::kSLshlB32, {wave_row, w.wave(), Imm{5}});
  w.op(Op::kSAddU32, {w.reg("row0"), first_row, wave_row});
  w.op(Op::kSMovB32, {w.reg("column0"), first_column});

  const Reg row = w.vtemp("read_row");
  const Reg chunk = w.vtemp("read_chunk");
  const Reg address = w.vtemp("read_address");
  w.op(Op::kVAndB32, {row, Imm{31}, s.lane});
  w.op(Op::kVLshrrevB32, {chunk, Imm{5}, s.lane});
  const Reg swizzle = w.vtemp("read_swizzle");
  w.op(Op::kVAndB32, {swizzle, Imm{7}, row});
  w.op(Op::kVXorB32, {chunk, swizzle, chunk});
  w.op(Op::kVLshlrevB32, {address, Imm{7}, row});
  w.op(Op::kVLshlOrB32, {address, chunk, Imm{4}, address});
  const Reg wave_base = w.stemp("wave_base");
  w.op(Op::kSLshlB32, {wave_base, w.wave(), Imm{12}}, "32 rows of 128 bytes");
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    w.op(Op::kVXorB32, {w.reg("b_read", step), Imm{static_cast<std::int32_t>(32 * step)}, address});
    w.op(Op::kVAddU32, {w.reg("a_read", step), wave_base, w.reg("b_read", step)});
  }
  for (std::uint32_t block = 0; block < 2; ++block) {
    for (std::uint16_t r = 0; r < 16; ++r) w.op(Op::kVMovB32, {w.reg("acc", block).sub(r), Imm{0}});
  }
  w.op(Op::kSAddU32, {w.trips(), s.args.sub(11), Imm{63}});
  w.op(Op::kSLshrB32, {w.trips(), w.trips(), Imm{6}});
}

void finish(StageWriter& w) {
  const Reg lane = w.vtemp("lane");
  const Reg column = w.vtemp("column");
  const Reg half = w.vtemp("half");
  w.op(Op::kVMbcntLo, {lane, Imm{-1}, Imm{0}});
  w.op(Op::kVMbcntHi, {lane, Imm{-1}, lane});
  w.op(Op::kVAndB32, {column, Imm{31}, lane});
  w.op(Op::kVLshrrevB32, {half, Imm{5}, lane});
  const Reg desc = w.stemp("c_desc", 4);
  w.op(Op::kSMovB64, {desc.sub(0, 2), w.reg("c_base")});
  w.op(Op::kSMulI32, {desc.sub(2), w.reg("m"), w.reg("c_stride")}, "all of C; rows past m are out of range");
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kWord3}});
  for (std::uint32_t block = 0; block < 2; ++block) {
    const Reg c = w.vtemp("c");
    const Reg beyond = w.stemp("beyond", 2);
    const Reg away = w.vtemp("away");
    const Reg n = w.vtemp("n");
    w.op(Op::kVAddU32, {c, w.reg("column0"), column});
    w.op(Op::kVAddU32, {c, Imm{static_cast<std::int32_t>(32 * block)}, c});
    w.op(Op::kVMovB32, {n, w.reg("n")});
    w.op(Op::kVCmpGtI32, {beyond, n, c}, "column exists");
    w.op(Op::kVLshlrevB32, {c, Imm{2}, c});
    w.op(Op::kVMovB32, {away, Imm{0x7fffff00}});
    for (std::uint16_t r = 0; r < 16; ++r) {
      const Reg row = w.vtemp("row");
      const Reg offset = w.vtemp("offset");
      w.op(Op::kVLshlOrB32, {row, half, Imm{2}, Imm{8 * (r / 4) + r % 4}});
      w.op(Op::kVAddU32, {row, w.reg("row0"), row});
      w.op(Op::kVMulLoU32, {offset, row, w.reg("c_stride")});
      w.op(Op::kVAddU32, {offset, offset, c});
      w.op(Op::kVCndmaskB32, {offset, away, offset, beyond});
      w.op(Op::kBufferStoreDword, {w.reg("acc", block).sub(r), offset, desc, Imm{0}}, "C", {.offen = true});
    }
  }
  w.op(Op::kSEndpgm, {});
}

}  // namespace

schedules::Algorithm gemm_tile(std::uint32_t waves) {
  schedules::Algorithm algorithm;
  algorithm.name = "gemm_tile_bf16";
  algorithm.legal_waves = {waves};
  const std::uint32_t a_rows = 32 * waves;
  algorithm.tiles = {
      {"a", schedules::TileSpace::kLds, kIteration, {}, a_rows * kRowBytes},
      {"b", schedules::TileSpace::kLds, kIteration, {}, kGemmColumns * kRowBytes},
      schedules::vector_tile("a_frag", kIteration, 4, kSteps),
      schedules::vector_tile("b_frag", kIteration, 4, 2 * kSteps),
      schedules::vector_tile("acc", kState, 16, 2),
      schedules::vector_tile("a_read", kConstant, 1, kSteps),
      schedules::vector_tile("b_read", kConstant, 1, kSteps),
      schedules::scalar_tile("wave_lds", kConstant, 1),
      schedules::scalar_tile("c_base", kConstant, 2),
      schedules::scalar_tile("c_stride", kConstant, 1),
      schedules::scalar_tile("m", kConstant, 1),
      schedules::scalar_tile("n", kConstant, 1),
      schedules::scalar_tile("row0", kConstant, 1),
      schedules::scalar_tile("column0", kConstant, 1),
  };
  for (const std::string name : {"a", "b"}) {
    algorithm.tiles.push_back(schedules::scalar_tile(name + "_desc", kConstant, 4));
    algorithm.tiles.push_back(schedules::scalar_tile(name + "_left", kState, 1));
    algorithm.tiles.push_back(schedules::vector_tile(name + "_need", kConstant, 1));
    algorithm.tiles.push_back(
        schedules::vector_tile(name + "_offset", kState, 1, (name == "a" ? a_rows : kGemmColumns) / kLoadRows / waves));
  }
  algorithm.stages = {
      {"load_a",
       {{"a", kWrite}, {"a_offset", kUpdate}, {"a_left", kUpdate}},
       kHarmless,
       [a_rows](StageWriter& w) { load(w, "a", a_rows); }},
      {"load_b",
       {{"b", kWrite}, {"b_offset", kUpdate}, {"b_left", kUpdate}},
       kHarmless,
       [](StageWriter& w) { load(w, "b", kGemmColumns); }},
      {"read_a", {{"a", kRead}, {"a_frag", kWrite}}, kHarmless, [](StageWriter& w) { read(w, "a", 1); }},
      {"read_b", {{"b", kRead}, {"b_frag", kWrite}}, kHarmless, [](StageWriter& w) { read(w, "b", 2); }},
      {"mma", {{"a_frag", kRead}, {"b_frag", kRead}, {"acc", kUpdate}}, kNever, multiply},
  };
  algorithm.setup = [](StageWriter& w) {
    setup(w);
    return schedules::SetupRest{};
  };
  algorithm.finish = finish;
  return algorithm;
}

std::vector<jit::KernelArgument> gemm_arguments() {
  return {{"a", offsetof(GemmArgs, a), 8, true},
          {"b", offsetof(GemmArgs, b), 8, true},
          {"c", offsetof(GemmArgs, c), 8, true},
          {"a_stride", offsetof(GemmArgs, a_stride), 4, false},
          {"b_stride", offsetof(GemmArgs, b_stride), 4, false},
          {"c_stride", offsetof(GemmArgs, c_stride), 4, false},
          {"m", offsetof(GemmArgs, m), 4, false},
          {"n", offsetof(GemmArgs, n), 4, false},
          {"k", offsetof(GemmArgs, k), 4, false}};
}

}  // namespace zyfa::tests
