// A device that runs gfx950 code objects: an MI355X through HIP, or the functional simulator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zyfa/error.h"
#include "zyfa/export.h"
#include "zyfa/sim_capture.h"
#include "zyfa/sim_findings.h"
#include "zyfa/sim_rules.h"
#include "zyfa/sim_watch.h"

namespace zyfa {

// An opaque queue of the device's runtime (hipStream_t for HIP); nullptr is the default stream. The simulator runs
// every launch to its end before launch() returns, on any stream.
using Stream = void*;

// A device address. On the simulator it is an address in the simulated 48-bit space, not a host pointer.
using DeviceAddress = std::uint64_t;

struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};    // workgroups
  std::array<std::uint32_t, 3> block{64, 1, 1};  // work-items of a workgroup; product at most 1024
  std::uint32_t dynamic_lds = 0;                 // bytes, added to the static size; together at most 163,840 (160 KiB)
};

// One kernel of a loaded code object. Keeps its module loaded while it lives.
class ZYFA_API LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  [[nodiscard]] virtual std::string_view symbol() const = 0;
};

// One strict-mode finding or fault of the simulator.
struct SimFinding {
  std::string kind;          // a name of kSimFindingKinds
  std::uint64_t offset = 0;  // from the kernel's entry
  std::array<std::uint32_t, 3> workgroup{};
  std::uint32_t wave = 0, lane = 0;
  std::string instruction;  // disassembly
  std::string message;      // what happened and what was expected
  std::string origin;       // comment, stage and DSL source when the object carries a listing
  bool warning = false;     // inadvisable, not known to be wrong: does not fail the launch
};

class ZYFA_API Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual std::string name() const = 0;  // "sim" or "hip:0 (gfx950:sramecc+:xnack-)"
  [[nodiscard]] virtual Expected<DeviceAddress> allocate(std::size_t bytes) = 0;  // 256-byte aligned; 0 bytes is legal
  virtual void release(DeviceAddress address) = 0;
  [[nodiscard]] virtual Status write(DeviceAddress to, std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual Status read(std::span<std::byte> to, DeviceAddress from) = 0;
  // kArchMismatch, kCorruptData, kNotFound (symbol; details list the kernels the object has), kUnsupported (simulator:
  // an instruction it does not know, named).
  [[nodiscard]] virtual Expected<std::shared_ptr<LoadedKernel>> load(std::span<const std::byte> object,
                                                                     std::string_view symbol) = 0;
  // `kernargs` is the packed kernel argument segment. Simulator: kMemoryFault or kStrictFinding with details.
  [[nodiscard]] virtual Status launch(const LoadedKernel& kernel, const LaunchShape& shape,
                                      std::span<const std::byte> kernargs, Stream stream) = 0;
  [[nodiscard]] virtual Status synchronize(Stream stream) = 0;
};

enum class SimChecks { kPlain, kStrict };

// When the result of a load, or of a direct-to-LDS load, arrives.
enum class SimLanding {
  kLate,    // when its wave waits for it, or its counter has no room for another; LDS reads at issue
  kLatest,  // the same, and LDS reads wait too
  kEarly,   // at issue
  kRandom,  // at some instruction of its wave between the two, by landing_seed
};
// Which wave of a workgroup executes next.
enum class SimInterleave {
  kRoundRobin,  // each in turn, one instruction
  kToBarrier,   // one wave until it waits at a barrier or ends, then the next
  kRandom,      // any that can, by interleave_seed
};

// What a launch counts: instructions by unit, or bytes, bank conflicts and last_instruction_counts() too.
enum class SimCounts { kByUnit, kByInstruction };

struct SimOptions {
  SimChecks checks = SimChecks::kPlain;
  // Simulator threads over workgroups. Results do not depend on it: a kernel with atomics in memory whose results tell
  // the order of workgroups (floats, returned values, exchanges) runs on one.
  unsigned threads = 1;
  // Per wave; 0 = no limit. Reaching it is kDeviceError, never a hang. The default is hundreds of times what attention
  // over a million keys takes, and some minutes of simulation for one wave.
  std::uint64_t max_instructions = std::uint64_t{1} << 32;
  std::size_t max_findings = 16;  // strict mode stops a launch after this many
  SimLanding landing = SimLanding::kLate;
  SimInterleave interleave = SimInterleave::kRoundRobin;
  std::uint64_t landing_seed = 0, interleave_seed = 0;
  SimRules rules{};
  SimCounts counts = SimCounts::kByUnit;
  std::vector<SimWatch> watches{};
  std::optional<SimCapture> capture{};
  // Workgroups that have ended and all of the launch: at its start, whenever one ends, and now and then between. On a
  // simulator thread, never two calls at a time.
  std::function<void(std::uint64_t ended, std::uint64_t workgroups)> progress{};
};

// Bytes that active lanes asked for, also those that a range check dropped. A direct-to-LDS load counts what it reads
// under its memory and what it writes under lds_dma; read-modify-writes count as lane operations under atomics alone.
struct SimTraffic {
  std::uint64_t lds_read = 0, lds_written = 0, lds_dma = 0;
  std::uint64_t global_read = 0, global_written = 0;
  std::uint64_t scalar_read = 0;  // a wave's
  std::uint64_t scratch_read = 0, scratch_written = 0;
  std::uint64_t atomics = 0;
};

// LDS serves an instruction in phases of some lanes; where those of a phase meet in a bank, it takes a cycle more for
// each further dword of the fullest bank (docs/simulator.md).
struct SimLdsCost {
  std::uint64_t phases = 0, conflict_cycles = 0;
};

// Counts of one launch, summed over waves.
struct SimStatistics {
  std::uint64_t instructions = 0, valu = 0, trans = 0, mfma = 0, salu = 0, smem = 0, lds = 0, vmem = 0, branch = 0,
                barrier = 0, other = 0;
  std::uint64_t mfma_flops = 0;  // 2 x M x N x K of every MFMA executed
  std::uint64_t waves = 0, workgroups = 0;
  // With SimCounts::kByInstruction, else 0.
  SimTraffic bytes;
  SimLdsCost lds_cost;
};

// One instruction of the kernel, over all waves of a launch.
struct SimInstructionCount {
  std::uint64_t offset = 0;  // from the kernel's entry
  std::string instruction;
  std::uint64_t executed = 0;
  SimLdsCost lds_cost{};
  std::string comment{};  // the listing's, when the object carries one
};

struct LaunchProfile;  // zyfa/profile.h
struct ProfileOptions;

class ZYFA_API SimDevice : public Device {
 public:
  // Opens libzyfa_jit, which holds the simulator. kDeviceUnavailable when it is not found,
  // kInvalidArgument for options that are refused.
  [[nodiscard]] static Expected<std::shared_ptr<SimDevice>> create(const SimOptions& options = {});

  [[nodiscard]] virtual SimOptions options() const = 0;
  // kInvalidArgument, changing nothing: 0 threads or 0 findings (as create()).
  [[nodiscard]] virtual Status set_options(const SimOptions& options) = 0;
  [[nodiscard]] virtual SimStatistics last_statistics() const = 0;
  // With SimCounts::kByInstruction: those that ran, in order of offset; else empty.
  [[nodiscard]] virtual std::vector<SimInstructionCount> last_instruction_counts() const = 0;
  // Findings of the last launch (also as details of its error). After a launch that succeeded: its warnings.
  [[nodiscard]] virtual std::vector<SimFinding> last_findings() const = 0;
  // Operand toggles over the recorded workgroups of the last launch that recorded any (SimOptions::capture).
  [[nodiscard]] virtual SimToggles last_toggles() const = 0;
  // The cycle model's prediction for that launch (zyfa/profile.h). kNotFound: none was recorded; kInvalidArgument: a
  // parameter or an option, named with what is allowed. Asking again costs no simulation.
  [[nodiscard]] virtual Expected<LaunchProfile> last_profile(const ProfileOptions& options) const = 0;
  // Of allocate(): buffers never lie side by side, so any access outside of one is a memory fault. Bytes that nobody
  // wrote read as 0xff, in buffers of 1 GiB and more as 0; strict mode does not track them.
};

class ZYFA_API HipDevice : public Device {
 public:
  // Finds libamdhip64 with dlopen. kDeviceUnavailable: no library (names tried), no device, or a device that is not
  // gfx950.
  [[nodiscard]] static Expected<std::shared_ptr<HipDevice>> create(int ordinal = 0);
};

}  // namespace zyfa
