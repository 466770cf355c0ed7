// What BF16 loops share in their setup: V's transpose reads, and the scale with Q's sign.
#pragma once

#include <cstdint>
#include <string>

#include "schedules/attention/kernel_setup.h"
#include "schedules/dsl/stage_writer.h"

namespace zyfa::schedules::forward {

// V fragment by transpose reads (gfx950-isa.md 3.4): lane i of a 16-lane group q supplies key 4 * half + i / 4 and
// head-dim elements 16 * (q % 2) + 4 * (i % 4); the 32-wide head-dim block only flips address bits.
// `tile`: its LDS addresses, one VGPR a head-dim block.
void prepare_value_reads(StageWriter& w, const SetupRegs& s, const std::string& tile);

// The loop multiplies row maxima by the scale, which is right for a positive one only: a negative sign moves into Q,
// exactly, and 0 becomes a scale so small that every probability rounds to 1 while a masked score stays -inf.
// Writes the tile "scale" and the `steps` fragments of the tile `queries`.
void apply_scale(StageWriter& w, const SetupRegs& s, const std::string& queries, std::uint32_t steps);

}  // namespace zyfa::schedules::forward
