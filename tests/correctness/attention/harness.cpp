#include "tests/correctness/attention/harness.h"

#include <cstring>
#include <random>

namespace zyfa::tests {
namespace {

constexpr std::int64_t kDim = 128;
constexpr std::uint16_t kNan = 0x7fff;
constexpr std::uint16_t kPattern = 0xa5c3;

// A [B, S, H, D] view of 16-bit elements inside a buffer with slack before, between and behind the rows.
struct HostTensor {
  std::vector<std::uint16_t> data;
  std::int64_t start = 0;
  std::int64_t batch = 0, tokens = 0, heads = 0;
  std::int64_t batch_stride = 0, token_stride = 0, head_stride = 0;

  HostTensor(std::int64_t b, std::int64_t s, std::int64_t h, Layout layout, std::uint16_t fill)
      : batch(b), tokens(s), heads(h) {
    const bool strided = layout == Layout::kStrided;
    head_stride = kDim + (strided ? 24 : 0);
    token_stride = h * head_stride + (strided ? 40 : 0);
    batch_stride = s * token_stride + (strided ? 3 * token_stride + 8 : 0);
    start = strided ? 16 : 0;
    // Two whole blocks of rows behind the last one, so that a kernel that reads on meets NaN and not the buffer's end.
    data.assign(static_cast<std::size_t>(start + b * batch_stride + (strided ? 130 * token_stride : 0)), fill);
  }

  [[nodiscard]] std::uint16_t* row(std::int64_t b, std::int64_t s, std::int64_t h) {
    return data.data() + start + b * batch_stride + s * token_stride + h * head_stride;
  }

  [[nodiscard]] reference::Bf16View view() {
    return {data.data() + start, batch, tokens, heads, kDim, batch_stride, token_stride, head_stride};
  }

  template <typename F>
  void for_each_row(F f) {
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t s = 0; s < tokens; ++s) {
        for (std::int64_t h = 0; h < heads; ++h) f(row(b, s, h), b, s, h);
      }
    }
  }
};

void fill_gaussian(HostTensor& tensor, double spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, spread);
  tensor.for_each_row([&](std::uint16_t* row, auto...) {
    for (std::int64_t d = 0; d < kDim; ++d) row[d] = reference::double_to_bf16(normal(random));
  });
}

struct Inputs {
  HostTensor q, k, v;

  explicit Inputs(const Case& c)
      : q(c.batch, c.query_length, c.heads, c.layout, kNan),
        k(c.batch, c.key_length, c.key_heads, c.layout, kNan),
        v(c.batch, c.key_length, c.key_heads, c.layout, kNan) {
    fill_gaussian(q, c.spread, 3 * c.seed);
    fill_gaussian(k, c.spread, 3 * c.seed + 1);
    fill_gaussian(v, 1.0, 3 * c.seed + 2);
    if (c.reuse_batch) {
      for (HostTensor* tensor : {&q, &k, &v}) {
        tensor->for_each_row([&](std::uint16_t* row, std::int64_t, std::int64_t s, std::int64_t h) {
          std::copy_n(tensor->row(0, s, h), kDim, row);
        });
      }
    }
    if (c.poison.token >= 0) {
      HostTensor& target = c.poison.operand == Operand::kQuery ? q : c.poison.operand == Operand::kKey ? k : v;
      target.row(0, c.poison.token, 0)[17] = reference::double_to_bf16(c.poison.value);
    }
  }
};

// A device copy, released at the end of the scope.
class DeviceCopy {
 public:
  static Expected<std::unique_ptr<DeviceCopy>> make(const std::shared_ptr<SimDevice>& device,
                                                    std::span<const std::byte> bytes) {
    Expected<DeviceAddress> address = device->allocate(bytes.size());
    if (!address) return tl::unexpected(address.error());
    auto copy = std::unique_ptr<DeviceCopy>(new DeviceCopy(device, *address));
    if (Status s = device->write(*address, bytes); !s) return tl::unexpected(s.error());
    return copy;
  }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;
  ~DeviceCopy() { device_->release(address_); }
  [[nodiscard]] DeviceAddress address() const { return address_; }

 private:
  DeviceCopy(std::shared_ptr<SimDevice> device, DeviceAddress address)
      : device_(std::move(device)), address_(address) {}
  std::shared_ptr<SimDevice> device_;
  DeviceAddress address_;
};

TensorView device_view(const HostTensor& t, const DeviceCopy& copy) {
  return {copy.address() + 2 * static_cast<DeviceAddress>(t.start),
          t.batch,
          t.tokens,
          t.heads,
          kDim,
          t.batch_stride,
          t.token_stride,
          t.head_stride,
          1};
}

// The LSE as raw words: [B, H, Sq] with slack behind each row of queries.
struct HostLse {
  std::vector<std::uint32_t> data;
  std::int64_t head_stride, batch_stride;

  HostLse(const Case& c)
      : head_stride(c.query_length + (c.layout == Layout::kStrided ? 5 : 0)), batch_stride(c.heads * head_stride) {
    data.assign(static_cast<std::size_t>(c.batch * batch_stride + 64), 0xa5c3a5c3);
  }
};

bool only_views_written(HostTensor& o, HostLse& lse, const Case& c) {
  o.for_each_row([](std::uint16_t* row, auto...) { std::fill(row, row + kDim, kPattern); });
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      auto* row = lse.data.data() + b * lse.batch_stride + h * lse.head_stride;
      std::fill(row, row + c.query_length, 0xa5c3a5c3U);
    }
  }
  const bool o_kept = std::all_of(o.data.begin(), o.data.end(), [](std::uint16_t x) { return x == kPattern; });
  return o_kept && std::all_of(lse.data.begin(), lse.data.end(), [](std::uint32_t x) { return x == 0xa5c3a5c3U; });
}

}  // namespace

std::string describe(const Case& c) {
  return "B=" + std::to_string(c.batch) + " Sq=" + std::to_string(c.query_length) +
         " Sk=" + std::to_string(c.key_length) + " H=" + std::to_string(c.heads) +
         " Hk=" + std::to_string(c.key_heads) + (c.mask == Mask::kCausal ? " causal" : " full") +
         (c.layout == Layout::kStrided ? " strided" : " packed") + " seed=" + std::to_string(c.seed);
}

Expected<Outcome> run_case(const Case& c, const std::shared_ptr<SimDevice>& device, const std::string& schedule) {
  Inputs inputs(c);
  auto& [q, k, v] = inputs;
  HostTensor o(c.batch, c.query_length, c.heads, c.layout, kPattern);
  HostLse lse(c);
  Expected<std::shared_ptr<Attention>> attention = Attention::compile(
      {.mask = c.mask, .lse = c.lse}, {.device = device, .placement = schedule, .cache = {.mode = CacheMode::kOff}});
  if (!attention) return tl::unexpected(attention.error());
  const auto upload = [&](const auto& vector) { return DeviceCopy::make(device, std::as_bytes(std::span(vector))); };
  auto dq = upload(q.data), dk = upload(k.data), dv = upload(v.data), dout = upload(o.data), dlse = upload(lse.data);
  for (auto* copy : {&dq, &dk, &dv, &dout, &dlse}) {
    if (!*copy) return tl::unexpected(copy->error());
  }
  LseView lse_view;
  if (c.lse == Lse::kWritten) {
    lse_view = {(*dlse)->address(), c.batch, c.heads, c.query_length, lse.batch_stride, lse.head_stride, 1};
  }
  const Status launched = (*attention)
                              ->launch({.q = device_view(q, **dq),
                                        .k = device_view(k, **dk),
                                        .v = device_view(v, **dv),
                                        .out = device_view(o, **dout),
                                        .lse = lse_view,
                                        .softmax_scale = static_cast<float>(c.softmax_scale)});
  if (!launched) return tl::unexpected(launched.error());
  if (Status s = device->read(std::as_writable_bytes(std::span(o.data)), (*dout)->address()); !s)
    return tl::unexpected(s.error());
  if (Status s = device->read(std::as_writable_bytes(std::span(lse.data)), (*dlse)->address()); !s)
    return tl::unexpected(s.error());

  const reference::AttentionCase exact{q.view(), k.view(), v.view(),
                                       c.mask == Mask::kCausal ? reference::Mask::kCausal : reference::Mask::kFull,
                                       static_cast<double>(static_cast<float>(c.softmax_scale))};
  Expected<reference::AttentionResult> expected = reference::attention(exact, 1);
  if (!expected) return tl::unexpected(expected.error());

  Outcome outcome;
  o.for_each_row([&](const std::uint16_t* row, auto...) { outcome.o.insert(outcome.o.end(), row, row + kDim); });
  for (std::int64_t b = 0; c.lse == Lse::kWritten && b < c.batch; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      for (std::int64_t i = 0; i < c.query_length; ++i) {
        outcome.lse.push_back(
            std::bit_cast<float>(lse.data[static_cast<std::size_t>(b * lse.batch_stride + h * lse.head_stride + i)]));
      }
    }
  }
  Expected<reference::ErrorFigures> figures = reference::compare(
      *expected, reference::dense_view(outcome.o.data(), c.batch, c.query_length, c.heads, kDim), outcome.lse);
  if (!figures) return tl::unexpected(figures.error());
  outcome.figures = *figures;
  outcome.outside_untouched = only_views_written(o, lse, c);
  return outcome;
}

Expected<std::vector<std::uint16_t>> run_spread(const Case& c, const std::shared_ptr<SimDevice>& device,
                                                const std::string& placement, std::int64_t token_stride,
                                                std::int64_t head_stride, std::int64_t batch_stride) {
  Inputs inputs(c);
  HostTensor o(c.batch, c.query_length, c.heads, Layout::kPacked, kPattern);
  const auto attention = Attention::compile(
      {.mask = c.mask}, {.device = device, .placement = placement, .cache = {.mode = CacheMode::kOff}});
  if (!attention) return tl::unexpected(attention.error());
  const auto place = [&](const HostTensor& t) -> Expected<TensorView> {
    const std::int64_t span =
        (t.batch - 1) * batch_stride + (t.tokens - 1) * token_stride + (t.heads - 1) * head_stride + kDim;
    const Expected<DeviceAddress> address = device->allocate(2 * static_cast<std::size_t>(span));
    if (!address) return tl::unexpected(address.error());
    return TensorView{*address, t.batch, t.tokens, t.heads, kDim, batch_stride, token_stride, head_stride, 1};
  };
  const auto address_of = [](const TensorView& view, std::int64_t b, std::int64_t s, std::int64_t h) {
    return view.address +
           2 * static_cast<DeviceAddress>(b * view.batch_stride + s * view.token_stride + h * view.head_stride);
  };
  const auto q = place(inputs.q), k = place(inputs.k), v = place(inputs.v), out = place(o);
  for (const auto* view : {&q, &k, &v, &out}) {
    if (!*view) return tl::unexpected(view->error());
  }
  Status status;
  for (auto [tensor, view] : {std::pair{&inputs.q, &*q}, {&inputs.k, &*k}, {&inputs.v, &*v}}) {
    tensor->for_each_row([&](std::uint16_t* row, std::int64_t b, std::int64_t s, std::int64_t h) {
      if (status) status = device->write(address_of(*view, b, s, h), std::as_bytes(std::span(row, kDim)));
    });
  }
  if (status) {
    status =
        (*attention)
            ->launch({.q = *q, .k = *k, .v = *v, .out = *out, .softmax_scale = static_cast<float>(c.softmax_scale)});
  }
  o.for_each_row([&](std::uint16_t* row, std::int64_t b, std::int64_t s, std::int64_t h) {
    if (status) status = device->read(std::as_writable_bytes(std::span(row, kDim)), address_of(*out, b, s, h));
  });
  for (const auto* view : {&q, &k, &v, &out}) device->release((*view)->address);
  if (!status) return tl::unexpected(status.error());
  return o.data;
}

}  // namespace zyfa::tests
