// The MFMA part of the hazard table; the rest is in hazard_table.cpp.
#pragma once

#include "tests/correctness/hazards/hazard_table.h"

namespace zyfa::hazards {

void add_matrix_rows(std::vector<HazardRow>& rows);

}  // namespace zyfa::hazards
