#include "tests/correctness/schedules/attention_probe.h"

#include <cmath>
#include <random>

#include "runtime/sim/sim_device.h"
#include "schedules/select/kernel_args.h"
#include "tests/reference/attention.h"

namespace zyfa::tests {

std::vector<std::uint16_t> gaussian(std::size_t count, double spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, spread);
  std::vector<std::uint16_t> data(count);
  for (std::uint16_t& x : data) x = reference::double_to_bf16(normal(random));
  return data;
}

std::shared_ptr<SimDevice> strict_device() {
  // Fresh options: strict checks, both cores of a small machine.
  return sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 2}).value();
}

schedules::KernelSpec probe_spec(std::string placement) {
  schedules::KernelSpec spec;
  spec.mask = schedules::MaskKind::kCausal;
  spec.lse = schedules::LseOutput::kWritten;
  spec.placement = std::move(placement);
  return spec;
}

AttentionProbe::AttentionProbe(std::uint32_t queries, std::uint32_t keys)
    : queries_(queries), keys_(keys), device_(strict_device()) {
  q_ = upload(*device_, gaussian(std::size_t{queries_} * 128, 2.0, 11)).value();
  k_ = upload(*device_, gaussian(std::size_t{keys_} * 128, 2.0, 12)).value();
  v_ = upload(*device_, gaussian(std::size_t{keys_} * 128, 1.0, 13)).value();
}

Expected<std::vector<std::uint32_t>> AttentionProbe::run(std::span<const std::byte> object, const std::string& symbol,
                                                         std::uint32_t waves, std::uint32_t query_tile) {
  const std::uint64_t output_bytes = std::uint64_t{queries_} * 256;
  std::vector<std::uint32_t> words(output_bytes / 4 + std::size_t{queries_}, 0xdeadbeef);
  const Expected<DeviceAddress> out = upload(*device_, words);
  if (!out) return tl::unexpected(out.error());
  schedules::AttentionForwardArgs args{};
  args.q = {q_, 256, 256, output_bytes};
  args.k = {k_, 256, 256, 256 * std::uint64_t{keys_}};
  args.v = {v_, 256, 256, 256 * std::uint64_t{keys_}};
  args.o = {*out, 256, 256, output_bytes};
  args.lse_address = *out + output_bytes;
  args.lse_head_stride = std::uint64_t{4} * queries_;
  args.lse_batch_stride = std::uint64_t{4} * queries_;
  args.query_length = queries_;
  args.key_length = keys_;
  args.head_ratio_magic = std::uint32_t{1} << 31;
  args.score_scale_log2 = static_cast<float>(1.4426950408889634 / std::sqrt(128.0));
  const auto kernel = device_->load(object, symbol);
  if (!kernel) return tl::unexpected(kernel.error());
  const Status ran =
      device_->launch(**kernel, {.grid = {(queries_ + query_tile - 1) / query_tile, 1, 1}, .block = {64 * waves, 1, 1}},
                      std::as_bytes(std::span(&args, 1)), nullptr);
  if (!ran) return tl::unexpected(ran.error());
  if (Status s = device_->read(std::as_writable_bytes(std::span(words)), *out); !s) return tl::unexpected(s.error());
  device_->release(*out);
  return words;
}

}  // namespace zyfa::tests
