#include "tests/correctness/timing/compiled.h"

#include <string>
#include <string_view>

namespace zyfa::sim_test {
namespace {

// The listed instructions, `times` over.
Steps times(unsigned count, std::string_view text) { return repeat(micro().steps(text), count); }

// Q.K beside the second half of the exponentials, the row sum and the conversion of P.
Steps qk_cluster() {
  return times(5, "bf16_32 exp*3") + times(1, "bf16_32 exp") + times(2, "bf16_32 add_e64*6 pk_add*2") +
         times(1, "bf16_32 add_e64*6 pk_add nop0 pk_add") + times(1, "bf16_32 add mov nop1 swap add*2 cvt_bf16") +
         times(3, "bf16_32 cvt_bf16*5") + times(3, "bf16_32") + times(1, "barrier");
}

// P.V beside the row maximum, the vote whether to rescale, the subtraction of the maximum (`subtract`, of the
// four MFMAs behind the branch) and the first half of the exponentials.
Steps pv_cluster(std::string_view subtract, std::string_view open, std::string_view close) {
  return micro().steps(open) + times(2, "bf16_32 max3*6") +
         times(1, "bf16_32 max3*4 mov nop1 swap add*2 cmp salu bf16_32 branch") + micro().steps(subtract) +
         times(3, "bf16_32") + times(5, "exp*3 bf16_32") + times(1, "exp") + micro().steps(close) + times(1, "barrier");
}

Steps memory_cluster(std::string_view open, std::string_view reads) {
  return micro().steps(open) + times(1, "salu*2 nop0 load_lds salu nop0 load_lds") + micro().steps(reads) +
         times(1, "wait_vm4 wait_lgkm barrier");
}

}  // namespace

// As FlyDSL 0.3.2 compiles kernels/attention/flash_attn_gfx950.py (ROCm/FlyDSL, 11c4174d) for head dim 128.
Steps flydsl_trip(Edit edit) {
  const bool nops = edit == Edit::kNone || edit == Edit::kNoPriority;
  const bool priorities = edit == Edit::kNone || edit == Edit::kNoNop;
  const std::string_view head = nops ? "nop7" : "", open = priorities ? "prio1" : "", close = priorities ? "prio0" : "";
  const Steps k = memory_cluster(head, "read128*16"), v = memory_cluster(head, "read_tr16*32");
  return k + qk_cluster() + v +
         pv_cluster("bf16_32 add_e64*6 pk_add*3 bf16_32 add_e64*6 pk_add*3 bf16_32 add_e64*6 pk_add bf16_32", open,
                    close) +
         k + qk_cluster() + v +
         pv_cluster(
             "bf16_32 add_e64*6 pk_add*2 bf16_32 add_e64*6 pk_add*2 bf16_32 add_e64*6 pk_add*2 bf16_32 add_e64*2", open,
             close) +
         times(1, "salu*2 mov cmp salu branch");
}

// tests/flydsl/fp8_gemm_950/test_gemm_fp8_8w_blockscale.py (tingqli/pyhip, 649e124): four phases of 8 MFMAs, each with
// the update of the partial sums that the phase before made. The order of the packed form is not published.
Steps block_scaled_trip(Update update) {
  constexpr std::string_view kPairs[] = {"mul fmac*4 fp8_16 fmac*4 fp8_16", "mul pk_fma*2 fp8_16 pk_fma*2 fp8_16",
                                         "mul pk_fma*4 fp8_16*2"};
  const Steps compute = times(1, "barrier wait_lgkm prio1") + times(4, kPairs[static_cast<std::size_t>(update)]) +
                        times(1, "prio0 barrier");
  const std::string_view loads = "salu load_lds salu load_lds";
  return times(1, "read128*12 read32*6") + micro().steps(loads) + times(1, "wait_lgkm readfirstlane*2") + compute +
         times(1, "read128*4") + micro().steps(loads) + compute + times(1, "read128*8 read32*4") +
         micro().steps(loads) + compute + micro().steps(loads) + times(1, "salu load1_lds wait_vm7") + compute;
}

}  // namespace zyfa::sim_test
