// Register allocation: exact live ranges (liveness.h), then first fit of aligned runs, lowest register first.
//
// Tuples are placed in order of their first definition. If that leaves no aligned run for one, other orders are tried:
// the longest-lived first, the widest first, and then, a few times, the tuple that did not fit moved to the front.
#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <tuple>

#include "jit/isa/op_info.h"
#include "jit/passes/cfg.h"
#include "jit/passes/liveness.h"
#include "jit/passes/passes.h"

namespace zyfa::jit {
namespace {

constexpr std::size_t kMaxRegisters = 256;
constexpr int kMaxRetries = 16;  // more hardly ever help, and each costs a whole placement

std::string_view bank_name(Bank bank) {
  switch (bank) {
    case Bank::kSgpr:
      return "SGPR";
    case Bank::kVgpr:
      return "VGPR";
    case Bank::kAgpr:
      return "AGPR";
    case Bank::kSpecial:
      return "special";
  }
  return "?";
}

struct Peak {
  std::uint32_t registers = 0, slot = 0;
};

class BankAllocator {
 public:
  BankAllocator(const Listing& listing, const Liveness& live, Bank bank, std::uint16_t limit)
      : listing_(listing), live_(live), bank_(bank), limit_(limit) {
    for (std::uint32_t id = 0; id < listing.regs.size(); ++id) {
      if (listing.regs.at(id).bank == bank && !live.ranges[id].empty()) tuples_.push_back(id);
    }
    find_peak();
  }

  // Physical first registers into `physical`, by tuple id.
  Status run(std::vector<std::int32_t>& physical) {
    if (Status s = place_pinned(); !s) return s;
    std::vector<std::uint32_t> order;
    std::optional<std::uint32_t> stuck;
    // Widest first is last, so that the retries start from it: it packs tightest when tuples of many widths mix.
    for (const auto& sorted : {by_start(), by_length(), by_width()}) {
      order = sorted;
      stuck = place(order);
      if (!stuck) break;
    }
    for (int retry = 0; stuck && peak_.registers <= limit_ && retry < kMaxRetries; ++retry) {
      const auto it = std::find(order.begin(), order.end(), *stuck);
      std::rotate(order.begin(), it, it + 1);
      stuck = place(order);
    }
    if (stuck) return does_not_fit(*stuck);
    for (const std::uint32_t id : tuples_) physical[id] = where_[id];
    return {};
  }

  [[nodiscard]] const Peak& peak() const { return peak_; }

 private:
  const RegTable::Tuple& tuple(std::uint32_t id) const { return listing_.regs.at(id); }
  std::uint32_t start(std::uint32_t id) const { return live_.ranges[id].front().begin; }
  std::uint32_t length(std::uint32_t id) const {
    std::uint32_t sum = 0;
    for (const Segment& s : live_.ranges[id]) sum += s.end - s.begin;
    return sum;
  }

  void find_peak() {
    std::vector<std::int32_t> delta(2 * listing_.code.size() + 2, 0);
    for (const std::uint32_t id : tuples_) {
      for (const Segment& s : live_.ranges[id]) {
        delta[s.begin] += tuple(id).count;
        delta[s.end] -= tuple(id).count;
      }
    }
    std::int32_t now = 0;
    for (std::uint32_t slot = 0; slot < delta.size(); ++slot) {
      now += delta[slot];
      if (now > static_cast<std::int32_t>(peak_.registers)) peak_ = {static_cast<std::uint32_t>(now), slot};
    }
  }

  std::vector<std::uint32_t> unpinned() const {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t id : tuples_) {
      if (tuple(id).pinned < 0) out.push_back(id);
    }
    return out;
  }
  // Sorted by `key`, smallest first; equal ones in order of definition, then of creation.
  template <typename Key>
  std::vector<std::uint32_t> sorted_by(std::vector<std::uint32_t> ids, Key key) const {
    std::sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(key(a), start(a), a) < std::tuple(key(b), start(b), b);
    });
    return ids;
  }
  std::vector<std::uint32_t> by_start() const {
    return sorted_by(unpinned(), [](std::uint32_t) { return 0; });
  }
  std::vector<std::uint32_t> by_width() const {
    return sorted_by(unpinned(), [this](std::uint32_t id) { return -tuple(id).count; });
  }
  std::vector<std::uint32_t> by_length() const {
    return sorted_by(unpinned(), [this](std::uint32_t id) { return -static_cast<std::int64_t>(length(id)); });
  }

  Status place_pinned() {
    for (const std::uint32_t id : tuples_) {
      const RegTable::Tuple& t = tuple(id);
      if (t.pinned < 0) continue;
      if (t.pinned % t.align != 0 || t.pinned + t.count > limit_) {
        return make_error(ErrorCode::kCompileError, "tuple '" + t.name + "' is pinned to " + place_text(t.pinned, t) +
                                                        "; it must start at a multiple of " + std::to_string(t.align) +
                                                        " and end below " + std::to_string(limit_));
      }
      for (const std::uint32_t other : pinned_) {
        const RegTable::Tuple& o = tuple(other);
        const bool apart = t.pinned + t.count <= o.pinned || o.pinned + o.count <= t.pinned;
        if (apart || !intersect(live_.ranges[id], live_.ranges[other])) continue;
        return make_error(ErrorCode::kCompileError, "tuples '" + o.name + "' and '" + t.name + "' are pinned to " +
                                                        place_text(o.pinned, o) + " and " + place_text(t.pinned, t) +
                                                        " and live at the same time");
      }
      pinned_.push_back(id);
    }
    return {};
  }

  static std::string place_text(std::int32_t first, const RegTable::Tuple& t) {
    return to_string(Reg{t.bank, false, t.count, 0, static_cast<std::uint32_t>(first)});
  }

  // Places all in this order; the first tuple that found no room, if any.
  std::optional<std::uint32_t> place(const std::vector<std::uint32_t>& order) {
    where_.assign(listing_.regs.size(), -1);
    placed_.clear();
    for (const std::uint32_t id : pinned_) {
      where_[id] = tuple(id).pinned;
      placed_.push_back(id);
    }
    for (const std::uint32_t id : order) {
      std::bitset<kMaxRegisters> busy;
      for (const std::uint32_t other : placed_) {
        if (!intersect(live_.ranges[id], live_.ranges[other])) continue;
        for (int r = where_[other]; r < where_[other] + tuple(other).count; ++r) busy.set(static_cast<std::size_t>(r));
      }
      where_[id] = first_fit(busy, tuple(id));
      if (where_[id] < 0) return id;
      placed_.push_back(id);
    }
    return std::nullopt;
  }

  std::int32_t first_fit(const std::bitset<kMaxRegisters>& busy, const RegTable::Tuple& t) const {
    for (std::int32_t first = 0; first + t.count <= limit_; first += t.align) {
      std::int32_t run = 0;
      while (run < t.count && !busy.test(static_cast<std::size_t>(first + run))) ++run;
      if (run == t.count) return first;
      first += run / t.align * t.align;  // continue behind the obstacle
    }
    return -1;
  }

  std::string describe(std::uint32_t id) const {
    const LiveRange& range = live_.ranges[id];
    const std::string origin = to_string(listing_.code[live_.first_mentions[id]].origin);
    return tuple(id).name + ": " + std::to_string(tuple(id).count) + " registers, live in instructions " +
           std::to_string(range.front().begin / 2) + ".." + std::to_string((range.back().end - 1) / 2) +
           (origin.empty() ? "" : ", first in " + origin);
  }

  Status does_not_fit(std::uint32_t stuck) const {
    const std::string bank(bank_name(bank_));
    std::string message = "the listing does not fit in " + std::to_string(limit_) + " " + bank + "s: peak demand " +
                          std::to_string(peak_.registers) + " at instruction " + std::to_string(peak_.slot / 2);
    if (peak_.registers <= limit_) {
      message += ", but no aligned run of " + std::to_string(tuple(stuck).count) + " was left for '" +
                 tuple(stuck).name + "'; use fewer or narrower tuples that live across it";
    } else {
      message += "; let fewer tuples live at once";
    }
    std::vector<std::uint32_t> alive;
    const LiveRange at_peak = {{peak_.slot, peak_.slot + 1}};
    for (const std::uint32_t id : tuples_) {
      if (intersect(live_.ranges[id], at_peak)) alive.push_back(id);
    }
    alive = sorted_by(alive, [this](std::uint32_t id) { return -tuple(id).count; });
    std::vector<std::string> details = {"alive at instruction " + std::to_string(peak_.slot / 2) + " `" +
                                        print(listing_.code[peak_.slot / 2], listing_.regs) + "`:"};
    for (const std::uint32_t id : alive) details.push_back(describe(id));
    return make_error(ErrorCode::kScheduleError, std::move(message), std::move(details));
  }

  const Listing& listing_;
  const Liveness& live_;
  Bank bank_;
  std::uint16_t limit_;
  std::vector<std::uint32_t> tuples_, pinned_, placed_;
  std::vector<std::int32_t> where_;
  Peak peak_;
};

// A physical register beside virtual ones would be invisible to the live ranges.
Status refuse_physical(const Listing& listing) {
  for (const Instruction& instruction : listing.code) {
    for (const Operand& operand : instruction.operands) {
      const Reg* reg = std::get_if<Reg>(&operand);
      if (reg == nullptr || reg->is_virtual || reg->count == 0 || reg->bank == Bank::kSpecial) continue;
      return make_error(ErrorCode::kCompileError, "`" + print(instruction, listing.regs) + "` names the register " +
                                                      to_string(*reg) + " itself; use a tuple pinned to it");
    }
  }
  return {};
}

void rewrite(Listing& listing, const std::vector<std::int32_t>& physical) {
  for (Instruction& instruction : listing.code) {
    for (Operand& operand : instruction.operands) {
      Reg* reg = std::get_if<Reg>(&operand);
      if (reg == nullptr || !reg->is_virtual || reg->count == 0) continue;
      *reg = {reg->bank, false, reg->count, 0, static_cast<std::uint32_t>(physical[reg->id]) + reg->first};
    }
  }
}

RegisterMap make_map(const Listing& listing, const Liveness& live, const std::vector<std::int32_t>& physical) {
  RegisterMap map;
  for (std::uint32_t id = 0; id < listing.regs.size(); ++id) {
    if (physical[id] < 0) continue;
    const RegTable::Tuple& t = listing.regs.at(id);
    const LiveRange& range = live.ranges[id];
    map.rows.push_back({t.name, t.bank, static_cast<std::uint16_t>(physical[id]), t.count, range.front().begin / 2,
                        (range.back().end - 1) / 2});
    std::uint16_t& used = t.bank == Bank::kVgpr   ? map.vgprs_used
                          : t.bank == Bank::kAgpr ? map.agprs_used
                                                  : map.sgprs_used;
    used = std::max(used, static_cast<std::uint16_t>(physical[id] + t.count));
  }
  std::sort(map.rows.begin(), map.rows.end(), [](const RegisterMapRow& a, const RegisterMapRow& b) {
    return std::tuple(a.bank, a.physical, a.first_live) < std::tuple(b.bank, b.physical, b.first_live);
  });
  return map;
}

}  // namespace

Expected<RegisterMap> allocate(Listing& listing, const RegisterLimits& limits) {
  if (Status s = refuse_physical(listing); !s) return tl::unexpected(s.error());
  const auto cfg = build_cfg(listing);
  if (!cfg) return tl::unexpected(cfg.error());
  const auto live = analyse_liveness(listing, *cfg);
  if (!live) return tl::unexpected(live.error());
  std::vector<std::int32_t> physical(listing.regs.size(), -1);
  std::array<Peak, 3> peaks;
  const std::array<std::pair<Bank, std::uint16_t>, 3> banks = {
      {{Bank::kSgpr, limits.sgprs}, {Bank::kVgpr, limits.vgprs}, {Bank::kAgpr, limits.agprs}}};
  for (std::size_t b = 0; b < banks.size(); ++b) {
    if (banks[b].second > kMaxRegisters) {
      return make_error(ErrorCode::kInvalidArgument, "a limit of " + std::to_string(banks[b].second) + " " +
                                                         std::string(bank_name(banks[b].first)) +
                                                         "s; a wave has at most 256");
    }
    BankAllocator allocator(listing, *live, banks[b].first, banks[b].second);
    if (Status s = allocator.run(physical); !s) return tl::unexpected(s.error());
    peaks[b] = allocator.peak();
  }
  rewrite(listing, physical);
  RegisterMap map = make_map(listing, *live, physical);
  map.sgpr_peak = static_cast<std::uint16_t>(peaks[0].registers);
  map.vgpr_peak = static_cast<std::uint16_t>(peaks[1].registers);
  map.agpr_peak = static_cast<std::uint16_t>(peaks[2].registers);
  map.vgpr_peak_at = peaks[1].slot / 2;
  return map;
}

std::string RegisterMap::to_text() const {
  const auto pad = [](std::string s, std::size_t width) {
    if (s.size() < width) s.append(width - s.size(), ' ');
    return s;
  };
  std::size_t width = 4;
  for (const RegisterMapRow& row : rows) width = std::max(width, row.name.size());
  std::string out = pad("registers", 12) + pad("tuple", width + 2) + "live\n";
  for (const RegisterMapRow& row : rows) {
    out += pad(to_string(Reg{row.bank, false, row.count, 0, row.physical}), 12) + pad(row.name, width + 2) +
           std::to_string(row.first_live) + ".." + std::to_string(row.last_live) + "\n";
  }
  const auto total = [](std::string_view bank, std::uint32_t used, std::uint32_t peak) {
    return std::string(bank) + ": " + std::to_string(used) + " used, peak demand " + std::to_string(peak);
  };
  return out + total("VGPRs", vgprs_used, vgpr_peak) + " at instruction " + std::to_string(vgpr_peak_at) + "\n" +
         total("AGPRs", agprs_used, agpr_peak) + "\n" + total("SGPRs", sgprs_used, sgpr_peak) + "\n";
}

}  // namespace zyfa::jit
