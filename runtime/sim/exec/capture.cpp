#include "runtime/sim/exec/capture.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "runtime/sim/exec/lds_banks.h"
#include "runtime/sim/exec/traffic.h"
#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Bytes that a memory instruction asks for, wherever they lie. Traffic counts read-modify-writes as lane operations.
u32 bytes_asked(const Wave& wave, const MicroOp& op) {
  const MemoryTraffic t = traffic_of(wave, op);
  const u64 element = op.flags & kAtomic ? op.arg & kBytesMask : 0;
  return static_cast<u32>(t.lds_read + t.lds_written + t.global_read + t.global_written + t.scalar_read +
                          t.scratch_read + t.scratch_written + t.atomics * element);
}

u64 first_address(Wave& wave, const MicroOp& op) {
  if (wave.exec() == 0) return 0;
  const u32 bytes = op.arg & kTyped ? 4 : op.arg & kBytesMask;
  return Locator(wave, op, bytes).locate(static_cast<unsigned>(std::countr_zero(wave.exec())), 0, bytes).address;
}

// Set bits of a word, in a form that vectorises without a popcount instruction.
u32 bits(u32 x) {
  x -= (x >> 1) & 0x55555555;
  x = (x & 0x33333333) + ((x >> 2) & 0x33333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f;
  x += x >> 8;
  return (x + (x >> 16)) & 0x3f;
}

u32 distance(const VectorReg& x, const VectorReg& y) {
  u32 sum = 0;
  for (unsigned l = 0; l < kLanes; ++l) sum += bits(x.lane[l] ^ y.lane[l]);
  return sum;
}

// Toggled bits of one operand; keeps it for the next time.
u64 exchange(const Wave& wave, const Operand& operand, MatrixOperands::Held& held, bool compare) {
  const u32 count = std::min<u32>(operand.count, MatrixOperands::kMostRegisters);
  if (held.registers.size() < count) held.registers.resize(count);
  u64 toggled = 0;
  for (u32 r = 0; r < count; ++r) {
    VectorReg constant;
    const VectorReg* now = &constant;
    if (operand.kind == OperandKind::kVgpr) {
      now = &wave.v[operand.index + r];
    } else {
      std::fill(std::begin(constant.lane), std::end(constant.lane), scalar_value(wave, operand, 0));
    }
    VectorReg& before = held.registers[r];
    if (compare && r < held.count) toggled += distance(*now, before);
    before = *now;
  }
  held.count = count;
  return toggled;
}

}  // namespace

void count_toggles(const Wave& wave, const MicroOp& op, MatrixOperands& last, SimToggles& to) {
  // The sparse forms accumulate in their destination; their third source is the index of A's pattern.
  Operand c = op.flags & kSparse ? op.dst : op.src[2];
  c.count = op.dst.count;
  const u64 a = exchange(wave, op.src[0], last.held[0], last.any),
            b = exchange(wave, op.src[1], last.held[1], last.any),
            accumulator = exchange(wave, c, last.held[2], last.any);
  if (last.any) {
    ++to.mfmas;
    to.a += a;
    to.b += b;
    to.c += accumulator;
  }
  last.any = true;
}

void Recorder::start(const Group& group) {
  trace_ = {};
  trace_.id = group.id;
  trace_.waves.resize(group.waves.size());
  toggles_ = {};
  last_.resize(group.waves.size());
  for (MatrixOperands& last : last_) last.any = false;
}

void Recorder::add(Wave& wave, const MicroOp& op, std::size_t index) {
  timing::WaveTrace& trace = trace_.waves[wave.id];
  timing::Step step{static_cast<u32>(index), 0};
  if (op.unit == Unit::kLds) step.work = lds_cost_of(wave, op).cycles();
  if (op.unit == Unit::kVmem || op.unit == Unit::kSmem) step.work = bytes_asked(wave, op);
  if (op.unit == Unit::kVmem && (op.flags & (kLoad | kStore))) trace.addresses.push_back(first_address(wave, op));
  if (op.unit == Unit::kMfma) count_toggles(wave, op, last_[wave.id], toggles_);
  trace.steps.push_back(step);
}

}  // namespace zyfa::sim
