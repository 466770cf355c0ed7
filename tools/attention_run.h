// Launches a compiled attention kernel on the tensors of a file and brings the results back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/io/attention_inputs.h"
#include "zyfa/attention.h"

namespace zyfa::tools {

struct AttentionOutputs {
  std::vector<std::uint16_t> o;  // [batch, query tokens, query heads, head dim of v], bfloat16
  std::vector<float> lse;        // [batch, query heads, query tokens]; empty when the problem has none
};

// Device tensors of one problem, its descales and its workspace, released with it. Outputs are filled with NaN before
// every launch, so that an element the kernel leaves out is seen.
class AttentionRun {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<AttentionRun>> create(std::shared_ptr<Device> device,
                                                                      const io::AttentionInputs& inputs, Lse lse);
  ~AttentionRun();
  AttentionRun(const AttentionRun&) = delete;
  AttentionRun& operator=(const AttentionRun&) = delete;

  [[nodiscard]] Expected<AttentionOutputs> launch(const Attention& attention, float softmax_scale);

  // What the last launch was given.
  [[nodiscard]] std::size_t workspace_bytes() const { return args_.workspace.bytes; }

 private:
  AttentionRun(std::shared_ptr<Device> device, const io::AttentionInputs& inputs);

  Expected<DeviceAddress> upload(std::span<const std::byte> bytes);
  Status upload(const io::Descale& descale, DescaleView& view);
  Status provide_workspace(const Attention& attention);

  std::shared_ptr<Device> device_;
  LaunchArgs args_;
  std::size_t o_elements_ = 0, lse_elements_ = 0;
  std::vector<DeviceAddress> allocations_;
};

}  // namespace zyfa::tools
