// `simulate --trace` and `--break --dump`: watches that print what a wave does and holds.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli.h"
#include "zyfa/device.h"

namespace zyfa::tools {

// Part of a --dump list: registers of a bank ('v', 'a', 's'), or bytes of LDS ('l').
struct DumpItem {
  char bank = 'v';
  std::uint32_t first = 0, last = 0;  // both included
};
// "v0-15,a0,s0-7,vcc,lds:0x100-0x13f". kInvalidArgument names the part and what is allowed.
[[nodiscard]] Expected<std::vector<DumpItem>> parse_dump(std::string_view list);

struct InspectOptions {
  std::optional<std::uint32_t> trace_wave;
  std::optional<std::string> trace_file;  // none: stdout
  std::optional<std::string> break_offset, dump;
  std::optional<std::uint32_t> break_wave;
  std::uint64_t hits = 1;
  std::vector<std::uint32_t> workgroup{0, 0, 0};
};
void add_inspect_options(CLI::App& command, InspectOptions& options);

// Owns what the watches write to; lives until the launch has ended.
class Inspector {
 public:
  Inspector() = default;
  ~Inspector();
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  // Adds the watches that `options` asks for. kInvalidArgument, kIoError (the trace file).
  Status attach(const InspectOptions& options, OutputForm form, SimOptions& simulator);
  // The launch was stopped by a breakpoint after its last hit.
  [[nodiscard]] bool stopped() const { return hits_left_ == 0; }
  [[nodiscard]] bool has_break() const { return offset_.has_value(); }
  // kNotFound when the breakpoint was not reached as often as asked, or the trace is empty; kIoError for a trace that
  // could not be written.
  [[nodiscard]] Status outcome();
  [[nodiscard]] const OrderedJson& breaks() const { return breaks_; }

 private:
  SimAction hit(const SimStep& step, const SimWaveView& wave);
  void print_dump(const SimWaveView& wave, const DumpItem& item) const;

  std::FILE* trace_ = nullptr;
  std::uint64_t traced_ = 0;
  bool tracing_ = false;
  std::optional<std::uint64_t> offset_;
  std::uint64_t hits_left_ = ~std::uint64_t{0}, hits_ = 0;
  std::vector<DumpItem> dump_;
  OutputForm form_ = OutputForm::kText;
  OrderedJson breaks_ = OrderedJson::array();
};

}  // namespace zyfa::tools
