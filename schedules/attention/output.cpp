#include "schedules/attention/output.h"

#include <numbers>

#include "schedules/attention/kernel_setup.h"

namespace zyfa::schedules::forward {
namespace {

using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr std::uint32_t kOutputRowBytes = 256;  // 128 bf16

struct Lanes {
  Reg column, half;  // VGPRs
};

Lanes lane_numbers(StageWriter& w) {
  const Reg lane = w.vtemp("lane");
  const Lanes lanes{w.vtemp("column"), w.vtemp("half")};
  w.op(Op::kVMbcntLo, {lane, Imm{-1}, Imm{0}});
  w.op(Op::kVMbcntHi, {lane, Imm{-1}, lane}, "lane");
  w.op(Op::kVAndB32, {lanes.column, Imm{31}, lane});
  w.op(Op::kVLshrrevB32, {lanes.half, Imm{5}, lane});
  return lanes;
}

// Lanes (an SGPR pair) whose row saw no key: by the mask, whatever a scale that is NaN made of its scores, or because
// all scores were -inf.
Reg empty_rows(StageWriter& w, const Lanes& lanes, const RowResult& rows) {
  const Reg last_key = w.vtemp("last_key");
  const Reg total = w.vtemp("total_or_0");
  const Reg empty = w.stemp("empty", 2);
  w.op(Op::kVLshlAddU32, {last_key, lanes.half, Imm{2}, w.reg("key_limit")}, "prepare_limits() took 4 * half away");
  w.op(Op::kVCmpLtI32, {empty, last_key, Imm{0}}, "sees no key?");
  w.op(Op::kVCndmaskB32, {total, rows.total, Imm{0}, empty});
  w.op(Op::kVCmpEqF32, {empty, total, Imm{0}}, "or saw none?");
  return empty;
}

Reg output_descriptor(StageWriter& w, Reg row0, Reg rows) {
  const Reg args = w.reg("o_args");
  const Reg desc = w.stemp("o_desc", 4);
  const Reg address = desc.sub(0, 2);
  add_scaled(w, address, args.sub(0, 2), w.reg("batch"), args.sub(6, 2), "batch");
  add_scaled(w, address, w.reg("head"), args.sub(4, 2), "head");
  add_rows(w, address, address, row0, args.sub(2));
  row_span(w, desc.sub(2), {rows, kQueryBlock, args.sub(2), kOutputRowBytes}, "o");
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kBufferWord3}});
  return desc;
}

Reg lse_descriptor(StageWriter& w, Reg row0, Reg rows) {
  const Reg args = w.reg("lse_args");
  const Reg desc = w.stemp("lse_desc", 4);
  const Reg address = desc.sub(0, 2);
  const Reg row_bytes = w.stemp("lse_row_bytes");
  add_scaled(w, address, args.sub(0, 2), w.reg("batch"), args.sub(4, 2), "batch");
  add_scaled(w, address, w.reg("head"), args.sub(2, 2), "head");
  w.op(Op::kSMovB32, {row_bytes, Imm{4}});
  add_rows(w, address, address, row0, row_bytes);
  const Reg clamped = w.stemp("lse_rows");
  w.op(Op::kSMinI32, {clamped, rows, Imm{static_cast<std::int32_t>(kQueryBlock)}});
  w.op(Op::kSMaxI32, {clamped, clamped, Imm{0}});
  w.op(Op::kSLshlB32, {desc.sub(2), clamped, Imm{2}});
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kBufferWord3}});
  return desc;
}

// A lane holds 4 consecutive head-dim elements in every second group of 4, its partner the others; one swap gives each
// lane 8 consecutive elements, 16 bytes.
void store_output(StageWriter& w, const Lanes& lanes, const RowResult& rows, Reg empty, Reg desc) {
  const Reg inverse = w.vtemp("inverse");
  w.op(Op::kVRcpF32, {inverse, rows.total});
  const Reg offset = w.vtemp("o_offset");
  const Reg half = w.vtemp("o_half");
  w.op(Op::kVMulLoU32, {offset, lanes.column, w.reg("o_args").sub(2)});
  w.op(Op::kVLshlrevB32, {half, Imm{4}, lanes.half});
  w.op(Op::kVAddU32, {offset, offset, half}, "row * stride + 16 * half");
  for (std::uint32_t block = 0; block < kOutputBlocks; ++block) {
    const Reg out = output_in_vgprs(w, block);
    for (std::uint16_t r = 0; r < 16; ++r) {
      const Reg element = out.sub(r);
      w.op(Op::kVMulF32, {element, element, inverse});
      // By itself: a small factor over a large sum is a denormal, which would be flushed, and O with it.
      if (rows.output_scale) w.op(Op::kVMulF32, {element, element, *rows.output_scale});
    }
    for (std::uint16_t pair = 0; pair < 2; ++pair) {
      const Reg packed = w.vtemp("packed", 4);
      const auto first = static_cast<std::uint16_t>(8 * pair);
      const auto pack = [&](std::uint16_t to, std::uint16_t r) {
        w.op(Op::kVCvtPkBf16F32, {packed.sub(to), out.sub(static_cast<std::uint16_t>(first + r)),
                                  out.sub(static_cast<std::uint16_t>(first + r + 1))});
      };
      pack(0, 0);
      pack(1, 2);
      pack(2, 4);
      pack(3, 6);
      // Selected, not multiplied away: 0 * NaN of a key that the row does not see would stay NaN.
      for (std::uint16_t r = 0; r < 4; ++r) {
        w.op(Op::kVCndmaskB32, {packed.sub(r), packed.sub(r), Imm{0}, empty}, "no key seen: 0");
      }
      w.op(Op::kVPermlane32Swap, {packed.sub(0), packed.sub(2)});
      w.op(Op::kVPermlane32Swap, {packed.sub(1), packed.sub(3)}, "8 consecutive dims a lane");
      w.op(Op::kBufferStoreDwordx4, {packed, offset, desc, Imm{0}},
           "O dims " + std::to_string(32 * block + 16 * pair) + "..+15, rows past the end are dropped",
           {.offset = static_cast<std::int32_t>(64 * block + 32 * pair), .offen = true});
    }
  }
}

void store_lse(StageWriter& w, const Lanes& lanes, const RowResult& result, Reg empty, Reg desc) {
  const Reg lse = w.vtemp("lse");
  w.op(Op::kVLogF32, {lse, result.total});
  w.op(Op::kVAddF32, {lse, result.reference, lse}, "log2 of the sum actually divided by");
  w.op(Op::kVMulF32, {lse, FloatImm{std::numbers::ln2_v<float>}, lse}, "natural log");
  const Reg none = w.vtemp("minus_infinity");
  w.op(Op::kVMovB32, {none, Imm{static_cast<std::int32_t>(0xff800000)}});
  w.op(Op::kVCndmaskB32, {lse, lse, none, empty}, "no key seen: -inf");
  // Both lane halves hold the row; the upper half is sent out of range, where stores are dropped.
  const Reg offset = w.vtemp("lse_offset");
  const Reg away = w.vtemp("lse_away");
  w.op(Op::kVLshlrevB32, {offset, Imm{2}, lanes.column});
  w.op(Op::kVLshlrevB32, {away, Imm{30}, lanes.half});
  w.op(Op::kVOrB32, {offset, offset, away});
  w.op(Op::kBufferStoreDword, {lse, offset, desc, Imm{0}}, "LSE", {.offen = true});
}

}  // namespace

Reg output_in_vgprs(StageWriter& w, std::uint32_t block) {
  const Reg out = w.reg("out", block);
  if (out.bank == jit::Bank::kVgpr) return out;
  const Reg copy = w.vtemp("out_copy", out.count);
  for (std::uint16_t r = 0; r < out.count; ++r) w.op(Op::kVAccvgprRead, {copy.sub(r), out.sub(r)});
  return copy;
}

void write_output(StageWriter& w, LseOutput lse, const RowResult& result, std::uint32_t queries) {
  const Reg row0 = first_row_of(w, queries);
  const Reg rows = w.stemp("rows");
  w.op(Op::kSSubI32, {rows, w.reg("query_length"), row0}, "queries of this block, may exceed 32 or be negative");
  const Lanes lanes = lane_numbers(w);
  const Reg empty = empty_rows(w, lanes, result);
  store_output(w, lanes, result, empty, output_descriptor(w, row0, rows));
  if (lse == LseOutput::kWritten) store_lse(w, lanes, result, empty, lse_descriptor(w, row0, rows));
}

}  // namespace zyfa::schedules::forward
