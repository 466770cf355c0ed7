#include "tools/inspector.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace zyfa::tools {
namespace {

constexpr unsigned kLanes = 64, kPerLine = 8, kBytesPerLine = 16;
constexpr std::uint32_t kVcc = 106, kM0 = 124, kExec = 126, kLastVector = 511, kLastScalar = 127;

std::optional<std::uint64_t> number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// "A" or "A-B".
std::optional<DumpItem> range(char bank, std::string_view text, std::uint64_t limit) {
  const auto dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (!first || !last || *last < *first || *last > limit) {
    return std::nullopt;
  }
  return DumpItem{bank, static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last)};
}

std::optional<DumpItem> dump_item(std::string_view text) {
  constexpr std::string_view kLds = "lds:";
  constexpr std::uint32_t kLdsBytes = 163840;
  if (text.starts_with(kLds)) {
    return range('l', text.substr(kLds.size()), kLdsBytes - 1);
  }
  if (text == "vcc") {
    return DumpItem{'s', kVcc, kVcc + 1};
  }
  if (text == "exec") {
    return DumpItem{'s', kExec, kExec + 1};
  }
  if (text == "m0") {
    return DumpItem{'s', kM0, kM0};
  }
  if (text.empty() || (text.front() != 'v' && text.front() != 'a' && text.front() != 's')) {
    return std::nullopt;
  }
  return range(text.front(), text.substr(1), text.front() == 's' ? kLastScalar : kLastVector);
}

std::optional<std::uint32_t> value_of(const SimWaveView& wave, char bank, unsigned index, unsigned lane) {
  return bank == 'v' ? wave.vgpr(index, lane) : bank == 'a' ? wave.agpr(index, lane) : wave.sgpr(index);
}

// What an instruction left in its destinations: scalars whole, vectors in their first active lane.
std::string results(const SimStep& step, const SimWaveView& wave) {
  const auto lane = wave.exec() != 0 ? static_cast<unsigned>(std::countr_zero(wave.exec())) : 0U;
  std::string text;
  for (const SimRegisters& r : step.writes) {
    constexpr unsigned kShown = 4;
    for (unsigned i = 0; i < std::min<unsigned>(r.count, kShown); ++i) {
      const auto value = value_of(wave, r.bank, r.first + i, lane);
      text += fmt::format("  {}{}={:08x}", r.bank, r.first + i, value.value_or(0));
    }
    text += r.count > kShown ? " ..." : "";
    text += r.bank != 's' ? fmt::format(" (lane {})", lane) : "";
  }
  return step.result == SimStep::Result::kInFlight && !text.empty() ? text + " (load in flight)" : text;
}

std::string place(const SimStep& step) {
  return fmt::format("+0x{:x} `{}`, workgroup ({}, {}, {}), wave {}, instruction {}", step.offset, step.instruction,
                     step.workgroup[0], step.workgroup[1], step.workgroup[2], step.wave, step.number);
}

OrderedJson dump_json(const SimWaveView& wave, const DumpItem& item) {
  OrderedJson values = OrderedJson::array();
  if (item.bank == 'l') {
    const auto lds = wave.lds();
    for (std::uint32_t i = item.first; i <= item.last && i < lds.size(); ++i) {
      values.push_back(static_cast<unsigned>(lds[i]));
    }
    return values;
  }
  for (std::uint32_t i = item.first; i <= item.last; ++i) {
    if (item.bank == 's') {
      values.push_back(wave.sgpr(i).value_or(0));
      continue;
    }
    OrderedJson lanes = OrderedJson::array();
    for (unsigned l = 0; l < kLanes && value_of(wave, item.bank, i, l); ++l) {
      lanes.push_back(*value_of(wave, item.bank, i, l));
    }
    values.push_back(std::move(lanes));
  }
  return values;
}

std::string item_name(const DumpItem& item) {
  return item.bank == 'l' ? fmt::format("lds:0x{:x}-0x{:x}", item.first, item.last)
                          : fmt::format("{}{}-{}", item.bank, item.first, item.last);
}

}  // namespace

Expected<std::vector<DumpItem>> parse_dump(std::string_view list) {
  std::vector<DumpItem> items;
  for (bool more = true; more;) {
    const auto comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    const auto item = dump_item(part);
    if (!item) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("--dump '{}': v0-15, a0, s0-7, vcc, exec, m0 and lds:0x100-0x13f are allowed, "
                                    "registers up to v511, a511, s127, LDS up to 0x27fff",
                                    part));
    }
    items.push_back(*item);
    more = comma != std::string_view::npos;
    list.remove_prefix(more ? comma + 1 : list.size());
  }
  return items;
}

void add_inspect_options(CLI::App& command, InspectOptions& options) {
  constexpr const char* kGroup = "Inspection";
  command
      .add_option("--trace", options.trace_wave, "Print every instruction that this wave executes, with its results")
      ->group(kGroup);
  command.add_option("--trace-file", options.trace_file, "Write the trace to this file instead of stdout")
      ->group(kGroup);
  command
      .add_option(
          "--break", options.break_offset,
          "Stop before the instruction at this offset from the kernel's entry (0x... or decimal), and print what "
          "--dump asks for")
      ->group(kGroup);
  command.add_option("--dump", options.dump, "Registers and LDS to print, e.g. v0-15,a0,s0-7,vcc,lds:0x100-0x13f")
      ->group(kGroup);
  command.add_option("--break-wave", options.break_wave, "Stop this wave only. Default: whichever comes first")
      ->group(kGroup);
  command.add_option("--hits", options.hits, "Stop the run at the N-th time; the earlier ones are printed too")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--workgroup", options.workgroup, "Workgroup X,Y,Z that --trace and --break look at")
      ->delimiter(',')
      ->expected(3)
      ->group(kGroup);
}

Inspector::~Inspector() {
  if (trace_ != nullptr && trace_ != stdout) {
    static_cast<void>(std::fclose(trace_));
  }
}

Status Inspector::attach(const InspectOptions& options, OutputForm form, SimOptions& simulator) {
  form_ = form;
  const std::array<std::uint32_t, 3> workgroup{options.workgroup[0], options.workgroup[1], options.workgroup[2]};
  if (!options.break_offset && options.dump) {
    return make_error(ErrorCode::kInvalidArgument, "--dump " + *options.dump + " needs --break OFFSET");
  }
  if (!options.break_offset && (options.break_wave || options.hits != InspectOptions{}.hits)) {
    return make_error(ErrorCode::kInvalidArgument, "--break-wave and --hits need --break OFFSET");
  }
  if (!options.break_offset && !options.trace_wave && options.workgroup != InspectOptions{}.workgroup) {
    return make_error(ErrorCode::kInvalidArgument, "--workgroup needs --trace WAVE or --break OFFSET");
  }
  if (!options.trace_wave && options.trace_file) {
    return make_error(ErrorCode::kInvalidArgument, "--trace-file " + *options.trace_file + " needs --trace WAVE");
  }
  if (options.trace_wave) {
    if (form == OutputForm::kJson && !options.trace_file) {
      return make_error(ErrorCode::kInvalidArgument, "--trace with --json needs --trace-file FILE");
    }
    trace_ = !options.trace_file ? stdout : std::fopen(options.trace_file->c_str(), "w");
    if (trace_ == nullptr) {
      return make_error(ErrorCode::kIoError,
                        fmt::format("cannot write '{}': {}", *options.trace_file, std::strerror(errno)));
    }
    tracing_ = true;
    SimWatch watch{
        .moment = SimMoment::kAfter, .workgroup = workgroup, .wave = options.trace_wave, .offset = {}, .call = {}};
    watch.call = [this](const SimStep& step, const SimWaveView& wave) {
      ++traced_;
      fmt::print(trace_, "{:>8} +0x{:05x} exec={:016x} scc={}  {:<52}{}\n", step.number, step.offset, wave.exec(),
                 wave.scc(), step.instruction, results(step, wave));
      return SimAction::kContinue;
    };
    simulator.watches.push_back(std::move(watch));
  }
  if (!options.break_offset) {
    return {};
  }
  offset_ = number(*options.break_offset);
  if (!offset_) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--break '" + *options.break_offset + "': an offset in bytes, 0x... or decimal, is allowed");
  }
  Expected<std::vector<DumpItem>> dump = options.dump ? parse_dump(*options.dump) : std::vector<DumpItem>{};
  if (!dump) {
    return tl::unexpected<Error>(dump.error());
  }
  dump_ = *std::move(dump);
  hits_left_ = options.hits;
  SimWatch watch{
      .moment = SimMoment::kBefore, .workgroup = workgroup, .wave = options.break_wave, .offset = offset_, .call = {}};
  watch.call = [this](const SimStep& step, const SimWaveView& wave) { return hit(step, wave); };
  simulator.watches.push_back(std::move(watch));
  return {};
}

SimAction Inspector::hit(const SimStep& step, const SimWaveView& wave) {
  ++hits_;
  --hits_left_;
  if (form_ == OutputForm::kJson) {
    OrderedJson entry{{"offset", step.offset},
                      {"instruction", step.instruction},
                      {"workgroup", step.workgroup},
                      {"wave", step.wave},
                      {"number", step.number},
                      {"exec", wave.exec()},
                      {"vcc", wave.vcc()},
                      {"scc", wave.scc()},
                      {"m0", wave.m0()},
                      {"mode", wave.mode()},
                      {"dump", OrderedJson::object()}};
    for (const DumpItem& item : dump_) {
      entry["dump"][item_name(item)] = dump_json(wave, item);
    }
    breaks_.push_back(std::move(entry));
  } else {
    fmt::print("break at {}\n  exec={:016x} vcc={:016x} scc={} m0={:08x} mode={:08x}\n", place(step), wave.exec(),
               wave.vcc(), wave.scc(), wave.m0(), wave.mode());
    for (const DumpItem& item : dump_) {
      print_dump(wave, item);
    }
  }
  return hits_left_ == 0 ? SimAction::kStop : SimAction::kContinue;
}

void Inspector::print_dump(const SimWaveView& wave, const DumpItem& item) const {
  if (item.bank == 'l') {
    const auto lds = wave.lds();
    for (std::uint32_t at = item.first; at <= item.last; at += kBytesPerLine) {
      fmt::print("  lds:0x{:05x} ", at);
      for (std::uint32_t i = at; i <= std::min(item.last, at + kBytesPerLine - 1); ++i) {
        fmt::print(" {}", i < lds.size() ? fmt::format("{:02x}", static_cast<unsigned>(lds[i])) : "--");
      }
      fmt::print("\n");
    }
    return;
  }
  for (std::uint32_t i = item.first; i <= item.last; ++i) {
    const std::string name = fmt::format("{}{}", item.bank, i);
    if (!value_of(wave, item.bank, i, 0)) {
      fmt::print("  {:<5} the kernel has no such register\n", name);
    } else if (item.bank == 's') {
      fmt::print("  {:<5} {:08x}\n", name, *wave.sgpr(i));
    } else {
      for (unsigned lane = 0; lane < kLanes; lane += kPerLine) {
        fmt::print("  {:<5} lane {:>2}:", lane == 0 ? name : "", lane);
        for (unsigned l = lane; l < lane + kPerLine; ++l) {
          fmt::print(" {:08x}", *value_of(wave, item.bank, i, l));
        }
        fmt::print("\n");
      }
    }
  }
}

Status Inspector::outcome() {
  if (trace_ != nullptr) {
    const bool lost = std::ferror(trace_) != 0 || std::fflush(trace_) != 0;
    if (lost) {
      return make_error(ErrorCode::kIoError, fmt::format("cannot write the trace: {}", std::strerror(errno)));
    }
  }
  if (hits_left_ != 0 && hits_ != 0) {
    return make_error(ErrorCode::kNotFound, fmt::format("the breakpoint at +0x{:x} was reached {} of {} times",
                                                        *offset_, hits_, hits_ + hits_left_));
  }
  if (offset_ && hits_ == 0) {
    return make_error(ErrorCode::kNotFound,
                      fmt::format("the breakpoint at +0x{:x} was never reached by a wave of that workgroup", *offset_));
  }
  if (tracing_ && traced_ == 0) {
    return make_error(ErrorCode::kNotFound, "the launch has no such wave to trace");
  }
  return {};
}

}  // namespace zyfa::tools
