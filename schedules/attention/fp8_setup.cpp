// Setup: this wave's query rows, descriptors, per-lane LDS addresses, descales, constants, loop-carried state.
#include <cmath>
#include <cstddef>

#include "schedules/attention/fp8_parts.h"
#include "schedules/select/kernel_args.h"

namespace zyfa::schedules::fp8 {
namespace {

using forward::add_scaled;
using forward::kBufferWord3;
using forward::SetupRegs;
using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kQ = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, q));

constexpr std::int32_t kFourOnes = 0x38383838;  // e4m3 1.0 in each byte

Imm imm(std::uint32_t value) { return Imm{static_cast<std::int32_t>(value)}; }

// Q^T operand: lane reads query lane % 32; 16-byte pieces 16 * half and 32 + 16 * half of each 64 dims, as K's
// fragments.
forward::QueryLoads locate_queries(StageWriter& w, const SetupRegs& s, const Variant& v) {
  std::vector<Reg> to;
  for_each_query_block(w, [&](std::uint32_t /*queries*/) {
    for (std::uint32_t step = 0; step < v.steps(); ++step) {
      for (std::uint16_t part = 0; part < 2; ++part) {
        to.push_back(w.reg("q", step).sub(static_cast<std::uint16_t>(4 * part), 4));
      }
    }
  });
  return {w, s, v.head_dim, std::move(to)};
}

// K fragment: lane reads key lane % 32, chunks half and 2 + half of each 64 dims, of the swizzled row. What the swizzle
// leaves alone goes into the instruction offset (read_keys()).
void prepare_key_reads(StageWriter& w, const SetupRegs& s, const Variant& v) {
  const Reg chunk = w.vtemp("k_read_chunk");
  const Reg row = w.vtemp("k_read_row");
  const bool wide = v.head_dim == 128;
  w.op(Op::kVLshrrevB32, {chunk, Imm{wide ? 1 : 2}, s.column});
  w.op(Op::kVAndB32, {chunk, Imm{wide ? 7 : 3}, chunk}, "swizzle of the row");
  w.op(Op::kVXorB32, {chunk, s.half, chunk});
  w.op(Op::kVMulU32U24, {row, imm(v.head_dim), s.column});
  w.op(Op::kVLshlAddU32, {w.reg("k_read"), chunk, Imm{4}, row});
  for (std::uint32_t part = 1; part < (wide ? 4U : 2U); ++part) {
    w.op(Op::kVXorB32, {w.reg("k_read", part), imm(32 * part), w.reg("k_read")});
  }
}

// V fragment by transpose reads (gfx950-isa.md 3.4), in P's key order (1.1): lane i of a 16-lane group q supplies key
// 8 * (i / 8) + 4 * half + i / 2 % 4 and head-dim elements 16 * (q % 2) + 8 * (i % 2); the 32-wide head-dim block only
// flips address bits.
void prepare_value_reads(StageWriter& w, const SetupRegs& s) {
  const Reg in_group = w.vtemp("v_in_group");
  const Reg key = w.vtemp("v_key");
  const Reg part = w.vtemp("v_part");
  const Reg chunk = w.vtemp("v_chunk");
  const Reg address = w.reg("v_read");
  w.op(Op::kVAndB32, {in_group, Imm{15}, s.lane}, "i");
  w.op(Op::kVLshrrevB32, {key, Imm{1}, in_group});
  w.op(Op::kVAndB32, {key, Imm{3}, key}, "i / 2 % 4");
  w.op(Op::kVAndB32, {part, Imm{8}, in_group}, "8 * (i / 8)");
  w.op(Op::kVOrB32, {key, key, part});
  w.op(Op::kVLshlOrB32, {key, s.half, Imm{2}, key}, "+ 4 * half");
  w.op(Op::kVLshrrevB32, {chunk, Imm{4}, s.lane});
  w.op(Op::kVAndB32, {chunk, Imm{1}, chunk}, "q % 2");
  w.op(Op::kVLshrrevB32, {part, Imm{2}, in_group});
  w.op(Op::kVLshlOrB32, {chunk, part, Imm{1}, chunk}, "swizzle of the row: 2 * (i / 4)");
  w.op(Op::kVLshlrevB32, {key, Imm{7}, key}, "rows of 128 bytes");
  w.op(Op::kVLshlOrB32, {key, chunk, Imm{4}, key});
  w.op(Op::kVAndB32, {part, Imm{1}, in_group});
  w.op(Op::kVLshlOrB32, {address, part, Imm{3}, key});
  w.op(Op::kVAddU32, {address, imm(w.lds_base("v_a")), address}, "so that offsets of copies stay below 2^16");
  for (std::uint32_t block = 1; block < forward::kOutputBlocks; ++block) {
    w.op(Op::kVXorB32, {w.reg("v_read", block), imm(32 * block), address});
  }
}

// Loads the value of a descale for this batch and key head, 1 when the caller gave none. `args`: DescaleArgs, of which
// the address is moved.
void load_descale(StageWriter& w, const SetupRegs& s, Reg args, const std::string& name, Reg to) {
  const Reg address = args.sub(0, 2);
  const Reg any = w.stemp(name + "_given");
  const jit::Label none = w.new_label();
  w.op(Op::kSMovB32, {to, FloatImm{1.0F}});
  w.op(Op::kSOrB32, {any, address.sub(0), address.sub(1)});
  w.op(Op::kSCbranchScc0, {none});
  add_scaled(w, address, w.reg("batch"), args.sub(2, 2), "batch");
  add_scaled(w, address, s.key_head, args.sub(4, 2), "key head");
  w.op(Op::kSLoadDword, {to, address, Imm{0}}, name);
  w.place(none);
}

struct Descales {
  Reg q, k;  // SGPRs, on their way
};

Descales load_descales(StageWriter& w, const SetupRegs& s, forward::QueryLoads& queries) {
  constexpr std::uint16_t kArgs = sizeof(DescaleArgs) / 4;
  const Descales descales{w.stemp("q_descale"), w.stemp("k_descale")};
  load_descale(w, s, s.args.descales.sub(0, kArgs), "q_descale", descales.q);
  queries.load(w);
  load_descale(w, s, s.args.descales.sub(kArgs, kArgs), "k_descale", descales.k);
  queries.load(w);
  load_descale(w, s, s.args.descales.sub(2 * kArgs, kArgs), "v_descale", w.reg("v_descale"));
  return descales;
}

void negate_codes(StageWriter& w, Reg mask, const Variant& v) {
  for (std::uint32_t step = 0; step < v.steps(); ++step) {
    for (std::uint16_t r = 0; r < 8; ++r) {
      const Reg codes = w.reg("q", step).sub(r);
      if (!v.integer()) {
        w.op(Op::kVXorB32, {codes, mask, codes});
        continue;
      }
      // -n = ~n + 1 in each byte: the low seven bits add without a carry into the next byte, the sign bit is their xor.
      const Reg low = w.vtemp("low_bits");
      w.op(Op::kVXorB32, {codes, Imm{-1}, codes});
      w.op(Op::kVAndB32, {low, Imm{0x7f7f7f7f}, codes});
      w.op(Op::kVAddU32, {low, Imm{0x01010101}, low});
      w.op(Op::kVAndB32, {codes, mask, codes});
      w.op(Op::kVXorB32, {codes, low, codes}, "-q in every byte");
    }
  }
}

// Q holds codes; a negative scale of the scores moves into them, exactly.
void negate_queries(StageWriter& w, Reg sign, const Variant& v) {
  const jit::Label positive = w.new_label();
  w.op(Op::kSCmpEqU32, {sign, Imm{0}});
  w.op(Op::kSCbranchScc1, {positive});
  const Reg mask = w.stemp("byte_signs");
  w.op(Op::kSMovB32, {mask, Imm{static_cast<std::int32_t>(0x80808080)}});
  for_each_query_block(w, [&](std::uint32_t /*queries*/) { negate_codes(w, mask, v); });
  w.place(positive);
}

// The scale of the raw scores in units, positive (row maxima are taken before it): its sign moves into Q, and 0 becomes
// a scale so small that every probability rounds to 1 while a masked score stays -inf.
void apply_scale(StageWriter& w, const SetupRegs& s, const Descales& descales, const Variant& v) {
  constexpr std::int32_t kTiny = 0x0d800000;  // 2^-100
  const Reg product = w.vtemp("score_scale");
  w.op(Op::kVMovB32, {product, s.args.lengths.sub(3)}, "softmax scale * log2(e)");
  w.op(Op::kVMulF32, {product, FloatImm{v.units()}, product}, "in units");
  w.op(Op::kVMulF32, {product, descales.q, product});
  w.op(Op::kVMulF32, {product, descales.k, product});
  w.op(Op::kVFmaF32, {product, product, Imm{0}, product}, "an infinite scale is NaN for every row");
  const Reg bits = w.stemp("scale_bits");
  const Reg sign = w.stemp("sign");
  const Reg scale = w.reg("scale");
  w.op(Op::kVReadfirstlaneB32, {bits, product});
  w.op(Op::kSLshrB32, {sign, bits, Imm{31}});
  w.op(Op::kSAndB32, {scale.sub(0), bits, Imm{0x7fffffff}});
  w.op(Op::kSMaxI32, {scale.sub(0), scale.sub(0), Imm{kTiny}}, "|scale|; positive floats order as integers");
  w.op(Op::kSMovB32, {scale.sub(1), scale.sub(0)}, "both halves of packed operations");
  negate_queries(w, sign, v);
  if (!v.folded()) {
    const Reg binades = w.vtemp("scale_binades");
    w.op(Op::kVMovB32, {binades, scale.sub(0)});
    w.op(Op::kVMulF32, {binades, FloatImm{1.0F / v.units()}, binades});
    w.op(Op::kVReadfirstlaneB32, {w.reg("scale_binades"), binades});
  }
  if (v.folded()) {
    const Reg exponent = w.stemp("q_exponent");
    w.op(Op::kSAddU32, {exponent, scale.sub(0), Imm{0x00400000}});
    w.op(Op::kSLshrB32, {exponent, exponent, Imm{23}}, "nearest power of two as an E8M0 code");
    w.op(Op::kSMinU32, {exponent, exponent, Imm{255}}, "NaN stays NaN");
    w.op(Op::kVMovB32, {w.reg("q_scale"), exponent});
  }
  if (v.integer()) {
    const Reg zero = w.reg("integer_zero");
    const jit::Label narrow = w.new_label();
    const jit::Label done = w.new_label();
    branch_if_narrow(w, v, narrow);
    w.op(Op::kVMovB32, {zero, Imm{0}}, "centre_scores() takes it off");
    w.op(Op::kSBranch, {done});
    w.place(narrow);
    w.op(Op::kVMovB32, {zero, scale.sub(0)});
    w.op(Op::kVMulF32, {zero, FloatImm{-kIntegerZero}, zero}, "what an accumulator of 0 would score");
    w.place(done);
  }
}

// A of the row-sum products. In 16x16x128 the registers of P put queries c and c + 16 into one column, in lane groups
// 0, 2 and 1, 3; a lane of group g finds rows 4g .. 4g + 3 of the result, so those rows sum the groups of g's parity
// (DESIGN.md section 4). Dense: row 4g has the ones.
void prepare_dense_ones(StageWriter& w, const SetupRegs& s) {
  const Reg group = w.vtemp("lane_group");
  const Reg row = w.vtemp("sum_row");
  const Reg none = w.vtemp("no_ones");
  const Reg ones = w.vtemp("four_ones");
  const Reg chosen = w.stemp("sums_here", 2);
  w.op(Op::kVAndB32, {row, Imm{7}, s.lane}, "row of A % 8: 0 sums even groups, 4 odd ones");
  w.op(Op::kVLshrrevB32, {group, Imm{4}, s.lane});
  w.op(Op::kVAndB32, {group, Imm{1}, group});
  w.op(Op::kVLshlrevB32, {group, Imm{2}, group}, "4 * (group % 2)");
  w.op(Op::kVCmpEqI32, {chosen, row, group});
  w.op(Op::kVMovB32, {none, Imm{0}});
  w.op(Op::kVMovB32, {ones, Imm{kFourOnes}});
  for (std::uint16_t r = 0; r < 8; ++r) w.op(Op::kVCndmaskB32, {w.reg("ones").sub(r), none, ones, chosen});
}

// Sparse (gfx950-isa.md 1.7): rows 4g and 4g + 1 have ones at complementary places of each four keys. Lane group g of A
// holds keys 32g .. 32g + 31, which are lane groups 2g % 4 and 2g % 4 + 1 of P: its first two registers those of even
// groups, the others of odd ones.
void prepare_sparse_ones(StageWriter& w, const SetupRegs& s) {
  constexpr std::int32_t kFirstTwo = 0x44444444;  // items 0 and 1 of every four
  constexpr auto kLastTwo = static_cast<std::int32_t>(0xeeeeeeee);
  const Reg row = w.vtemp("sum_row");
  const Reg low = w.vtemp("row_in_four");
  const Reg none = w.vtemp("no_ones");
  const Reg ones = w.vtemp("four_ones");
  const Reg last = w.vtemp("last_two");
  const Reg even = w.stemp("sums_even", 2);
  const Reg odd = w.stemp("sums_odd", 2);
  const Reg second = w.stemp("second_row", 2);
  w.op(Op::kVAndB32, {row, Imm{6}, s.lane}, "rows 0, 1 (and 8, 9): 0; rows 4, 5 (and 12, 13): 4");
  w.op(Op::kVAndB32, {low, Imm{1}, s.lane});
  w.op(Op::kVCmpEqI32, {even, row, Imm{0}});
  w.op(Op::kVCmpEqI32, {odd, row, Imm{4}});
  w.op(Op::kVCmpEqI32, {second, low, Imm{1}});
  w.op(Op::kVMovB32, {none, Imm{0}});
  w.op(Op::kVMovB32, {ones, Imm{kFourOnes}});
  w.op(Op::kVMovB32, {last, Imm{kLastTwo}});
  for (std::uint16_t r = 0; r < 4; ++r) {
    w.op(Op::kVCndmaskB32, {w.reg("ones").sub(r), none, ones, r < 2 ? even : odd});
  }
  w.op(Op::kVMovB32, {w.reg("ones_index"), Imm{kFirstTwo}});
  w.op(Op::kVCndmaskB32, {w.reg("ones_index"), w.reg("ones_index"), last, second});
}

void set_constants(StageWriter& w, const Variant& v) {
  w.op(Op::kVMovB32, {w.reg("unit_scale"), Imm{kUnitExponent}});
  w.op(Op::kSMovB32, {w.reg("minus_units"), FloatImm{-v.units()}});
  if (v.two_paths()) {
    w.op(Op::kSMovB32, {w.reg("near_least"), FloatImm{kNearLeastCode}});
    w.op(Op::kSMovB32, {w.reg("nothing"), FloatImm{v.top() + v.units() * kLeastExponent}});
  }
  if (!v.folded()) {
    const float bias = v.uses_exponents() ? static_cast<float>(kUnitExponent) - kTopBinades : 0.0F;
    w.op(Op::kSMovB32, {w.reg("height_limit"), FloatImm{bias + v.slack()}}, "heights above move the reference");
  }
  for (std::uint16_t r = 0; r < 16 && v.integer(); ++r) {
    w.op(Op::kVMovB32, {w.reg("score_start").sub(r), Imm{kIntegerStart}});
  }
}

void clear_rows(StageWriter& w, const Variant& v) {
  for (std::uint16_t r = 0; r < v.sum_registers(); ++r) w.op(Op::kVMovB32, {w.reg("row_sum").sub(r), Imm{0}});
  w.op(Op::kVMovB32, {w.reg("reference"), FloatImm{v.folded() ? 0.0F : kNoReference}});
  if (!v.folded()) {
    w.op(Op::kVMovB32, {w.reg("height_start"), FloatImm{-kNoReference / v.units()}}, "any score moves the reference");
    w.op(Op::kVMovB32, {w.reg("bias_start"), FloatImm{-kNoReference}});
    return;
  }
  w.op(Op::kVMovB32, {w.reg("reference_limit"), FloatImm{kNoReference}});
  for (std::uint16_t r = 0; r < 16; ++r) {
    w.op(Op::kVMovB32, {w.reg("score_start").sub(r), FloatImm{v.reference_top()}},
         "a reference of 0 until a key is seen");
  }
}

void clear_state(StageWriter& w, const Variant& v, forward::QueryLoads& queries) {
  for (std::uint32_t block = forward::kBlocksClearedFirst; block < forward::kOutputBlocks; ++block) {
    forward::clear_output(w, block, block + 1);
    queries.load(w, 2);
  }
  for_each_query_block(w, [&](std::uint32_t /*queries*/) { clear_rows(w, v); });
}

// O and the row sum of the near loop in this loop's units: where its probabilities stand, and before the descale of V.
void take_over_sums(StageWriter& w, const Variant& v) {
  const Reg sum = w.reg("row_sum").sub(0);
  const Reg other = w.vtemp("other_half");
  w.op(Op::kVMovB32, {other, sum});
  w.op(Op::kVPermlane32Swap, {sum, other});
  w.op(Op::kVAddF32, {sum, sum, other}, "near row sum over both lane halves");
  const float top = std::exp2(v.reference_binades());
  const Reg factor = w.vtemp("to_codes");
  w.op(Op::kVMovB32, {factor, w.reg("v_descale")});
  w.op(Op::kVRcpF32, {factor, factor});
  if (!v.always_exponents()) w.op(Op::kVMulF32, {sum, FloatImm{top}, sum});
  forward::change_output(w, [&](Reg block) {
    for (std::uint16_t r = 0; r < block.count; ++r) {
      const Reg out = block.sub(r);
      w.op(Op::kVMulF32, {out, factor, out});
      // By itself: the factor of a small descale times the top may overflow where their product with O does not.
      if (!v.always_exponents()) w.op(Op::kVMulF32, {out, FloatImm{top}, out});
    }
  });
}

// The near loop's reference, in log2 units and the row's maximum so far, becomes this loop's.
void take_over_reference(StageWriter& w, const Variant& v) {
  const Reg reference = w.reg("reference");
  const Reg none = w.vtemp("no_reference");
  const Reg scaled = w.vtemp("in_units");
  const Reg unset = w.stemp("unset", 2);
  w.op(Op::kVMovB32, {none, FloatImm{kNoReference}});
  w.op(Op::kVCmpEqF32, {unset, reference, none}, "has seen no key");
  w.op(Op::kVMulF32, {scaled, FloatImm{v.units()}, reference});
  if (!v.folded()) {
    w.op(Op::kVCndmaskB32, {reference, scaled, none, unset});
    follow_reference(w, v);
    return;
  }
  const Reg bound = w.vtemp("bound");
  w.op(Op::kVMovB32, {bound, FloatImm{v.reference_top() + v.units() * v.slack()}});
  w.op(Op::kVCndmaskB32, {w.reg("reference_limit"), bound, none, unset});
  w.op(Op::kVCndmaskB32, {reference, scaled, Imm{0}, unset});
  const Reg start = w.vtemp("start");
  w.op(Op::kVSubF32, {start, FloatImm{v.reference_top()}, reference});
  for (std::uint16_t r = 0; r < 16; ++r) w.op(Op::kVMovB32, {w.reg("score_start").sub(r), start});
}

// Blocks 1 to near_from - 1, an even number: the near loop has taken the others (near.h).
void take_over_trips(StageWriter& w) {
  w.op(Op::kSMinI32, {w.trips(), w.reg("near_from"), w.reg("blocks")});
  w.op(Op::kSSubI32, {w.trips(), w.trips(), Imm{1}});
  w.op(Op::kSMaxI32, {w.trips(), w.trips(), Imm{0}}, "blocks between the first and the diagonal");
  w.op(Op::kSLshrB32, {w.trips(), w.trips(), Imm{1}}, "two an iteration");
}

void count_trips(StageWriter& w, const Variant& v, const SetupRegs& s) {
  forward::count_trips(w, v.mask, s);
  w.op(Op::kSAddU32, {w.trips(), w.trips(), Imm{1}});
  w.op(Op::kSLshrB32, {w.trips(), w.trips(), Imm{1}}, "two blocks an iteration");
}

// Of the first iteration and the second: the row where the second begins, and how many rows they have less one, below
// 0 for none.
struct FirstIterations {
  Reg second_row, rows, second_rows;  // SGPRs; behind near keys there is no first one, and `rows` is the second's
};

Reg count_rows(StageWriter& w, Reg rows, const std::string& name) {
  const Reg count = w.stemp(name);
  w.op(Op::kSMinI32, {count, rows, imm(kIterationKeys)});
  w.op(Op::kSMaxI32, {count, count, Imm{0}});
  w.op(Op::kSSubI32, {count, count, Imm{1}}, "rows of the iteration, less one");
  return count;
}

// The first keys, which hold a sink if there is one, then from the last iteration down to the second: the row maximum
// is nearly always found in the first two visited, and the reference then stays. Behind near keys there are no first
// ones to visit.
FirstIterations find_first_iterations(StageWriter& w, const SetupRegs& s, const Variant& v) {
  FirstIterations first;
  const Reg key_length = s.args.lengths.sub(1);
  const Reg left = w.stemp("keys_left");
  constexpr auto kKeys = static_cast<std::int32_t>(kIterationKeys);
  first.second_row = w.stemp("last_iteration");
  w.op(Op::kSLshlB32, {first.second_row, w.trips(), Imm{7}});
  w.op(Op::kSSubI32, {first.second_row, first.second_row, Imm{kKeys}});
  if (v.near) w.op(Op::kSAddI32, {first.second_row, first.second_row, imm(v.second_key())});
  w.op(Op::kSMaxI32, {first.second_row, first.second_row, Imm{0}},
       v.near ? "none to visit" : "from the first to the last");
  w.op(Op::kSSubI32, {left, key_length, first.second_row});
  first.second_rows = count_rows(w, left, "second_rows");
  first.rows = v.near ? first.second_rows : count_rows(w, key_length, "first_rows");
  return first;
}

// Bytes in range of so many rows; a row's stride is never below its bytes (checked at launch).
void row_range(StageWriter& w, Reg to, Reg rows_less_one, Reg stride, const forward::OperandTile& tile) {
  w.op(Op::kSMulI32, {to, rows_less_one, stride});
  w.op(Op::kSAddI32, {to, to, imm(tile.row_bytes)});
  w.op(Op::kSMaxI32, {to, to, Imm{0}}, tile.name + ": bytes in range, so that rows past the end read 0");
}

// From half b of an iteration to half a of another: `rows` from one to the other, less a block.
void set_step(StageWriter& w, Reg step, Reg rows, Reg stride) {
  const Reg back = w.stemp("step_back");
  w.op(Op::kSMulI32, {step.sub(0), rows, stride});
  w.op(Op::kSMulHiU32, {step.sub(1), rows, stride});
  w.op(Op::kSAshrI32, {back, rows, Imm{31}});
  w.op(Op::kSAndB32, {back, back, stride});
  w.op(Op::kSSubU32, {step.sub(1), step.sub(1), back}, "signed times unsigned");
}

// Of an operand: the bytes in range of its first iteration, of the second, and of the others; the way to the second and
// to the others. Behind near keys all are alike.
void start_operand(StageWriter& w, const Variant& v, const forward::OperandTile& tile, const FirstIterations& first) {
  const std::string& name = tile.name;
  const Reg stride = w.reg(name + "_stride");
  const Reg step = w.reg(name + "_step");
  const Reg back = w.reg(name + "_back");
  const Reg full = w.reg(name + "_full");
  constexpr auto kBlock = static_cast<std::int32_t>(kKeyTile), kKeys = static_cast<std::int32_t>(kIterationKeys);
  if (v.near) forward::step_operand(w, tile, first.second_row);
  row_range(w, w.reg(name + "_desc").sub(2), first.rows, stride, tile);
  w.op(Op::kSMulI32, {full, stride, Imm{kKeys - 1}});
  w.op(Op::kSAddU32, {full, full, imm(tile.row_bytes)}, name + ": bytes in range of a whole iteration");
  w.op(Op::kSLshlB32, {w.reg(name + "_block"), stride, Imm{6}}, "64 rows");
  w.op(Op::kSMulI32, {back.sub(0), stride, Imm{-kKeys - kBlock}});
  w.op(Op::kSMulHiU32, {back.sub(1), stride, Imm{-kKeys - kBlock}});
  w.op(Op::kSSubI32, {back.sub(1), back.sub(1), stride}, "signed times unsigned");
  w.op(Op::kSMovB32, {w.reg(name + "_iterations"), w.trips()});
  if (v.near) {
    w.op(Op::kSMovB64, {step, back});
    w.op(Op::kSMovB32, {w.reg(name + "_span"), full});
    return;
  }
  const Reg rows = w.stemp("rows_to_second");
  w.op(Op::kSSubI32, {rows, first.second_row, Imm{kBlock}});
  set_step(w, step, rows, stride);
  row_range(w, w.reg(name + "_span"), first.second_rows, stride, tile);
}

// Positions as mask() keeps them: of the first iteration as it is, of the others less where the lowest of them starts,
// so that what lies past the end is below 0; a jump of one iteration says that this is not the first.
void start_mask(StageWriter& w, const Variant& v, Reg last) {
  constexpr auto kKeys = static_cast<std::int32_t>(kIterationKeys);
  const auto lowest = static_cast<std::int32_t>(v.second_key());
  const Reg limit = w.reg("mask_limit");
  const Reg position = w.reg("key_position");
  const Reg jump = w.reg("mask_jump");
  w.op(Op::kSSubI32, {limit, w.reg("first_limit"), Imm{lowest + kKeys - 2}});
  w.op(Op::kSMaxI32, {limit, limit, Imm{0}}, "from here on an iteration may end behind the last key of a query");
  w.op(Op::kSAddU32, {limit, limit, Imm{kPositionBias}});
  if (v.near) {
    w.op(Op::kSSubI32, {position, last, Imm{lowest}});
    w.op(Op::kSAddU32, {position, position, Imm{kPositionBias}});
    w.op(Op::kSMovB32, {jump, Imm{-kKeys}});
    return;
  }
  w.op(Op::kSMovB32, {position, Imm{kPositionBias}});
  w.op(Op::kSSubI32, {jump, last, Imm{lowest}});
  w.op(Op::kSCmpEqU32, {last, Imm{0}}, "one iteration?");
  w.op(Op::kSCselectB32, {jump, Imm{-2 * kKeys}, jump});
}

// What the first loads of K leave for the time they take.
struct Rest {
  SetupRegs regs;
  forward::LanePlaces values;
  FirstIterations first;
};

SetupRest finish_setup(StageWriter& w, const Variant& v, const SetupRegs& s, const Descales& descales) {
  apply_scale(w, s, descales, v);
  if (v.near) {
    for_each_query_block(w, [&](std::uint32_t /*queries*/) {
      take_over_sums(w, v);
      take_over_reference(w, v);
    });
  }
  return {};
}

// What no load needs. The descales are not waited for here.
SetupRest prepare_loop(StageWriter& w, const Variant& v, const Rest& rest) {
  const SetupRegs& s = rest.regs;
  forward::QueryLoads queries = locate_queries(w, s, v);
  queries.load(w);
  const Descales descales = load_descales(w, s, queries);
  if (!v.near) {
    forward::prepare_limits(w, v.mask, s);
    clear_state(w, v, queries);
  }
  queries.load_rest(w);
  for_each_query_block(w, [&](std::uint32_t /*queries*/) { start_mask(w, v, rest.first.second_row); });
  set_constants(w, v);
  return {{"load_k", "load_v"},
          [v, s, descales](StageWriter& later) { return finish_setup(later, v, s, descales); },
          v.near ? RestPlace::kUnderFirstLoads : RestPlace::kLate};
}

SetupRest continue_setup(StageWriter& w, const Variant& v, const Rest& rest) {
  forward::describe_operand(w, rest.regs, value_tile(), rest.regs.args.v, rest.values);
  start_operand(w, v, value_tile(), rest.first);
  return {{"load_k", "load_v"}, [v, rest](StageWriter& later) { return prepare_loop(later, v, rest); }};
}

}  // namespace

SetupRest setup(StageWriter& w, const Variant& v) {
  const forward::ArgumentChoice choice{.tensors = kQ, .descales = true, .output = true, .lse = v.lse};
  SetupRegs s = v.near ? forward::resume_setup(w, choice) : forward::begin_setup(w, choice);
  const forward::LanePlaces keys = forward::place_lanes(w, s, key_tile(v));
  const forward::LanePlaces values = forward::place_lanes(w, s, value_tile());
  prepare_key_reads(w, s, v);
  prepare_value_reads(w, s);
  v.dense_sum() ? prepare_dense_ones(w, s) : prepare_sparse_ones(w, s);
  if (!v.near) forward::clear_output(w, 0, forward::kBlocksClearedFirst);
  forward::locate_key_head(w, s);
  if (v.near) {
    take_over_trips(w);
  } else {
    forward::locate_rows(w, v.mask, s);
    count_trips(w, v, s);
  }
  const FirstIterations first = find_first_iterations(w, s, v);
  forward::describe_operand(w, s, key_tile(v), s.args.k, keys);
  start_operand(w, v, key_tile(v), first);
  const Rest rest{s, values, first};
  return {{"load_k"}, [v, rest](StageWriter& later) { return continue_setup(later, v, rest); }};
}

}  // namespace zyfa::schedules::fp8
