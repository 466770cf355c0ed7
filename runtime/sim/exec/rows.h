// The instruction tables, by file. Those of namespace ZYFA_SIM_ISA exist once per host instruction set.
#pragma once

#include <array>
#include <vector>

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
  RowTable int16_rows();            \
  RowTable misc_rows();             \
  RowTable scale_rows();            \
  RowTable dense_matrix_rows();     \
  RowTable scaled_matrix_rows();    \
  RowTable block_matrix_rows();     \
  RowTable int8_matrix_rows();      \
  RowTable sparse_matrix_rows();    \
  RowTable double_matrix_rows();    \
  }

ZYFA_SIM_VECTOR_TABLES(baseline)
ZYFA_SIM_VECTOR_TABLES(avx2)
ZYFA_SIM_VECTOR_TABLES(avx512)

namespace zyfa::sim {

RowTable scalar_rows();
RowTable control_rows();
RowTable scalar_memory_rows();
RowTable scalar_store_rows();
RowTable lds_rows();
RowTable lds_atomic_rows();
RowTable lane_permute_rows();
RowTable vector_memory_rows();
RowTable vector_atomic_rows();
RowTable typed_buffer_rows();

// The vector tables for one host instruction set. Row i of a table is the same instruction in all of them.
struct VectorTables {
  const char* name;  // "avx512", "avx2" or "baseline"
  std::array<RowTable, 16> tables;
};
// Those this host runs, widest first; results are the same bits.
std::vector<VectorTables> runnable_vector_tables();
// The widest. ZYFA_SIM_ISA=baseline|avx2|avx512 in the environment chooses another.
const VectorTables& vector_tables();

}  // namespace zyfa::sim
