// The parts of the near loop, one file each: setup and loads, matrix.
#pragma once

#include "schedules/attention/forward_parts.h"
#include "schedules/attention/near.h"
#include "schedules/attention/operand_tile.h"
#include "schedules/attention/output.h"

namespace zyfa::schedules::near {

[[nodiscard]] forward::OperandTile key_tile(const NearShape& shape);
[[nodiscard]] forward::OperandTile value_tile();

SetupRest setup(StageWriter& w, const NearShape& shape);
void load_keys(StageWriter& w, const NearShape& shape);
void load_values(StageWriter& w);
void scores(StageWriter& w, const NearShape& shape);
void mask(StageWriter& w);
void accumulate(StageWriter& w);

}  // namespace zyfa::schedules::near
