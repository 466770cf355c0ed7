#include "tools/simulation_statistics.h"

#include <fmt/format.h>

#include <algorithm>

namespace zyfa::tools {
namespace {

struct Count {
  const char* name;
  std::uint64_t SimStatistics::* value;
};

constexpr Count kCounts[] = {{"instructions", &SimStatistics::instructions},
                             {"mfma", &SimStatistics::mfma},
                             {"valu", &SimStatistics::valu},
                             {"trans", &SimStatistics::trans},
                             {"salu", &SimStatistics::salu},
                             {"smem", &SimStatistics::smem},
                             {"lds", &SimStatistics::lds},
                             {"vmem", &SimStatistics::vmem},
                             {"branch", &SimStatistics::branch},
                             {"barrier", &SimStatistics::barrier},
                             {"other", &SimStatistics::other},
                             {"mfma_flops", &SimStatistics::mfma_flops},
                             {"waves", &SimStatistics::waves},
                             {"workgroups", &SimStatistics::workgroups}};

struct Bytes {
  const char* name;
  std::uint64_t SimTraffic::* value;
};

constexpr Bytes kBytes[] = {{"lds_read", &SimTraffic::lds_read},
                            {"lds_written", &SimTraffic::lds_written},
                            {"lds_dma", &SimTraffic::lds_dma},
                            {"global_read", &SimTraffic::global_read},
                            {"global_written", &SimTraffic::global_written},
                            {"scalar_read", &SimTraffic::scalar_read},
                            {"scratch_read", &SimTraffic::scratch_read},
                            {"scratch_written", &SimTraffic::scratch_written},
                            {"atomics", &SimTraffic::atomics}};

// LDS instructions with conflicts, the most costly first.
std::vector<SimInstructionCount> conflicting(const SimDevice& device) {
  std::vector<SimInstructionCount> counts = device.last_instruction_counts();
  std::erase_if(counts, [](const SimInstructionCount& c) { return c.lds_cost.conflict_cycles == 0; });
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
    return a.lds_cost.conflict_cycles > b.lds_cost.conflict_cycles;
  });
  return counts;
}

}  // namespace

void print_statistics(const SimDevice& device) {
  const SimStatistics statistics = device.last_statistics();
  fmt::print("instructions by unit\n");
  for (const Count& count : kCounts) {
    fmt::print("  {:<16} {:>16}\n", count.name, statistics.*count.value);
  }
  if (device.options().counts != SimCounts::kByInstruction) {
    return;
  }
  fmt::print("bytes\n");
  for (const Bytes& bytes : kBytes) {
    fmt::print("  {:<16} {:>16}\n", bytes.name, statistics.bytes.*bytes.value);
  }
  fmt::print("LDS\n  {:<16} {:>16}\n  {:<16} {:>16}\n", "phases", statistics.lds_cost.phases, "conflict_cycles",
             statistics.lds_cost.conflict_cycles);
  for (const SimInstructionCount& c : conflicting(device)) {
    fmt::print("  +0x{:05x} {:<44} ran {:>9}, phases {:>10}, conflict cycles {:>10}\n", c.offset, c.instruction,
               c.executed, c.lds_cost.phases, c.lds_cost.conflict_cycles);
  }
}

OrderedJson statistics_json(const SimDevice& device) {
  const SimStatistics statistics = device.last_statistics();
  OrderedJson result;
  for (const Count& count : kCounts) {
    result[count.name] = statistics.*count.value;
  }
  if (device.options().counts != SimCounts::kByInstruction) {
    return result;
  }
  for (const Bytes& bytes : kBytes) {
    result["bytes"][bytes.name] = statistics.bytes.*bytes.value;
  }
  result["lds"] = {{"phases", statistics.lds_cost.phases}, {"conflict_cycles", statistics.lds_cost.conflict_cycles}};
  result["lds"]["conflicts"] = OrderedJson::array();
  for (const SimInstructionCount& c : conflicting(device)) {
    result["lds"]["conflicts"].push_back({{"offset", c.offset},
                                          {"instruction", c.instruction},
                                          {"executed", c.executed},
                                          {"phases", c.lds_cost.phases},
                                          {"conflict_cycles", c.lds_cost.conflict_cycles}});
  }
  return result;
}

}  // namespace zyfa::tools
