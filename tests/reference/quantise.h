// What the quantiser kernels do, in double on the host: BF16 q, k, v to 8-bit codes and descales.
//
// - Rotation (q and k): each row times an orthonormal Hadamard matrix in Sylvester's order, entry (i, j) =
//   (-1)^popcount(i & j) / sqrt(n). A head dim that is no power of two is cut into falling powers: 192 = 128 + 64.
//   q . k does not change.
// - Scales, one per (batch, key head), or one per tensor: amax / 448 (E4M3) or amax / 127 (int8) with amax over the
// finite
//   values of the key head's rows (q: of all its query heads); 1 where amax is 0 or there is no token. As float32.
// - Folded form: q's scale is the next larger one for which 8 * log2(e) * |softmax_scale| * s_q * s_k is a power of
// two; a
//   softmax scale of 0 counts as 1.
// - Smoothing (k): the mean key of each (batch, key head), after rotation, is subtracted. Softmax does not change.
// - NaN and infinities: E4M3 codes become NaN; with int8 the head's descale becomes NaN.
// v is always E4M3 and never rotated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/reference/attention.h"

namespace zyfa::reference {

enum class Rotation { kNone, kHadamard };
enum class CodeType { kE4m3, kInt8 };
enum class ScoreForm { kMultiplyAdd, kFolded };
enum class Smoothing { kNone, kMean };
enum class ScaleScope { kHead, kTensor };

struct QuantiserOptions {
  Rotation rotation = Rotation::kHadamard;
  CodeType scores = CodeType::kE4m3;  // type of q and k
  ScoreForm form = ScoreForm::kMultiplyAdd;
  Smoothing smoothing = Smoothing::kNone;
  ScaleScope scope = ScaleScope::kHead;
  bool operator==(const QuantiserOptions&) const = default;
};

// A dense 8-bit tensor [batch, tokens, heads, dim]; value = code * descale of (batch, key head).
struct Codes {
  CodeType type = CodeType::kE4m3;
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0, key_heads = 0;
  std::vector<std::uint8_t> bytes;  // E4M3 codes, or int8 in two's complement
  std::vector<float> descales;      // [batch, key_heads]
};

struct QuantisedInputs {
  Codes q, k, v;
};

// The orthonormal rotation of one row, in place.
void rotate(std::span<double> row);

// `problem` gives the tensors and the softmax scale; its shapes fit together (as attention() checks).
[[nodiscard]] QuantisedInputs quantise(const AttentionCase& problem, const QuantiserOptions& options);

// Dense values [batch, tokens, heads, dim].
[[nodiscard]] std::vector<double> dequantise(const Codes& codes);

}  // namespace zyfa::reference
