// Looking into a running wave of the simulator: breakpoints and traces (SimOptions::watches).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace zyfa {

// A run of registers: bank 'v' (VGPR), 'a' (AGPR) or 's' (SGPR; vcc is 106, m0 124, exec 126).
struct SimRegisters {
  char bank = 'v';
  std::uint16_t first = 0, count = 0;
};

// A wave between two instructions.
class SimWaveView {
 public:
  virtual ~SimWaveView() = default;
  // nullopt for a register the kernel has not got, or a lane above 63.
  [[nodiscard]] virtual std::optional<std::uint32_t> vgpr(unsigned index, unsigned lane) const = 0;
  [[nodiscard]] virtual std::optional<std::uint32_t> agpr(unsigned index, unsigned lane) const = 0;
  [[nodiscard]] virtual std::optional<std::uint32_t> sgpr(unsigned index) const = 0;
  [[nodiscard]] virtual std::uint64_t exec() const = 0;
  [[nodiscard]] virtual std::uint64_t vcc() const = 0;
  [[nodiscard]] virtual std::uint32_t scc() const = 0;
  [[nodiscard]] virtual std::uint32_t m0() const = 0;
  [[nodiscard]] virtual std::uint32_t mode() const = 0;
  [[nodiscard]] virtual std::span<const std::byte> lds() const = 0;  // of the workgroup
};

struct SimStep {
  std::array<std::uint32_t, 3> workgroup{};
  std::uint32_t wave = 0;
  std::uint64_t number = 0;  // of the wave's instructions, from 0
  std::uint64_t offset = 0;  // from the kernel's entry
  std::string_view instruction;
  std::span<const SimRegisters> writes;  // its destinations
  // A load whose destination has not got its data yet (SimLanding).
  enum class Result { kThere, kInFlight } result = Result::kThere;
};

enum class SimAction { kContinue, kStop };
enum class SimMoment { kBefore, kAfter };  // the instruction executes

// Calls `call` at every instruction of one workgroup that fits; on a simulator thread, never two calls at a time.
// kStop ends the launch with kDeviceError.
struct SimWatch {
  SimMoment moment = SimMoment::kBefore;
  std::array<std::uint32_t, 3> workgroup{};
  std::optional<std::uint32_t> wave;    // any
  std::optional<std::uint64_t> offset;  // any
  std::function<SimAction(const SimStep&, const SimWaveView&)> call;
};

}  // namespace zyfa
