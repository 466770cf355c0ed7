// What the user wants computed: everything that is fixed when a kernel is compiled. Batch, head counts, lengths,
// strides and the softmax scale are launch arguments (attention.h), so a handful of problems serves every shape.
//
// Text form (logs, `--problem`, shape files): comma-separated words in any order, each at most once,
//   bf16 | fp16 | fp8e4m3     element type of q, k and v                                    required
//   d=N  | d=N/M              head dim of q and k, and of v when it differs                 required
//   full | causal | window    mask; causal is bottom-right aligned: key j <= i + Sk - Sq    default full
//   lse                       also write the natural-log LSE, float32 [B, H, Sq]            default not written
//   compute=fp8               BF16 q, k, v are quantised by our kernels, then FP8           default: in the inputs'
//   type
//   length=long | length=short   sequences the schedule is tuned for, see SequenceLength    default length=long
// and, where FP8 is computed (fp8e4m3, or bf16 with compute=fp8), the options of Fp8Options:
//   p=lean | p=exact          probabilities                                                 default p=lean
//   blocks | unscaled         block exponents of P, or none                                 default blocks
//   form=folded | form=fma    where 8 x + c is made                                         default: see ScoreForm
//   qk=fp8 | qk=int8          element type of Q.K (int8: compute=fp8 only)                  default qk=fp8
//   near=fp8 | near=bf16      first and diagonal keys in BF16 (compute=fp8 only)            default near=fp8
//   sum=auto | sum=sparse | sum=dense  matrix product of the row sum, see RowSum         default sum=auto
//   rotate | no-rotate        Hadamard rotation of q and k (compute=fp8 only)               default rotate
//   smooth-k                  subtract the mean key (compute=fp8; not with lse, near=bf16)  default not
//   scales=head | scales=tensor  of the quantiser (compute=fp8 only)                        default scales=head
//   u8=nearest | u8=truncate  how the device's v_cvt_pk_u8_f32 rounds (p=lean only)         default u8=nearest
// e.g. "bf16,d=128,causal,lse". to_string() prints the words in this order, the mask always, length and the FP8 options
// when they differ from their defaults.
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

// In what arithmetic: the inputs' own type, or FP8 from BF16 inputs (quantised on the device, into a workspace that the
// caller gives to launch()).
enum class Compute : std::uint8_t { kInput, kFp8 };

// kLean: the e4m3 code of a probability is round(8 x + c), one integer conversion. kExact: v_exp_f32, then e4m3.
enum class Probability : std::uint8_t { kLean, kExact };
// kBlocks: a power of two per (query, 64 keys) brings P to the top of e4m3's range. kNone: one reference a row.
enum class BlockScaling : std::uint8_t { kBlocks, kNone };
// kFolded: the scaled MFMA and its C operand deliver 8 x + c; needs a Q scale that our quantiser chooses, lean P and
// FP8 scores. kMultiplyAdd: any descales. kAuto: folded where it applies.
enum class ScoreForm : std::uint8_t { kAuto, kFolded, kMultiplyAdd };
enum class ScoreType : std::uint8_t { kFp8, kInt8 };
enum class NearKeys : std::uint8_t { kFp8, kBf16 };
// What adds up the rounded probabilities: v_smfmac_f32_16x16x128 (kSparse, 16 cycles of the matrix pipe for 64 keys) or
// v_mfma_f32_16x16x128_f8f6f4 (kDense, 32). The sums are the same but for the order of fp32 additions. kAuto: dense
// with block exponents and form=fma, where each block is summed by itself, else sparse.
enum class RowSum : std::uint8_t { kAuto, kSparse, kDense };
enum class Rotation : std::uint8_t { kHadamard, kNone };
enum class KeySmoothing : std::uint8_t { kNone, kMean };
enum class ScaleGranularity : std::uint8_t { kHead, kTensor };
// What v_cvt_pk_u8_f32 does on the device; not yet published for gfx950 (docs/numerics.md).
enum class ByteRounding : std::uint8_t { kNearest, kTruncate };

// The kernel takes sequences of any length either way and gives the same bits: what differs is the schedule, tuned for
// few tokens, where what stands before and after the loop counts (kShort: keys up to about 1,024), or for many. Where
// the table has one schedule for both, they are one kernel.
enum class SequenceLength : std::uint8_t { kLong, kShort };

struct Fp8Options {
  Probability probability = Probability::kLean;
  BlockScaling scaling = BlockScaling::kBlocks;
  ScoreForm form = ScoreForm::kAuto;
  ScoreType scores = ScoreType::kFp8;
  NearKeys near_keys = NearKeys::kFp8;
  RowSum row_sum = RowSum::kAuto;
  Rotation rotation = Rotation::kHadamard;
  KeySmoothing smoothing = KeySmoothing::kNone;
  ScaleGranularity scales = ScaleGranularity::kHead;
  ByteRounding byte_rounding = ByteRounding::kNearest;
  bool operator==(const Fp8Options&) const = default;
};

struct AttentionProblem {
  DType dtype = DType::kBf16;       // of q, k, v; the output has the same type, BF16 for FP8 inputs
  std::uint32_t head_dim_qk = 128;  // elements
  std::uint32_t head_dim_v = 128;   // elements
  Mask mask = Mask::kFull;
  Lse lse = Lse::kNone;
  Compute compute = Compute::kInput;
  Fp8Options fp8 = {};  // all defaults unless FP8 is computed
  SequenceLength length = SequenceLength::kLong;
  bool operator==(const AttentionProblem&) const = default;
};

// kInvalidArgument: names the word and what is allowed; kUnsupported: a word of FP8, at its default, where nothing is
// computed in FP8 (of others it is supports()'s to refuse). parse_problem(to_string(p)) = p.
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
