// The simulated machine as plain data: decoded micro-operations, a wave's registers, and a workgroup's shared state.
//
// Invariants: a micro-operation is decoded once and never changes; `index` of a vector operand is a row of the unified
// register file (AGPR n is row accum_offset + n, gfx950-isa.md 5.4) and has been checked against the allocation;
// handlers never allocate. Code compiled per instruction set (lanes.h) uses this header, so everything here is data or
// forced inline.
#pragma once

#include <cstddef>
#include <cstdint>

#include "zyfa/sim_rules.h"

namespace zyfa::sim {

inline constexpr unsigned kLanes = 64;
inline constexpr unsigned kLdsBytes = 163840;  // gfx950-isa.md 3.3
inline constexpr unsigned kScalars = 128;
inline constexpr unsigned kFlatScratchLo = 102, kXnackMaskLo = 104, kVccLo = 106, kM0 = 124, kExecLo = 126;
inline constexpr unsigned kMaxSources = 5;
inline constexpr unsigned kVmcntMax = 63, kLgkmcntMax = 15;  // full counters, and as operands: no wait

#define ZYFA_SIM_INLINE __attribute__((always_inline)) inline

struct alignas(64) VectorReg {
  std::uint32_t lane[kLanes];
};

enum class OperandKind : std::uint8_t { kNone, kVgpr, kSgpr, kConst, kSpecial };
enum class SpecialSource : std::uint16_t {
  kScc,
  kVccz,
  kExecz,
  kSharedBase,
  kSharedLimit,
  kPrivateBase,
  kPrivateLimit,
  kLdsDirect
};

// SDWA selection of a source or destination.
enum class Sel : std::uint8_t { kDword, kByte0, kByte1, kByte2, kByte3, kWord0, kWord1 };
enum class Unused : std::uint8_t { kPad, kSext, kPreserve };

// `type` is the operand's code in a row's signature (see OpRow) and decides constants, negation and absolute value.
struct Operand {
  OperandKind kind = OperandKind::kNone;
  std::uint8_t count = 0;   // 32-bit registers
  std::uint16_t index = 0;  // vector row, scalar register or SpecialSource
  std::uint32_t lo = 0, hi = 0;
  char type = 'i';
  bool neg = false, abs = false, sext = false;
  bool agpr = false;
  bool plain = false;  // a vector register read as it stands: no broadcast, negation, selection or lane movement
  Sel sel = Sel::kDword;
};

enum class Unit : std::uint8_t { kValu, kTrans, kMfma, kSalu, kSmem, kLds, kVmem, kBranch, kBarrier, kOther };

// What a row says about its instruction beyond the signature.
enum RowFlag : std::uint32_t {
  kFloatMods = 1u << 0,    // abs/neg on sources, clamp and omod on the result
  kTied = 1u << 1,         // the destination is also a source
  kIgnoresExec = 1u << 2,  // acts on all lanes whatever EXEC says
  kCopies = 1u << 3,       // moves bits without looking at them: poison travels, it is not reported
  kReadsVcc = 1u << 4,     // VCC as an operand that is not printed
  kReadsScc = 1u << 5,
  kWritesScc = 1u << 6,
  kReadsM0 = 1u << 7,
  kWritesExec = 1u << 8,
  kPacked = 1u << 9,     // VOP3P: op_sel/op_sel_hi/neg_lo/neg_hi
  kOpSel = 1u << 10,     // VOP3 op_sel on 16-bit operands
  kIntClamp = 1u << 11,  // the clamp bit is understood by the handler
  kLoad = 1u << 12,      // destination comes from memory
  kStore = 1u << 13,
  kAtomic = 1u << 14,
  kFlat = 1u << 15,
  kLaneSwap = 1u << 16,  // v_permlane*_swap: both operands read and written
  kReadlane = 1u << 17,  // v_readlane, v_readfirstlane, v_writelane
  kDot = 1u << 18,
  kPartialWrite = 1u << 19,  // keeps part of the destination
  kSgemm = 1u << 20,         // MFMA with f32 or f64 inputs
  kSparse = 1u << 21,
  kScaled = 1u << 22,
  kAllLanesNeeded = 1u << 23,  // EXEC should be all ones: permlane swaps, transposed reads
  kReadsExec = 1u << 24,       // scalar code that reads EXEC without naming it
  kBuffer = 1u << 25,
  kGlobal = 1u << 26,
  kScratch = 1u << 27,
  kSelects = 1u << 28,     // v_cndmask: only the selected source matters
  kDgemm = 1u << 30,       // MFMA with f64 inputs, beside kSgemm: wait states of its own
  kWideAddend = 1u << 29,  // v_mad_u64_u32: the high dword of the addend reaches the high result alone
};

// The field of MODE.FP_ROUND under which the engine runs a handler: bits 1:0, bits 3:2, or none because the instruction
// rounds to nearest or its handler rounds by itself.
enum class Rounds : std::uint8_t { kNearest, kSingle, kDouble };

struct Wave;
struct MicroOp;
using Handler = void (*)(Wave&, const MicroOp&);

// One instruction the simulator knows. Signature: destination codes, '=', source codes.
//   i int32, f f32, h f16, b bf16, d f64, l int64, p two f32, q two f16, m lane mask (SGPR pair), s scalar int32,
//   S scalar int64, t register tuple of any size, D the same with constants of f64, k immediate, a address (VGPRs or
//   "off"), r buffer resource, x f32 or a half of f16 as op_sel_hi says, n nothing is read: tuple that names a
//   destination, g SGPR pair or "off" of a global address, o offset of a scalar load, u scalar data of any size,
//   w hardware register
struct OpRow {
  const char* mnemonic;
  const char* signature;
  Handler run;
  Unit unit;
  std::uint32_t flags;
  std::uint32_t arg;  // free for the handler: bytes of an access, passes, ...
};
struct RowTable {
  const OpRow* rows;
  std::size_t count;
};

struct DppControl {
  std::uint8_t source[kLanes];  // lane each lane reads; 0xff: none
  std::uint64_t write_mask;     // row_mask and bank_mask
  bool bound_zero;              // bound_ctrl: a missing source reads 0, else the lane is not written
};

struct MicroOp {
  Handler run = nullptr;
  const OpRow* row = nullptr;
  Operand dst, dst2;
  Operand src[kMaxSources];
  std::uint8_t sources = 0;
  Unit unit = Unit::kOther;
  bool post = false;  // result needs clamp, omod, SDWA or DPP treatment
  bool clamp = false;
  std::uint8_t omod = 0;  // 1: x2, 2: x4, 3: /2
  Rounds rounds = Rounds::kNearest;
  std::uint8_t op_sel = 0, op_sel_hi = 0, neg_lo = 0, neg_hi = 0;
  std::uint8_t cbsz = 0, abid = 0, blgp = 0, bitop3 = 0;
  Sel dst_sel = Sel::kDword;
  Unused dst_unused = Unused::kPad;
  bool sdwa = false;
  bool offen = false, idxen = false, lds = false, returns = false;
  std::uint8_t nop_states = 1;
  std::uint8_t vmcnt = kVmcntMax, lgkmcnt = kLgkmcntMax;
  std::uint32_t flags = 0;
  std::uint32_t arg = 0;
  std::int32_t imm = 0;      // instruction offset, simm16 or branch displacement
  std::int32_t imm2 = 0;     // second offset of read2/write2, hwreg fields
  std::uint32_t target = 0;  // micro-operation index of a branch target
  std::uint32_t offset = 0;  // bytes from the start of the text section
  std::uint32_t size = 0;
  std::uint32_t flops = 0;
  std::uint32_t dst_bits = ~0u;  // of a load: the bits of its register that it writes
  const DppControl* dpp = nullptr;
};

enum class WaveState : std::uint8_t { kRunning, kBarrier, kEnded, kFaulted };

struct Group;

struct Wave {
  VectorReg* v = nullptr;
  std::uint32_t s[kScalars] = {};
  std::uint32_t scc = 0;
  std::uint32_t mode = 0;
  std::uint32_t pc = 0;  // index of the next micro-operation
  WaveState state = WaveState::kRunning;
  std::uint32_t id = 0;
  std::uint32_t vgpr_rows = 0;
  Group* group = nullptr;
  SimRules rules;
  // MODE decoded: masks that a value with exponent 0 is ANDed with.
  std::uint32_t f32_in = ~0u, f32_out = ~0u;
  std::uint16_t f16_in = 0xffff, f16_out = 0xffff;
  std::uint64_t f64_in = ~0ull, f64_out = ~0ull;
  std::uint64_t executed = 0;

  ZYFA_SIM_INLINE std::uint64_t scalar64(unsigned i) const {
    return static_cast<std::uint64_t>(s[i]) | (static_cast<std::uint64_t>(s[i + 1]) << 32);
  }
  ZYFA_SIM_INLINE void set_scalar64(unsigned i, std::uint64_t value) {
    s[i] = static_cast<std::uint32_t>(value);
    s[i + 1] = static_cast<std::uint32_t>(value >> 32);
  }
  ZYFA_SIM_INLINE std::uint64_t exec() const { return scalar64(kExecLo); }
  ZYFA_SIM_INLINE bool dx10_clamp() const { return (mode >> 8) & 1; }
  ZYFA_SIM_INLINE bool ieee() const { return (mode >> 9) & 1; }
  ZYFA_SIM_INLINE bool fp16_ovfl() const { return (mode >> 23) & 1; }
};

// Decodes MODE (gfx950-isa.md 2) into the wave's masks.
void apply_mode(Wave& wave, std::uint32_t mode);

// Value of a scalar-readable operand; `dword` 1 gives the high half of a pair.
std::uint32_t scalar_value(const Wave& wave, const Operand& operand, unsigned dword);

}  // namespace zyfa::sim
