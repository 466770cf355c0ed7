// SimDevice: allocation, copies, launches over a set of threads (sim_device.h).
#include "runtime/sim/sim_device.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "runtime/sim/crew.h"
#include "runtime/sim/exec/engine.h"
#include "runtime/sim/launch_capture.h"
#include "runtime/sim/loaded_kernel.h"
#include "runtime/sim/profile.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

void add(SimStatistics& to, const SimStatistics& s) {
  to.instructions += s.instructions;
  to.valu += s.valu;
  to.trans += s.trans;
  to.mfma += s.mfma;
  to.salu += s.salu;
  to.smem += s.smem;
  to.lds += s.lds;
  to.vmem += s.vmem;
  to.branch += s.branch;
  to.barrier += s.barrier;
  to.other += s.other;
  to.mfma_flops += s.mfma_flops;
  to.waves += s.waves;
  to.workgroups += s.workgroups;
}

Status check_options(const SimOptions& options) {
  if (options.threads == 0) return make_error(ErrorCode::kInvalidArgument, "0 simulator threads; at least 1 is needed");
  if (options.max_findings == 0)
    return make_error(ErrorCode::kInvalidArgument, "max_findings is 0; at least 1 is needed");
  return {};
}

// Hands workgroups to threads in ascending order. A failure stops the handing out, so every workgroup below the lowest
// failing one has run: what the lowest reports does not depend on the number of threads. So does an exception.
class Dispatch {
 public:
  Dispatch(const LaunchPlan& plan, const SimOptions& options, unsigned threads)
      : plan_(plan), threads_(threads), progress_(options.progress) {
    const auto& g = plan.shape.grid;
    total_ = static_cast<u64>(g[0]) * g[1] * g[2];
    if (plan.capture != nullptr) instructions.assign(total_, 0);
    if (skips()) total_ = plan.capture->groups.size();
  }
  [[nodiscard]] Status run();
  // Progress with `more` workgroups ended.
  void tell_progress(u64 more);

  SimStatistics statistics;
  LaunchCounts counts;
  std::map<u64, GroupResult> failures;
  // Of workgroups that did not fail, each kind at each instruction once: by the lowest that has it.
  std::map<std::pair<u64, std::string>, std::pair<u64, SimFinding>> warnings;
  // By workgroup in launch order, when the plan captures.
  std::map<u64, Recorded> recorded;
  std::vector<u64> instructions;

 private:
  [[nodiscard]] bool skips() const {
    return plan_.capture != nullptr && plan_.capture->skips_others && !plan_.capture->all;
  }

  void work();
  void run_groups(SimStatistics& local);
  void keep_warnings(u64 group, std::vector<SimFinding>& found);
  void keep_capture(u64 group, GroupResult& result);

  const LaunchPlan& plan_;
  unsigned threads_;
  const std::function<void(u64, u64)>& progress_;
  u64 total_ = 0, ended_ = 0;
  std::atomic<u64> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex lock_;
};

void Dispatch::tell_progress(u64 more) {
  if (!progress_) return;
  const std::lock_guard hold(lock_);
  ended_ += more;
  progress_(ended_, total_);
}

void Dispatch::run_groups(SimStatistics& local) {
  Engine engine(plan_);
  while (!stop_.load(std::memory_order_relaxed)) {
    const u64 turn = next_.fetch_add(1);
    if (turn >= total_) break;
    const u64 index = skips() ? plan_.capture->groups[turn] : turn;
    const auto& g = plan_.shape.grid;
    GroupResult result = engine.run(
        {static_cast<u32>(index % g[0]), static_cast<u32>(index / g[0] % g[1]), static_cast<u32>(index / g[0] / g[1])});
    add(local, result.statistics);
    if (result.failed) stop_.store(true);
    tell_progress(1);
    if (!result.failed) {
      keep_capture(index, result);
      if (!result.findings.empty()) keep_warnings(index, result.findings);
      continue;
    }
    const std::lock_guard hold(lock_);
    failures.emplace(index, std::move(result));
  }
  const std::lock_guard hold(lock_);
  counts.merge(engine.counts());
}

void Dispatch::keep_warnings(u64 group, std::vector<SimFinding>& found) {
  const std::lock_guard hold(lock_);
  for (SimFinding& f : found) {
    const std::pair<u64, std::string> place(f.offset, f.kind);
    const auto known = warnings.find(place);
    if (known == warnings.end() || group < known->second.first) warnings[place] = {group, std::move(f)};
  }
}

void Dispatch::keep_capture(u64 group, GroupResult& result) {
  if (plan_.capture == nullptr) return;
  instructions[group] = result.statistics.instructions;  // each workgroup has its own element
  if (!result.recorded) return;
  const std::lock_guard hold(lock_);
  recorded.emplace(group, std::move(*result.recorded));
}

void Dispatch::work() {
  SimStatistics local;
  try {
    run_groups(local);
  } catch (...) {
    stop_.store(true);
    throw;
  }
  const std::lock_guard hold(lock_);
  add(statistics, local);
}

Status Dispatch::run() {
  if (total_ == 0) return {};
  tell_progress(0);
  return run_crew(static_cast<unsigned>(std::min<u64>(threads_, total_)), [this] { work(); });
}

class Simulator final : public SimDevice {
 public:
  explicit Simulator(const SimOptions& options) : options_(options), memory_(std::make_shared<DeviceMemory>()) {}

  [[nodiscard]] std::string name() const override { return "sim"; }
  [[nodiscard]] Expected<DeviceAddress> allocate(std::size_t bytes) override;
  void release(DeviceAddress address) override;
  [[nodiscard]] Status write(DeviceAddress to, std::span<const std::byte> from) override;
  [[nodiscard]] Status read(std::span<std::byte> to, DeviceAddress from) override;
  [[nodiscard]] Expected<std::shared_ptr<LoadedKernel>> load(std::span<const std::byte> object,
                                                             std::string_view symbol) override;
  [[nodiscard]] Status launch(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const std::byte> kernargs,
                              Stream stream) override;
  [[nodiscard]] Status synchronize(Stream) override { return {}; }

  [[nodiscard]] SimOptions options() const override;
  [[nodiscard]] Status set_options(const SimOptions& options) override;
  [[nodiscard]] SimStatistics last_statistics() const override;
  [[nodiscard]] std::vector<SimInstructionCount> last_instruction_counts() const override;
  [[nodiscard]] std::vector<SimFinding> last_findings() const override;
  [[nodiscard]] SimToggles last_toggles() const override;
  [[nodiscard]] Expected<LaunchProfile> last_profile(const ProfileOptions& options) const override;
  [[nodiscard]] std::shared_ptr<const LaunchCapture> capture() const;

 private:
  // A buffer of the launch itself.
  struct Loan {
    Simulator& device;
    DeviceAddress address;
    ~Loan() { device.release(address); }
  };

  Status run(const SimKernel& kernel, const LaunchShape& shape, std::span<const std::byte> kernargs);
  Status finish(const SimKernel& kernel, Dispatch& dispatch);
  // Of a launch that failed (null): nothing. Returns what was kept before: it may hold the last reference to a kernel,
  // which takes the memory's lock to go.
  std::shared_ptr<const LaunchCapture> keep(const SimKernel& kernel, const LaunchPlan& plan, Dispatch* dispatch);

  mutable std::mutex options_lock_;
  SimOptions options_;
  std::shared_ptr<DeviceMemory> memory_;
  mutable std::mutex results_lock_;
  SimStatistics statistics_;
  std::vector<SimInstructionCount> instruction_counts_;
  std::vector<SimFinding> findings_;
  std::shared_ptr<const LaunchCapture> capture_;
};

Status Simulator::set_options(const SimOptions& options) {
  Status usable = check_options(options);
  const std::lock_guard hold(options_lock_);
  if (usable) options_ = options;
  return usable;
}

SimOptions Simulator::options() const {
  const std::lock_guard hold(options_lock_);
  return options_;
}

Expected<DeviceAddress> Simulator::allocate(std::size_t bytes) {
  const std::unique_lock hold(memory_->lock);
  const DeviceAddress address = memory_->space.allocate(bytes);
  if (address == 0) {
    return make_error(ErrorCode::kDeviceError,
                      fmt::format("no memory for a buffer of {} bytes on the simulated device", bytes));
  }
  return address;
}

void Simulator::release(DeviceAddress address) {
  const std::unique_lock hold(memory_->lock);
  memory_->space.release(address);
}

Status Simulator::write(DeviceAddress to, std::span<const std::byte> from) {
  const std::shared_lock hold(memory_->lock);
  std::byte* host = memory_->space.find(to, from.size());
  if (host == nullptr && !from.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("writing {} bytes at 0x{:x}: {}", from.size(), to, memory_->space.describe(to)));
  }
  if (!from.empty()) std::memcpy(host, from.data(), from.size());
  return {};
}

Status Simulator::read(std::span<std::byte> to, DeviceAddress from) {
  const std::shared_lock hold(memory_->lock);
  const std::byte* host = memory_->space.find(from, to.size());
  if (host == nullptr && !to.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("reading {} bytes at 0x{:x}: {}", to.size(), from, memory_->space.describe(from)));
  }
  if (!to.empty()) std::memcpy(to.data(), host, to.size());
  return {};
}

Expected<std::shared_ptr<LoadedKernel>> Simulator::load(std::span<const std::byte> object, std::string_view symbol) {
  auto kernel = SimKernel::load(memory_, {object.begin(), object.end()}, symbol);
  if (!kernel) return tl::unexpected(kernel.error());
  return std::shared_ptr<LoadedKernel>(std::move(*kernel));
}

Status Simulator::finish(const SimKernel& kernel, Dispatch& dispatch) {
  const std::lock_guard hold(results_lock_);
  statistics_ = dispatch.statistics;
  statistics_.bytes = dispatch.counts.traffic();
  statistics_.lds_cost = dispatch.counts.lds();
  instruction_counts_ = kernel.instruction_counts(dispatch.counts.by_op());
  findings_.clear();
  if (dispatch.failures.empty()) {
    for (auto& [place, found] : dispatch.warnings) findings_.push_back(std::move(found.second));
    return {};
  }
  GroupResult& first = dispatch.failures.begin()->second;
  findings_ = std::move(first.findings);
  std::vector<std::string> details;
  for (const SimFinding& f : findings_) details.push_back(to_string(f));
  return make_error(first.code, first.message, std::move(details));
}

std::shared_ptr<const LaunchCapture> Simulator::keep(const SimKernel& kernel, const LaunchPlan& plan,
                                                     Dispatch* dispatch) {
  std::shared_ptr<LaunchCapture> capture;
  if (dispatch != nullptr) {
    capture = std::make_shared<LaunchCapture>();
    capture->kernel = kernel.shared_from_this();
    capture->shape = plan.shape;
    capture->lds_bytes = plan.lds_bytes;
    capture->instructions = std::move(dispatch->instructions);
    for (auto& [group, recorded] : dispatch->recorded) {
      capture->groups.push_back(std::move(recorded.trace));
      capture->toggles.mfmas += recorded.toggles.mfmas;
      capture->toggles.a += recorded.toggles.a;
      capture->toggles.b += recorded.toggles.b;
      capture->toggles.c += recorded.toggles.c;
    }
  }
  const std::lock_guard hold(results_lock_);
  return std::exchange(capture_, std::move(capture));
}

Status Simulator::run(const SimKernel& kernel, const LaunchShape& shape, std::span<const std::byte> kernargs) {
  const SimOptions options = this->options();
  std::optional<CapturePlan> capture;
  if (options.capture) {
    auto planned = plan_capture(*options.capture, shape, kernel.symbol());
    if (!planned) return tl::unexpected(planned.error());
    capture = std::move(*planned);
  }
  const std::vector<std::byte> segment = kernel.kernarg_segment(shape, kernargs);
  // The dispatch packet of the HSA queue: only its sizes are ever read.
  std::array<u32, 16> packet{};
  packet[1] = shape.block[0] | (shape.block[1] << 16);
  packet[2] = shape.block[2];
  for (unsigned i = 0; i < 3; ++i) packet[3 + i] = shape.grid[i] * shape.block[i];

  auto segment_address = allocate(segment.size());
  if (!segment_address) return tl::unexpected(segment_address.error());
  const Loan segment_loan{*this, *segment_address};
  auto packet_address = allocate(sizeof(packet));
  if (!packet_address) return tl::unexpected(packet_address.error());
  const Loan packet_loan{*this, *packet_address};
  Status status = write(*segment_address, segment);
  if (status) status = write(*packet_address, std::as_bytes(std::span(packet)));
  std::shared_ptr<const LaunchCapture> replaced;  // outlives the lock
  if (status) {
    const std::shared_lock hold(memory_->lock);
    auto plan = kernel.plan(shape, segment, *segment_address, *packet_address);
    if (!plan) {
      status = tl::unexpected(plan.error());
    } else {
      plan->max_instructions = options.max_instructions;
      plan->max_findings = options.max_findings;
      plan->rules = options.rules;
      plan->landing = options.landing;
      plan->landing_seed = options.landing_seed;
      plan->interleave = options.interleave;
      plan->interleave_seed = options.interleave_seed;
      plan->strict = options.checks == SimChecks::kStrict;
      if (plan->strict) plan->strict_table = &kernel.strict_table();
      plan->counts = options.counts;
      plan->watches = &options.watches;
      plan->capture = capture ? &*capture : nullptr;
      // Where the order of read-modify-writes shows in the results, workgroups run in order.
      const unsigned threads = plan->program->ordered_atomics ? 1 : options.threads;
      Dispatch dispatch(*plan, options, threads);
      if (options.progress) plan->heartbeat = [&dispatch] { dispatch.tell_progress(0); };
      status = dispatch.run();
      Status found = finish(kernel, dispatch);
      if (status) status = std::move(found);
      if (capture) replaced = keep(kernel, *plan, status ? &dispatch : nullptr);
    }
  }
  return status;
}

Status Simulator::launch(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const std::byte> kernargs,
                         Stream) {
  const auto* mine = dynamic_cast<const SimKernel*>(&kernel);
  if (mine == nullptr || mine->memory() != memory_.get())
    return make_error(ErrorCode::kInvalidArgument, "the kernel was loaded on another device");
  try {
    return run(*mine, shape, kernargs);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kDeviceError, "no host memory for the launch");
  }
}

SimStatistics Simulator::last_statistics() const {
  const std::lock_guard hold(results_lock_);
  return statistics_;
}

std::vector<SimInstructionCount> Simulator::last_instruction_counts() const {
  const std::lock_guard hold(results_lock_);
  return instruction_counts_;
}

std::vector<SimFinding> Simulator::last_findings() const {
  const std::lock_guard hold(results_lock_);
  return findings_;
}

SimToggles Simulator::last_toggles() const {
  const std::lock_guard hold(results_lock_);
  return capture_ ? capture_->toggles : SimToggles{};
}

std::shared_ptr<const LaunchCapture> Simulator::capture() const {
  const std::lock_guard hold(results_lock_);
  return capture_;
}

Expected<LaunchProfile> Simulator::last_profile(const ProfileOptions& options) const {
  const std::shared_ptr<const LaunchCapture> capture = this->capture();
  if (!capture || capture->groups.empty()) {
    return make_error(ErrorCode::kNotFound,
                      "no launch of this device was recorded; set SimOptions::capture before the launch");
  }
  try {
    return make_profile(*capture, options);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kDeviceError, "no host memory for the profile");
  }
}

}  // namespace

Expected<std::shared_ptr<SimDevice>> make_sim_device(const SimOptions& options) {
  if (Status usable = check_options(options); !usable) return tl::unexpected(usable.error());
  return std::shared_ptr<SimDevice>(std::make_shared<Simulator>(options));
}

std::shared_ptr<const LaunchCapture> last_capture(const SimDevice& device) {
  const auto* simulator = dynamic_cast<const Simulator*>(&device);
  return simulator == nullptr ? nullptr : simulator->capture();
}

std::string to_string(const SimFinding& f) {
  std::string text =
      fmt::format("{} at +0x{:x} `{}`, workgroup ({}, {}, {}), wave {}, lane {}: {}", f.kind, f.offset, f.instruction,
                  f.workgroup[0], f.workgroup[1], f.workgroup[2], f.wave, f.lane, f.message);
  if (!f.origin.empty()) text += fmt::format(" [{}]", f.origin);
  return f.warning ? "warning: " + text : text;
}

}  // namespace zyfa::sim
