#include "tools/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace zyfa::tools {
namespace {

using Id = std::array<std::uint32_t, 3>;

// Of a wave, the reasons worth a line.
constexpr std::size_t kStallsShown = 4;

OrderedJson to_json(const ProfileRange& range) {
  return {{"value", range.value}, {"low", range.low}, {"high", range.high}};
}

OrderedJson to_json(const ProfileLoop& loop) {
  return {{"head", loop.head},
          {"tail", loop.tail},
          {"trips", loop.trips},
          {"cycles_per_trip", loop.cycles},
          {"instructions_per_trip", loop.instructions},
          {"matrix_cycles_per_trip", loop.matrix_cycles},
          {"waves_per_simd", loop.waves_per_simd},
          {"prologue_cycles", loop.prologue},
          {"epilogue_cycles", loop.epilogue},
          {"keys_per_trip", loop.keys},
          {"cycles_per_tile", loop.tile_cycles},
          {"useful_matrix_busy", loop.useful_busy}};
}

OrderedJson to_json(const ProfileWave& wave) {
  OrderedJson stalls = OrderedJson::object();
  for (const ProfileShare& stall : wave.stalls) {
    stalls[stall.name] = stall.share;
  }
  return {{"index", wave.index},
          {"simd", wave.simd},
          {"start", wave.start},
          {"end", wave.end},
          {"instructions", wave.instructions},
          {"stalls", stalls}};
}

OrderedJson to_json(const ProfileChip& chip) {
  return {{"workgroups", chip.workgroups},
          {"resident", chip.resident},
          {"resident_limit", chip.resident_limit},
          {"cycles", to_json(chip.cycles)},
          {"busy", chip.busy},
          {"tail", chip.tail},
          {"imbalance", chip.imbalance},
          {"longest_workgroup_cycles", chip.longest},
          {"requested_bytes", chip.requested_bytes},
          {"unique_bytes", chip.unique_bytes},
          {"unique_bytes_estimated", chip.unique_estimated},
          {"l2_cycles", chip.l2_cycles},
          {"infinity_cache_seconds", {{"least", chip.mall_seconds_least}, {"most", chip.mall_seconds_most}}},
          {"hbm_seconds", chip.hbm_seconds},
          {"bound", chip.bound},
          {"clock_ghz", to_json(chip.clock_ghz)},
          {"clock_source", chip.clock_source},
          {"seconds", to_json(chip.seconds)},
          {"flops", chip.flops},
          {"flops_kind", chip.flops_kind},
          {"tflops", to_json(chip.tflops)}};
}

OrderedJson to_json(const ProfileCorner& corner) {
  return {{"values", corner.values},
          {"cycles_per_trip", corner.cycles},
          {"cycles_per_tile", corner.tile_cycles},
          {"matrix_busy", corner.matrix_busy},
          {"useful_matrix_busy", corner.useful_busy}};
}

OrderedJson to_json(const ProfileCorners& c) {
  OrderedJson axes = OrderedJson::array(), corners = OrderedJson::array();
  for (const ProfileCorners::Axis& axis : c.axes) {
    axes.push_back({{"parameter", axis.parameter}, {"values", axis.values}});
  }
  for (const ProfileCorner& corner : c.corners) {
    corners.push_back(to_json(corner));
  }
  return {{"axes", axes}, {"trips", c.trips}, {"as_set", to_json(c.as_set)}, {"corners", corners}};
}

std::string id_text(const Id& id) { return fmt::format("({}, {}, {})", id[0], id[1], id[2]); }

double per_mfma(std::uint64_t bits, const SimToggles& toggles) {
  return toggles.mfmas == 0 ? 0 : static_cast<double>(bits) / static_cast<double>(toggles.mfmas);
}

void print_loop(const ProfileLoop& loop) {
  fmt::print("loop +0x{:x} to +0x{:x}: {} trips a wave, {:.3g} waves a SIMD\n", loop.head, loop.tail, loop.trips,
             loop.waves_per_simd);
  fmt::print("  cycles a trip            {:>10.1f}\n", loop.cycles);
  fmt::print("  instructions a trip      {:>10.1f} of a wave\n", loop.instructions);
  fmt::print("  matrix cycles a trip     {:>10.1f} of a wave\n", loop.matrix_cycles);
  if (loop.keys != 0) {
    fmt::print("  keys a trip              {:>10}\n", loop.keys);
    fmt::print("  cycles a 128-key tile    {:>10.1f} of a SIMD\n", loop.tile_cycles);
    fmt::print("  matrix busy, useful      {:>9.1f}% (Q.K and P.V)\n", 100 * loop.useful_busy);
  }
  fmt::print("  prologue, epilogue       {:>10.0f}, {:.0f} cycles of a wave\n", loop.prologue, loop.epilogue);
}

void print_waves(const std::vector<ProfileWave>& waves) {
  fmt::print("waves: cycles, and what they wait for (share of their time)\n");
  for (const ProfileWave& wave : waves) {
    std::string stalls;
    for (std::size_t i = 0; i < std::min(kStallsShown, wave.stalls.size()); ++i) {
      stalls += fmt::format("{}{} {:.1f}%", i == 0 ? "" : ", ", wave.stalls[i].name, 100 * wave.stalls[i].share);
    }
    fmt::print("  wave {:>2} SIMD {} {:>9}  {}\n", wave.index, wave.simd, wave.end - wave.start, stalls);
  }
}

void print_chip(const ProfileChip& c) {
  fmt::print("chip: {} workgroups on 256 compute units, {} at once on each (limit: {})\n", c.workgroups, c.resident,
             c.resident_limit);
  fmt::print("  cycles                   {:>10.0f} ({:.0f} to {:.0f}); longest workgroup {}\n", c.cycles.value,
             c.cycles.low, c.cycles.high, c.longest);
  fmt::print("  slots busy               {:>9.1f}%; tail {:.1f}% of the time; busiest XCD {:.2f}x the mean\n",
             100 * c.busy, 100 * c.tail, c.imbalance);
  fmt::print("  bytes                    {:>10.3g} asked for, {:.3g} distinct{}\n", c.requested_bytes, c.unique_bytes,
             c.unique_estimated ? " (estimated)" : "");
  fmt::print("  memory alone             L2 {:.0f} cycles, Infinity Cache {:.3g} to {:.3g} us, HBM {:.3g} us\n",
             c.l2_cycles, 1e6 * c.mall_seconds_least, 1e6 * c.mall_seconds_most, 1e6 * c.hbm_seconds);
  fmt::print("  bound by                 {}\n", c.bound);
  fmt::print("clock (assumed): {:.3f} GHz ({:.3f} to {:.3f}), {}\n", c.clock_ghz.value, c.clock_ghz.low,
             c.clock_ghz.high, c.clock_source);
  fmt::print("predicted time: {:.4g} us ({:.4g} to {:.4g}), {:.4g} TFLOP/s ({:.4g} to {:.4g}), {} flops\n",
             1e6 * c.seconds.value, 1e6 * c.seconds.low, 1e6 * c.seconds.high, c.tflops.value, c.tflops.low,
             c.tflops.high, c.flops_kind);
}

void print_corner(const char* name, const ProfileCorner& corner) {
  fmt::print("  {:<8}", name);
  if (corner.tile_cycles != 0) {
    fmt::print(" useful {:>5.1f}%,", 100 * corner.useful_busy);
  }
  fmt::print(" all MFMAs {:>5.1f}%, {:.1f} cycles a trip\n", 100 * corner.matrix_busy, corner.cycles);
}

void print_corners(const ProfileCorners& c) {
  fmt::print("matrix busy in the loop at {} corners, worst first by {}", c.corners.size(),
             c.as_set.tile_cycles != 0 ? "the useful share" : "the share");
  fmt::print(", {}\n",
             c.trips == 0 ? "of the whole workgroup" : fmt::format("of {} trips from the loop's middle", c.trips));
  print_corner("worst", c.corners.front());
  print_corner("median", c.corners[c.corners.size() / 2]);
  print_corner("best", c.corners.back());
  print_corner("as set", c.as_set);
  fmt::print("  worst at");
  for (std::size_t i = 0; i < c.axes.size(); ++i) {
    fmt::print(" {}={}", c.axes[i].parameter, c.corners.front().values[i]);
  }
  fmt::print("\n");
}

void print_sensitivity(const std::vector<ProfileSensitivity>& all) {
  fmt::print(
      "sensitivity: cycles of a sample workgroup at the ends of each parameter's range; settled ones do not count "
      "in the error bars\n");
  for (const ProfileSensitivity& s : all) {
    fmt::print("  {:<26} {:>6}  at {:>6} {:>+7.2f}%  at {:>6} {:>+7.2f}%{}\n", s.parameter, s.value, s.low,
               100 * s.at_low, s.high, 100 * s.at_high, s.open ? "" : "  settled");
  }
}

}  // namespace

std::vector<Id> spaced_workgroups(const Id& grid, std::uint64_t count) {
  const std::uint64_t total = std::uint64_t{grid[0]} * grid[1] * grid[2], taken = std::min(count, total);
  std::vector<Id> ids;
  for (std::uint64_t i = 0; i < taken; ++i) {
    const double place = taken == 1 ? 0 : static_cast<double>(i) / static_cast<double>(taken - 1);
    const auto number = static_cast<std::uint64_t>(std::llround(place * static_cast<double>(total - 1)));
    ids.push_back({static_cast<std::uint32_t>(number % grid[0]), static_cast<std::uint32_t>(number / grid[0] % grid[1]),
                   static_cast<std::uint32_t>(number / grid[0] / grid[1])});
  }
  return ids;
}

OrderedJson to_json(const LaunchProfile& p) {
  OrderedJson groups = OrderedJson::array(), units = OrderedJson::array(), waves = OrderedJson::array(),
              sensitivity = OrderedJson::array();
  for (const ProfileGroup& g : p.groups) {
    groups.push_back({{"workgroup", g.id}, {"instructions", g.instructions}, {"cycles", g.cycles}});
  }
  for (const ProfileUnit& u : p.units) {
    units.push_back({{"unit", u.name}, {"loop", u.steady}, {"whole", u.whole}});
  }
  for (const ProfileWave& wave : p.waves) {
    waves.push_back(to_json(wave));
  }
  for (const ProfileSensitivity& s : p.sensitivity) {
    sensitivity.push_back({{"parameter", s.parameter},
                           {"value", s.value},
                           {"low", s.low},
                           {"high", s.high},
                           {"open", s.open},
                           {"at_low", s.at_low},
                           {"at_high", s.at_high}});
  }
  return {{"predicted", true},
          {"kernel", p.kernel},
          {"parameters", p.parameters},
          {"recorded", groups},
          {"longest", p.longest},
          {"cycles", p.cycles},
          {"loop", p.loop ? to_json(*p.loop) : OrderedJson()},
          {"units", units},
          {"critical", p.critical},
          {"waves", waves},
          {"toggles_per_mfma",
           {{"a", per_mfma(p.toggles.a, p.toggles)},
            {"b", per_mfma(p.toggles.b, p.toggles)},
            {"c", per_mfma(p.toggles.c, p.toggles)}}},
          {"sensitivity", sensitivity},
          {"corners", p.corners ? to_json(*p.corners) : OrderedJson()},
          {"chip", to_json(p.chip)}};
}

OrderedJson to_json(const std::vector<ProfileParameter>& parameters) {
  OrderedJson list = OrderedJson::array();
  for (const ProfileParameter& p : parameters) {
    list.push_back({{"name", p.name},
                    {"value", p.value},
                    {"low", p.low},
                    {"high", p.high},
                    {"open", p.open},
                    {"unit", p.unit},
                    {"source", p.source},
                    {"meaning", p.meaning}});
  }
  return {{"parameters", list}};
}

void print_text(const LaunchProfile& p, SensitivityTable sensitivity) {
  fmt::print("kernel {}; every figure is predicted by the cycle model (docs/performance-model.md)\n", p.kernel);
  for (const std::string& parameter : p.parameters) {
    fmt::print("parameter {}\n", parameter);
  }
  fmt::print("recorded workgroups:");
  for (const ProfileGroup& g : p.groups) {
    fmt::print(" {} {} cycles{}", id_text(g.id), g.cycles, &g == &p.groups.back() ? "\n" : ",");
  }
  fmt::print("workgroup {}: {} cycles\n", id_text(p.longest), p.cycles);
  if (p.loop) {
    print_loop(*p.loop);
  } else {
    fmt::print("no loop of three trips or more\n");
  }
  fmt::print("busy share                   {}   whole run\n", p.loop ? "loop" : "    ");
  for (const ProfileUnit& u : p.units) {
    fmt::print("  {:<22} {:>9}   {:>8.1f}%\n", u.name, p.loop ? fmt::format("{:.1f}%", 100 * u.steady) : "",
               100 * u.whole);
  }
  fmt::print("critical: {}\n", p.critical);
  print_waves(p.waves);
  if (p.toggles.mfmas != 0) {
    fmt::print("operand bits that toggle, per MFMA: A {:.0f}, B {:.0f}, C {:.0f}\n", per_mfma(p.toggles.a, p.toggles),
               per_mfma(p.toggles.b, p.toggles), per_mfma(p.toggles.c, p.toggles));
  }
  if (p.corners) {
    print_corners(*p.corners);
  }
  print_chip(p.chip);
  if (sensitivity == SensitivityTable::kPrinted) {
    print_sensitivity(p.sensitivity);
  }
}

void print_text(const std::vector<ProfileParameter>& parameters) {
  for (const ProfileParameter& p : parameters) {
    fmt::print("{:<26} {:>6} ({} to {}, {}) {}: {} [{}]\n", p.name, p.value, p.low, p.high, p.open ? "open" : "settled",
               p.unit, p.meaning, p.source);
  }
}

}  // namespace zyfa::tools
