// One workgroup in execution: its waves, LDS, memory, and what its handlers report.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/sim/exec/machine.h"
#include "runtime/sim/exec/memory.h"

namespace zyfa::sim {

// A direct-to-LDS load between issue and landing: 16 bytes a lane at most.
struct LdsDma {
  std::uint64_t mask = 0;       // lanes that write
  std::uint32_t base = 0;       // LDS address of lane 0
  std::uint32_t stride = 0;     // bytes between lanes
  std::uint32_t bytes = 0;      // bytes a lane
  const MicroOp* op = nullptr;  // strict mode's
  alignas(16) std::uint8_t data[kLanes][16];
};

// Direct-to-LDS loads of one wave in flight, oldest first. No VMEM instruction issues while vmcnt is full.
struct DmaQueue {
  static constexpr std::uint32_t kSlots = kVmcntMax;
  std::vector<LdsDma> slots;  // kSlots, made on first use
  std::uint32_t head = 0, count = 0;
  std::uint32_t landed = 0;  // of the oldest: those that have been written to LDS already
  LdsDma& at(std::uint32_t i) { return slots[(head + i) % kSlots]; }
};

struct Fault {
  bool raised = false;
  bool is_memory = true;
  std::uint32_t wave = 0, lane = 0;
  const MicroOp* op = nullptr;
  std::string message;
};

struct Group {
  std::array<std::uint32_t, 3> id{};
  const Memory* memory = nullptr;
  std::uint8_t* lds = nullptr;
  std::uint32_t lds_bytes = 0;
  std::vector<Wave> waves;
  std::vector<VectorReg> registers;      // rows of all waves
  std::vector<DmaQueue> dma;             // by wave
  std::vector<std::uint8_t> scratch;     // private memory, by wave and lane
  std::uint32_t scratch_bytes = 0;       // of one lane
  std::uint64_t code_address = 0;        // device address of the text section
  const std::uint32_t* op_at = nullptr;  // micro-operation index by text offset / 4, or ~0
  std::uint64_t text_bytes = 0;
  Fault fault;
};

// A wave's access outside every buffer, or something else that ends the launch. Keeps the first.
void raise_fault(Wave& wave, const MicroOp& op, unsigned lane, std::string message);
void raise_memory_fault(Wave& wave, const MicroOp& op, unsigned lane, std::uint64_t address, unsigned bytes,
                        const char* what);

// Moves the program counter to the instruction at `offset` of the text section; false when there is none.
bool jump_to_offset(Wave& wave, std::uint64_t offset);

// A free slot at the end of the wave's queue. When it lands, lanes outside of the allocation write nothing
// (gfx950-isa.md 3.1).
LdsDma& push_dma(Wave& wave);

}  // namespace zyfa::sim
