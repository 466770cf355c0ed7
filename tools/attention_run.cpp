#include "tools/attention_run.h"

#include <cstring>

namespace zyfa::tools {

AttentionRun::AttentionRun(std::shared_ptr<Device> device, const io::AttentionInputs& in) : device_(std::move(device)) {
  args_.q = TensorView::contiguous(0, in.batch(), in.query_length(), in.query_heads(), in.head_dim_qk());
  args_.k = TensorView::contiguous(0, in.batch(), in.key_length(), in.key_heads(), in.head_dim_qk());
  args_.v = TensorView::contiguous(0, in.batch(), in.key_length(), in.key_heads(), in.head_dim_v());
  args_.out = TensorView::contiguous(0, in.batch(), in.query_length(), in.query_heads(), in.head_dim_v());
  const auto rows = static_cast<std::size_t>(in.batch() * in.query_length() * in.query_heads());
  o_elements_ = rows * static_cast<std::size_t>(in.head_dim_v());
}

AttentionRun::~AttentionRun() {
  for (const DeviceAddress address : allocations_) {
    device_->release(address);
  }
}

Expected<DeviceAddress> AttentionRun::upload(std::span<const std::byte> bytes) {
  Expected<DeviceAddress> address = device_->allocate(bytes.size());
  if (!address) {
    return address;
  }
  allocations_.push_back(*address);
  if (!bytes.empty()) {
    if (const Status status = device_->write(*address, bytes); !status) {
      return tl::unexpected<Error>(status.error());
    }
  }
  return address;
}

Status AttentionRun::upload(const io::Descale& descale, DescaleView& view) {
  if (descale.values.empty()) {
    return {};
  }
  const Expected<DeviceAddress> address = upload(std::as_bytes(std::span(descale.values)));
  if (!address) {
    return tl::unexpected<Error>(address.error());
  }
  view = {.address = *address,
          .batch = descale.batch,
          .heads = descale.heads,
          .batch_stride = descale.heads,
          .head_stride = 1};
  return {};
}

Status AttentionRun::provide_workspace(const Attention& attention) {
  const Expected<std::size_t> bytes = attention.workspace_bytes(args_);
  if (!bytes) {
    return tl::unexpected<Error>(bytes.error());
  }
  if (*bytes <= args_.workspace.bytes) {
    return {};
  }
  const Expected<DeviceAddress> address = device_->allocate(*bytes);
  if (!address) {
    return tl::unexpected<Error>(address.error());
  }
  allocations_.push_back(*address);
  args_.workspace = {.address = *address, .bytes = *bytes};
  return {};
}

Expected<std::unique_ptr<AttentionRun>> AttentionRun::create(std::shared_ptr<Device> device,
                                                             const io::AttentionInputs& in, Lse lse) {
  std::unique_ptr<AttentionRun> run(new AttentionRun(std::move(device), in));
  if (lse == Lse::kWritten) {
    run->args_.lse = LseView::contiguous(0, in.batch(), in.query_heads(), in.query_length());
    run->lse_elements_ = static_cast<std::size_t>(in.batch() * in.query_heads() * in.query_length());
  }
  const std::vector<std::byte> o(run->o_elements_ * sizeof(std::uint16_t)), l(run->lse_elements_ * sizeof(float));
  struct Target {
    std::span<const std::byte> bytes;
    DeviceAddress& address;
  };
  for (const Target& target :
       {Target{in.q, run->args_.q.address}, Target{in.k, run->args_.k.address}, Target{in.v, run->args_.v.address},
        Target{o, run->args_.out.address}, Target{l, run->args_.lse.address}}) {
    const Expected<DeviceAddress> address = run->upload(target.bytes);
    if (!address) {
      return tl::unexpected<Error>(address.error());
    }
    target.address = *address;
  }
  if (lse == Lse::kNone) {
    run->args_.lse = {};
  }
  Status status = run->upload(in.q_descale, run->args_.q_descale);
  if (status) {
    status = run->upload(in.k_descale, run->args_.k_descale);
  }
  if (status) {
    status = run->upload(in.v_descale, run->args_.v_descale);
  }
  if (!status) {
    return tl::unexpected<Error>(status.error());
  }
  return run;
}

Expected<AttentionOutputs> AttentionRun::launch(const Attention& attention, float softmax_scale) {
  AttentionOutputs outputs;
  outputs.o.resize(o_elements_);
  outputs.lse.resize(lse_elements_);
  const auto o_bytes = std::as_writable_bytes(std::span(outputs.o));
  const auto lse_bytes = std::as_writable_bytes(std::span(outputs.lse));
  std::memset(o_bytes.data(), 0xff, o_bytes.size());
  std::memset(lse_bytes.data(), 0xff, lse_bytes.size());
  args_.softmax_scale = softmax_scale;
  Status status = provide_workspace(attention);
  if (status && !o_bytes.empty()) {
    status = device_->write(args_.out.address, o_bytes);
  }
  if (status && !lse_bytes.empty()) {
    status = device_->write(args_.lse.address, lse_bytes);
  }
  if (status) {
    status = attention.launch(args_);
  }
  if (status) {
    status = device_->synchronize(nullptr);
  }
  if (status && !o_bytes.empty()) {
    status = device_->read(o_bytes, args_.out.address);
  }
  if (status && !lse_bytes.empty()) {
    status = device_->read(lse_bytes, args_.lse.address);
  }
  if (!status) {
    return tl::unexpected<Error>(status.error());
  }
  return outputs;
}

}  // namespace zyfa::tools
