// Classification by mnemonic prefixes. The order of the tests matters where one prefix contains another.
#include "jit/llvm/fact_class.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace zyfa::jit {
namespace {

template <std::size_t N>
bool starts_with_any(std::string_view text, const std::array<std::string_view, N>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [text](std::string_view p) { return text.starts_with(p); });
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

FactClass classify_scalar(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kMemory = {"s_load_",   "s_buffer_",     "s_scratch_",
                                                              "s_store_",  "s_atomic_",     "s_dcache_",
                                                              "s_memtime", "s_memrealtime", "s_atc_probe"};
  static constexpr std::array<std::string_view, 6> kBranches = {"s_branch",  "s_cbranch_", "s_setpc_",
                                                                "s_swappc_", "s_call_",    "s_rfe_"};
  static constexpr std::array<std::string_view, 15> kInternal = {"s_nop",
                                                                 "s_setprio",
                                                                 "s_sleep",
                                                                 "s_sethalt",
                                                                 "s_trap",
                                                                 "s_sendmsg",
                                                                 "s_incperflevel",
                                                                 "s_decperflevel",
                                                                 "s_icache_inv",
                                                                 "s_ttracedata",
                                                                 "s_set_gpr_idx_mode",
                                                                 "s_set_gpr_idx_off",
                                                                 "s_wakeup",
                                                                 "s_setkill",
                                                                 "s_setvskip"};
  if (name.starts_with("s_waitcnt")) return FactClass::kWaitcnt;
  if (name.starts_with("s_endpgm")) return FactClass::kEndpgm;
  if (name == "s_barrier") return FactClass::kBarrier;
  if (name.starts_with("s_setreg_")) return FactClass::kSetreg;
  if (name.starts_with("s_getreg_")) return FactClass::kGetreg;
  if (starts_with_any(name, kMemory)) return FactClass::kSmem;
  if (starts_with_any(name, kBranches)) return FactClass::kBranch;
  if (starts_with_any(name, kInternal)) return FactClass::kOther;
  return FactClass::kSalu;
}

FactClass classify_matrix(std::string_view name) {
  if (name.starts_with("v_mfma_f64")) return FactClass::kMfmaDgemm;
  // Float-input MFMA: "v_mfma_f32_32x32x2_f32", "..._16x16x1_4b_f32" (section 4: XDL is every other non-f64 form).
  if (name.starts_with("v_mfma_f32_") && name.ends_with("_f32")) return FactClass::kMfmaSgemm;
  return FactClass::kMfmaXdl;
}

FactClass classify_vector(std::string_view name) {
  // Section 2: quarter-rate transcendental operations, whatever their format.
  static constexpr std::array<std::string_view, 7> kTranscendental = {"v_exp_",  "v_log_", "v_rcp_", "v_rsq_",
                                                                      "v_sqrt_", "v_sin_", "v_cos_"};
  static constexpr std::array<std::string_view, 3> kLanes = {"v_readlane_", "v_readfirstlane_", "v_writelane_"};
  if (name.starts_with("v_mfma_") && !name.starts_with("v_mfma_ld_scale")) return classify_matrix(name);
  if (name.starts_with("v_smfmac_")) return FactClass::kSmfmac;
  if (starts_with_any(name, kTranscendental)) return FactClass::kTrans;
  if (name.starts_with("v_permlane16_swap") || name.starts_with("v_permlane32_swap")) return FactClass::kPermlaneSwap;
  if (starts_with_any(name, kLanes)) return FactClass::kReadlane;
  if (name.starts_with("v_cmpx_")) return FactClass::kCmpx;
  if (name.starts_with("v_dot")) return FactClass::kDot;
  if (name.starts_with("v_div_fmas_")) return FactClass::kDivFmas;
  return FactClass::kValu;
}

FactClass classify_vector_memory(std::string_view name) {
  if (contains(name, "_atomic_")) return FactClass::kVmemAtomic;
  // Cache control counts in vmcnt like a store and returns nothing.
  if (contains(name, "_store_") || name.starts_with("buffer_wb") || name.starts_with("buffer_inv")) {
    return FactClass::kVmemStore;
  }
  return FactClass::kVmemLoad;
}

// "32x32x16" out of "v_mfma_f32_32x32x16_bf16".
struct Shape {
  int m = 0, n = 0, k = 0;
};

bool parse_shape(std::string_view name, Shape& shape) {
  const std::size_t first = name.find('x');
  if (first == std::string_view::npos) return false;
  std::size_t begin = first;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  const char* p = name.data() + begin;
  const char* const end = name.data() + name.size();
  int* const fields[] = {&shape.m, &shape.n, &shape.k};
  for (int i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(p, end, *fields[i]);
    if (error != std::errc{}) return false;
    p = next;
    if (i < 2) {
      if (p == end || *p != 'x') return false;
      ++p;
    }
  }
  return true;
}

}  // namespace

FactClass classify(std::string_view mnemonic) {
  static constexpr std::array<std::string_view, 4> kVectorMemory = {"buffer_", "tbuffer_", "global_", "scratch_"};
  if (mnemonic.starts_with("s_")) return classify_scalar(mnemonic);
  if (mnemonic.starts_with("v_")) return classify_vector(mnemonic);
  if (mnemonic.starts_with("ds_")) return FactClass::kLds;
  if (mnemonic.starts_with("flat_")) return FactClass::kFlat;
  if (starts_with_any(mnemonic, kVectorMemory)) return classify_vector_memory(mnemonic);
  return FactClass::kOther;
}

std::uint8_t matrix_passes(std::string_view mnemonic, F8f6f4Width width) {
  Shape shape;
  const bool sparse = mnemonic.starts_with("v_smfmac_");
  if ((!mnemonic.starts_with("v_mfma_") && !sparse) || !parse_shape(mnemonic, shape)) return 0;
  const bool is_32 = shape.m == 32;
  if (contains(mnemonic, "_f8f6f4")) {
    const int wide = is_32 ? 16 : 8;
    return static_cast<std::uint8_t>(width == F8f6f4Width::kSome8Bit ? wide : wide / 2);
  }
  const FactClass cls = classify(mnemonic);
  if (cls == FactClass::kMfmaDgemm) return static_cast<std::uint8_t>(shape.m == 4 ? 4 : 16);
  if (shape.m == 4) return 2;
  // Multi-block forms ("_2b_", "_4b_") and float input run at half the rate of the single-block ones.
  const bool slow = cls == FactClass::kMfmaSgemm || contains(mnemonic, "_2b_") || contains(mnemonic, "_4b_");
  if (is_32) return slow ? 16 : 8;
  return slow ? 8 : 4;
}

}  // namespace zyfa::jit
