// Replays the traces of workgroups on one compute unit and says when every instruction issued, and why it waited.
//
// The rules are in docs/performance-model.md. A run is a pure function of traces and parameters. Waves that the code
// leaves waiting for each other at different barriers are released as the functional simulator does: all that have not
// ended have arrived.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/sim/exec/program.h"
#include "runtime/sim/timing/parameters.h"
#include "runtime/sim/timing/trace.h"
#include "zyfa/error.h"

namespace zyfa::sim::timing {

enum class Stall : std::uint8_t {
  kNone,
  kLdsWait,       // s_waitcnt lgkmcnt on LDS
  kVmemWait,      // s_waitcnt vmcnt
  kSmemWait,      // s_waitcnt lgkmcnt on a scalar load
  kBarrier,       // for others, and the release
  kMatrixBusy,    // an MFMA for the matrix pipe
  kMatrixShadow,  // a vector instruction after an MFMA of its own wave (1.3a)
  kValuPort,      // a vector instruction or MFMA for the port, held by another
  kTrans,         // the same, held by a TRANS instruction
  kLdsQueue,
  kVmemQueue,
  kScalar,    // scalar category taken by another wave
  kNop,       // s_nop
  kPriority,  // ready, lost the turn to another wave
  kFetch,     // taken branch, misaligned instruction
  kAddress,   // LDS address from a VALU result
};
inline constexpr std::size_t kStalls = 16;
std::string_view stall_name(Stall stall);  // "lds wait", ...

// One executed instruction.
struct Event {
  std::uint32_t wave = 0;        // index into CuResult::waves
  std::uint32_t op = 0;          // index into Program::ops
  std::uint64_t issue = 0;       // cycle
  std::uint64_t unit_start = 0;  // its unit began on it
  std::uint64_t end = 0;         // its unit is free again; LDS, VMEM and SMEM: the result is there
  std::uint32_t stalled = 0;     // cycles it waited at the head of its wave
  Stall stall = Stall::kNone;    // the reason for most of them
};

struct WaveTime {
  std::array<std::uint32_t, 3> workgroup{};
  std::uint32_t index = 0;  // in its workgroup
  std::uint32_t simd = 0;
  std::uint64_t start = 0, end = 0;
  std::array<std::uint64_t, kStalls> stalls{};  // cycles by Stall
  std::uint64_t instructions = 0;
};

// Cycles busy. The VALU counts what executes (a TRANS for all of its cycles), not an MFMA's hold of the port.
struct UnitBusy {
  std::array<std::uint64_t, kSimds> matrix{}, valu{}, trans{};  // trans is part of valu
  std::uint64_t lds = 0;                                        // the array, reads, writes and direct-to-LDS loads
  std::uint64_t l1 = 0;                                         // vector memory path
  std::uint64_t scalar = 0;                                     // SALU and SMEM, summed over the SIMDs
};

struct CuResult {
  std::uint64_t cycles = 0;     // until the last wave has ended
  std::vector<WaveTime> waves;  // in launch order
  UnitBusy busy;
  std::vector<Event> events;  // when asked, by issue
};

enum class EventLog : std::uint8_t { kOff, kOn };

struct CuRun {
  const Program* program = nullptr;
  std::vector<const GroupTrace*> groups;  // in launch order
  unsigned resident = 1;                  // workgroups at once on the CU
  EventLog events = EventLog::kOff;
};

// kInvalidArgument: no program or group, a step outside of the program, more resident waves than a CU holds.
[[nodiscard]] Expected<CuResult> run_cu(const CuRun& run, const Parameters& parameters);

}  // namespace zyfa::sim::timing
