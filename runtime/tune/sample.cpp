#include "runtime/tune/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <random>
#include <utility>

namespace zyfa::tune_detail {
namespace {

// So that the reference of a row settles in its first block: what moving it costs depends on the values and would
// drown what a placement costs.
constexpr double kQuerySpread = 0.25;

// Box-Muller on a specified generator: the same values on every standard library.
class Gaussian {
 public:
  explicit Gaussian(std::uint32_t seed) : bits_(seed) {}
  double next() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  double uniform() { return (static_cast<double>(bits_()) + 0.5) / 4294967296.0; }
  std::mt19937 bits_;
};

// Upper half of a float, which is near enough to BF16 for values without a meaning.
std::vector<std::byte> bf16_values(std::int64_t count, double spread, std::uint32_t seed) {
  Gaussian gaussian(seed);
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(2 * count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(spread * gaussian.next()));
    bytes.push_back(static_cast<std::byte>(bits >> 16));
    bytes.push_back(static_cast<std::byte>(bits >> 24));
  }
  return bytes;
}

// E4M3 codes of either sign, about as a Gaussian's fall: the size's code is rounded from its logarithm.
std::vector<std::byte> e4m3_values(std::int64_t count, double spread, std::uint32_t seed) {
  constexpr int kOne = 0x38, kLow = 0x08, kHigh = 0x47;
  Gaussian gaussian(seed);
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = spread * gaussian.next();
    const int code = kOne + static_cast<int>(std::lround(8 * std::log2(std::abs(value) + 0x1p-6)));
    bytes.push_back(static_cast<std::byte>(std::clamp(code, kLow, kHigh) | (value < 0 ? 0x80 : 0)));
  }
  return bytes;
}

std::vector<std::byte> values(const AttentionProblem& problem, std::int64_t count, double spread, std::uint32_t seed) {
  return problem.dtype == DType::kFp8E4M3 ? e4m3_values(count, spread, seed) : bf16_values(count, spread, seed);
}

}  // namespace

Sample::~Sample() {
  for (const DeviceAddress address : allocations_) device_->release(address);
}

Expected<DeviceAddress> Sample::upload(const std::vector<std::byte>& bytes) {
  Expected<DeviceAddress> address = device_->allocate(bytes.size());
  if (!address) return address;
  allocations_.push_back(*address);
  if (Status status = device_->write(*address, bytes); !status) return tl::unexpected(std::move(status.error()));
  return address;
}

Status Sample::upload_inputs(const AttentionProblem& problem, const SampleShape& shape) {
  const auto dim_qk = static_cast<std::int64_t>(problem.head_dim_qk);
  const auto dim_v = static_cast<std::int64_t>(problem.head_dim_v);
  args_.q = TensorView::contiguous(0, 1, shape.queries, shape.heads, dim_qk);
  args_.k = TensorView::contiguous(0, 1, shape.keys, 1, dim_qk);
  args_.v = TensorView::contiguous(0, 1, shape.keys, 1, dim_v);
  args_.out = TensorView::contiguous(0, 1, shape.queries, shape.heads, dim_v);
  o_bytes_ = static_cast<std::size_t>(2 * shape.queries * shape.heads * dim_v);
  std::uint32_t seed = 1;
  for (TensorView* view : {&args_.q, &args_.k, &args_.v}) {
    const double spread = view == &args_.q ? kQuerySpread : 1;
    Expected<DeviceAddress> address = upload(values(problem, view->tokens * view->heads * view->dim, spread, seed++));
    if (!address) return tl::unexpected(std::move(address.error()));
    view->address = *address;
  }
  Expected<DeviceAddress> out = upload(std::vector<std::byte>(o_bytes_));
  if (!out) return tl::unexpected(std::move(out.error()));
  args_.out.address = *out;
  if (problem.lse != Lse::kWritten) return {};
  lse_bytes_ = static_cast<std::size_t>(4 * shape.queries * shape.heads);
  Expected<DeviceAddress> lse = upload(std::vector<std::byte>(lse_bytes_));
  if (!lse) return tl::unexpected(std::move(lse.error()));
  args_.lse = LseView::contiguous(*lse, 1, shape.heads, shape.queries);
  return {};
}

Expected<std::unique_ptr<Sample>> Sample::create(const AttentionProblem& problem, const SampleShape& shape,
                                                 const SimOptions& options) {
  Expected<std::shared_ptr<SimDevice>> device = SimDevice::create(options);
  if (!device) return tl::unexpected(std::move(device.error()));
  std::unique_ptr<Sample> sample(new Sample(*std::move(device)));
  if (Status status = sample->upload_inputs(problem, shape); !status) return tl::unexpected(std::move(status.error()));
  return sample;
}

Expected<std::shared_ptr<Attention>> Sample::compile(const AttentionProblem& problem, std::string_view placement) {
  return Attention::compile(
      problem, {.device = device_, .placement = std::string(placement), .cache = {.mode = CacheMode::kOff}});
}

Expected<std::vector<std::byte>> Sample::launch(const Attention& attention) {
  Expected<std::size_t> workspace = attention.workspace_bytes(args_);
  if (!workspace) return tl::unexpected(std::move(workspace.error()));
  if (*workspace > args_.workspace.bytes) {
    Expected<DeviceAddress> address = upload(std::vector<std::byte>(*workspace));
    if (!address) return tl::unexpected(std::move(address.error()));
    args_.workspace = {.address = *address, .bytes = *workspace};
  }
  if (Status status = attention.launch(args_); !status) return tl::unexpected(std::move(status.error()));
  std::vector<std::byte> result(o_bytes_ + lse_bytes_);
  const std::span<std::byte> all(result);
  if (Status read = device_->read(all.first(o_bytes_), args_.out.address); !read) {
    return tl::unexpected(std::move(read.error()));
  }
  if (lse_bytes_ == 0) return result;
  if (Status read = device_->read(all.last(lse_bytes_), args_.lse.address); !read) {
    return tl::unexpected(std::move(read.error()));
  }
  return result;
}

}  // namespace zyfa::tune_detail
