// From a plan to a listing of virtual registers: setup, prologue trips, the unrolled loop (twice where an
// algorithm runs before another), finish.
#pragma once

#include <string>

#include "jit/isa/instruction.h"
#include "schedules/dsl/plan.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

[[nodiscard]] Expected<jit::Listing> build_listing(const Plan& plan, const std::string& symbol);

}  // namespace zyfa::schedules
