// The instruction tables, by file. Those of namespace ZYFA_SIM_ISA exist once per host instruction set.
#pragma once

#include "runtime/sim/exec/machine.h"

#define ZYFA_SIM_VECTOR_TABLES(isa) \
  namespace zyfa::sim::isa {        \
  RowTable float_rows();            \
  RowTable half_rows();             \
  RowTable double_rows();           \
  RowTable integer_rows();          \
  RowTable convert_rows();          \
  RowTable compare_rows();          \
  RowTable cross_rows();            \
  RowTable matrix_rows();           \
  }

ZYFA_SIM_VECTOR_TABLES(baseline)
ZYFA_SIM_VECTOR_TABLES(avx2)
ZYFA_SIM_VECTOR_TABLES(avx512)

namespace zyfa::sim {

RowTable scalar_rows();
RowTable control_rows();
RowTable scalar_memory_rows();
RowTable lds_rows();
RowTable vector_memory_rows();

// Tables of the widest instruction set this host runs; `name` gets "avx512", "avx2" or "baseline".
struct VectorTables {
  const char* name;
  RowTable tables[8];
};
// ZYFA_SIM_ISA=baseline|avx2|avx512 in the environment narrows the choice (tests compare the three).
const VectorTables& vector_tables();

}  // namespace zyfa::sim
