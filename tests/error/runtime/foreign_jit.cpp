// A libzyfa_jit of another build: right entry point, other generator id. Its service must never be touched.
#include "runtime/jit_service.h"

const zyfa::JitEntry* zyfa_jit_service_v1() {
  static const zyfa::JitEntry entry{"00000000000000000000000000000000", nullptr};
  return &entry;
}
