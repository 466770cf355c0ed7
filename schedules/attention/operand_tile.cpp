#include "schedules/attention/operand_tile.h"

namespace zyfa::schedules::forward {
namespace {

using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr std::uint32_t kLoadBytes = 1024;  // one direct-to-LDS dwordx4 of a wave: 64 lanes x 16 bytes

Imm imm(std::uint32_t value) { return Imm{static_cast<std::int32_t>(value)}; }

std::uint32_t wave_bytes(const StageWriter& w, const OperandTile& tile) { return tile.bytes() / w.placement().waves; }

// row = chunk / (chunks of a row), for chunks of one tile.
void divide_by_row(StageWriter& w, Reg row, Reg chunk, std::uint32_t row_chunks) {
  if (row_chunks == 8 || row_chunks == 16) {
    w.op(Op::kVLshrrevB32, {row, Imm{row_chunks == 8 ? 3 : 4}, chunk});
    return;
  }
  // 43691 = ceil(2^19 / 12); a tile's 1,536 chunks at most leave its rounding far away.
  w.op(Op::kVMulU32U24, {row, Imm{43691}, chunk});
  w.op(Op::kVLshrrevB32, {row, Imm{row_chunks == 12 ? 19 : 20}, row});
}

void swizzle_chunk(StageWriter& w, Reg chunk, Reg row, const OperandTile& tile) {
  const Reg flip = w.vtemp(tile.name + "_flip");
  switch (tile.swizzle) {
    case Swizzle::kRow:
      w.op(Op::kVAndB32, {flip, Imm{15}, row});
      break;
    case Swizzle::kHalfRow:
      w.op(Op::kVLshrrevB32, {flip, Imm{1}, row});
      w.op(Op::kVAndB32, {flip, Imm{7}, flip});
      break;
    case Swizzle::kQuarterRow:
      w.op(Op::kVLshrrevB32, {flip, Imm{2}, row});
      w.op(Op::kVAndB32, {flip, Imm{3}, flip});
      break;
    case Swizzle::kTransposeB8: {
      const Reg high = w.vtemp(tile.name + "_flip_high");
      w.op(Op::kVAndB32, {flip, Imm{2}, row}, "2 * bit 1 of the row");
      w.op(Op::kVLshrrevB32, {high, Imm{1}, row});
      w.op(Op::kVAndOrB32, {flip, high, Imm{4}, flip}, "+ 4 * bit 3");
      break;
    }
    case Swizzle::kTransposeB16:
      w.op(Op::kVAndB32, {flip, Imm{3}, row});
      w.op(Op::kVLshlrevB32, {flip, Imm{2}, flip});
      break;
  }
  w.op(Op::kVXorB32, {chunk, flip, chunk}, "chunk of the memory row");
}

}  // namespace

LanePlaces place_lanes(StageWriter& w, const SetupRegs& s, const OperandTile& tile) {
  const std::string& name = tile.name;
  const Reg wave_chunk = w.stemp(name + "_wave_chunk");
  w.op(Op::kSMulI32, {w.reg(name + "_lds"), w.wave(), imm(wave_bytes(w, tile))}, "this wave's share of a tile");
  w.op(Op::kSLshrB32, {wave_chunk, w.reg(name + "_lds"), Imm{4}});
  const std::uint32_t row_chunks = tile.row_bytes / 16;
  LanePlaces places;
  for (std::uint32_t round = 0; round * kLoadBytes < wave_bytes(w, tile); ++round) {
    const Reg chunk = w.vtemp(name + "_chunk");
    const Reg row = w.vtemp(name + "_row");
    const Reg first = w.vtemp(name + "_row_chunk");
    const Reg base = w.stemp(name + "_round_chunk");
    w.op(Op::kSAddU32, {base, wave_chunk, imm(round * kLoadBytes / 16)});
    w.op(Op::kVAddU32, {chunk, base, s.lane}, "16-byte chunk of the LDS tile");
    divide_by_row(w, row, chunk, row_chunks);
    w.op(Op::kVMulU32U24, {first, imm(row_chunks), row});
    w.op(Op::kVSubU32, {chunk, chunk, first}, "chunk of the LDS row");
    swizzle_chunk(w, chunk, row, tile);
    w.op(Op::kVLshlrevB32, {chunk, Imm{4}, chunk});
    places.row.push_back(row);
    places.byte.push_back(chunk);
  }
  return places;
}

void describe_operand(StageWriter& w, const SetupRegs& s, const OperandTile& tile, Reg args, const LanePlaces& places) {
  const std::string& name = tile.name;
  describe_key_rows(w, s, name, args);
  for (std::uint32_t round = 0; round < places.row.size(); ++round) {
    const Reg offset = w.reg(name + "_offset", round);
    w.op(Op::kVMulLoU32, {offset, places.row[round], args.sub(2)});
    w.op(Op::kVAddU32, {offset, offset, places.byte[round]});
  }
}

void load_block(StageWriter& w, const OperandTile& tile, Reg rows) {
  const Reg stride = w.reg(tile.name + "_stride");
  row_span(w, w.reg(tile.name + "_desc").sub(2), {rows, kKeyTile, stride, tile.row_bytes}, tile.name);
  load_described_block(w, tile, tile.name, [] {});
}

void load_described_block(StageWriter& w, const OperandTile& tile, const std::string& to,
                          const std::function<void()>& beside) {
  const std::string& name = tile.name;
  const Reg desc = w.reg(name + "_desc");
  const std::uint32_t share = wave_bytes(w, tile);
  for (std::uint32_t round = 0; round * kLoadBytes < share; ++round) {
    const std::uint32_t at = w.lds(to) + round * kLoadBytes;
    w.op(Op::kSAddU32, {jit::m0(), w.reg(name + "_lds"), imm(at)});
    const bool half = share - round * kLoadBytes < kLoadBytes;
    if (half) w.op(Op::kSLshrB64, {jit::exec(), Imm{-1}, Imm{32}}, "the last 512 bytes: lanes 0 to 31");
    if ((round + 1) * kLoadBytes >= share) beside();
    // soffset stays 0: it escapes the bounds check (gfx950-isa.md 3.2).
    w.load_to_lds(Op::kBufferLoadDwordx4Lds, to, {w.reg(name + "_offset", round), desc, Imm{0}}, name + " rows to LDS",
                  {.offen = true});
    if (half) w.op(Op::kSMovB64, {jit::exec(), Imm{-1}});
  }
}

void step_operand(StageWriter& w, const OperandTile& tile, Reg rows) {
  const Reg desc = w.reg(tile.name + "_desc");
  const Reg left = w.reg(tile.name + "_left");
  const Reg low = w.stemp("step_bytes");
  const Reg high = w.stemp("step_bytes_high");
  const Reg stride = w.reg(tile.name + "_stride");
  const Reg back = w.stemp("step_back");
  w.op(Op::kSMulI32, {low, rows, stride});
  w.op(Op::kSMulHiU32, {high, rows, stride});
  w.op(Op::kSAshrI32, {back, rows, Imm{31}});
  w.op(Op::kSAndB32, {back, back, stride});
  w.op(Op::kSSubU32, {high, high, back}, "signed times unsigned");
  w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), low});
  w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), high}, "next block of " + tile.name);
  w.op(Op::kSSubI32, {left, left, rows});
}

}  // namespace zyfa::schedules::forward
