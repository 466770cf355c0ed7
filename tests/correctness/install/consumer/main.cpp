// Uses the installed library as a user would: asks what is supported, compiles a kernel, and reads an error's text.
#include <zyfa/attention.h>

#include <cstdio>
#include <cstdlib>

namespace {

void require(bool condition, const char* what) {
  if (!condition) {
    std::fprintf(stderr, "consumer: %s does not hold\n", what);
    std::exit(1);
  }
}

}  // namespace

int main() {
  const zyfa::AttentionProblem good{.mask = zyfa::Mask::kCausal, .lse = zyfa::Lse::kWritten};
  require(bool(zyfa::supports(good)), "BF16 at head dim 128 is supported");

  const zyfa::AttentionProblem bad{.head_dim_qk = 100, .head_dim_v = 100};
  const zyfa::Support refusal = zyfa::supports(bad);
  require(!refusal && !refusal.reasons.empty(), "head dim 100 is refused with a reason");

  const auto refused = zyfa::Attention::compile(bad);
  require(!refused && refused.error().code == zyfa::ErrorCode::kUnsupported, "compile() refuses it with a typed error");
  std::printf("%s\n", zyfa::to_string(refused.error()).c_str());

  // No device: the code object is made all the same. Needs libzyfa_jit, found beside libzyfa.
  const auto attention = zyfa::Attention::compile(good, {.cache = {.mode = zyfa::CacheMode::kOff}});
  if (!attention) {
    std::fprintf(stderr, "consumer: %s\n", zyfa::to_string(attention.error()).c_str());
    return 1;
  }
  require((*attention)->object().size() > 1000, "the code object has bytes");
  require((*attention)->info().source == zyfa::KernelSource::kBuilt, "the kernel was built here");
  std::printf("%s: %zu bytes\n", (*attention)->info().key.c_str(), (*attention)->object().size());
  return 0;
}
