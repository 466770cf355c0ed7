// The program of the README (a test compares them): 8 query heads on 2 key heads, on the simulated device.
#include <zyfa/attention.h>

#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

int fail(const zyfa::Error& error) {
  std::puts(zyfa::to_string(error).c_str());
  return 1;
}

int main() {
  auto device = zyfa::SimDevice::create();  // on an MI355X: zyfa::HipDevice::create()
  if (!device) return fail(device.error());

  // Memory, then disk cache, then JIT. The kernel depends on dtype, head dims, mask and outputs, on no shape.
  const zyfa::AttentionProblem problem{.dtype = zyfa::DType::kBf16, .mask = zyfa::Mask::kCausal};
  auto attention = zyfa::Attention::compile(problem, {.device = *device});
  if (!attention) return fail(attention.error());

  constexpr std::int64_t kBatch = 1, kTokens = 100, kDim = 128;
  const std::vector<std::uint16_t> ones(kBatch * kTokens * 8 * kDim, 0x3f80);  // BF16 1.0
  auto tensor = [&](std::int64_t heads) {
    const auto address = (*device)->allocate(ones.size() * sizeof(ones[0])).value();
    const auto written = (*device)->write(address, std::as_bytes(std::span(ones)));
    return zyfa::TensorView::contiguous(written ? address : 0, kBatch, kTokens, heads, kDim);
  };

  const zyfa::LaunchArgs args{.q = tensor(8), .k = tensor(2), .v = tensor(2), .out = tensor(8)};
  auto launched = (*attention)->launch(args);
  if (!launched) return fail(launched.error());

  std::vector<std::uint16_t> result(ones.size());
  auto read = (*device)->read(std::as_writable_bytes(std::span(result)), args.out.address);
  if (!read) return fail(read.error());

  std::printf("kernel %s, %s\n", (*attention)->info().key.c_str(), (*attention)->info().schedule.c_str());
  return result == ones ? 0 : 1;  // an average of ones
}
