// What the user wants computed: everything that is fixed when a kernel is compiled. Batch, head counts, lengths,
// strides and the softmax scale are launch arguments (attention.h), so a handful of problems serves every shape.
//
// Text form (logs, `--problem`, shape files): comma-separated words in any order, each at most once,
//   bf16 | fp16 | fp8e4m3     element type of q, k and v                                    required
//   d=N  | d=N/M              head dim of q and k, and of v when it differs                 required
//   full | causal | window    mask; causal is bottom-right aligned: key j <= i + Sk - Sq    default full
//   lse                       also write the natural-log LSE, float32 [B, H, Sq]            default not written
// e.g. "bf16,d=128,causal,lse". to_string() prints the words in this order, the mask always.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zyfa/error.h"
#include "zyfa/export.h"

namespace zyfa {

enum class DType : std::uint8_t { kBf16, kFp16, kFp8E4M3 };
enum class Mask : std::uint8_t { kFull, kCausal, kWindow };
enum class Lse : std::uint8_t { kNone, kWritten };

struct AttentionProblem {
  DType dtype = DType::kBf16;       // of q, k, v; the output has the same type
  std::uint32_t head_dim_qk = 128;  // elements
  std::uint32_t head_dim_v = 128;   // elements
  Mask mask = Mask::kFull;
  Lse lse = Lse::kNone;
  bool operator==(const AttentionProblem&) const = default;
};

// kInvalidArgument: names the word and what is allowed. parse_problem(to_string(p)) = p.
[[nodiscard]] ZYFA_API Expected<AttentionProblem> parse_problem(std::string_view text);
[[nodiscard]] ZYFA_API std::string to_string(const AttentionProblem& problem);

// Whether this version has a kernel for a problem. Pure: depends on the problem and the library version alone.
struct Support {
  std::vector<std::string> reasons;  // every reason for a refusal, not just the first; empty when supported
  [[nodiscard]] explicit operator bool() const { return reasons.empty(); }
};
[[nodiscard]] ZYFA_API Support supports(const AttentionProblem& problem);

// The kernel that serves a problem: a row of a sorted table, most specific first. Pure, no timing, so every rank of a
// job agrees.
struct Selection {
  std::string row;       // name of the table row
  std::string schedule;  // canonical placement text
};
// kUnsupported: details are the reasons of supports().
[[nodiscard]] ZYFA_API Expected<Selection> select(const AttentionProblem& problem);

// The rows considered for a problem, in order, why each was passed over, and the one chosen: text for a person.
[[nodiscard]] ZYFA_API std::string explain(const AttentionProblem& problem);

}  // namespace zyfa
