// Checks that every register is written before it is read.
//
// A register that no path writes is a fault in any code. One that some path leaves unwritten is a fault in code of
// zyfa, whose allocator asks for a definition on every path (such an object carries a listing); compilers rely on
// branches that agree (`if (c) x = ..; ..; if (c) use(x)`), so in other objects it is only noted. The kernel's initial
// state is gfx950-isa.md 5.2. Where s_cbranch_execz jumps over code, that code would have run with no lane active, so
// its vector definitions count as made: nothing later can see the difference.
#include <algorithm>

#include "jit/verify/program.h"
#include "jit/verify/text.h"

namespace zyfa::jit::verify {
namespace {

constexpr RegSpan kAllVectors{kVgprBase, 512};

// Instructions that write a part of their destination and so keep, rather than use, what it held.
bool keeps_destination(const Decoded& d) {
  const std::string_view m = d.mnemonic;
  return d.facts.dest_half_select || d.facts.is_dpp || d.facts.is_sdwa || m.starts_with("v_writelane") ||
         m.starts_with("v_cvt_pk_fp8") || m.starts_with("v_cvt_pk_bf8") || m.starts_with("v_cvt_sr_") ||
         m.starts_with("v_cvt_scalef32_") || m.find("d16") != std::string_view::npos || m.starts_with("v_fma_mixlo") ||
         m.starts_with("v_fma_mixhi") || m.starts_with("v_ashr_pk_");
}

// Bit i of a modifier list such as op_sel_hi:[1,0].
bool list_bit(std::string_view text, std::string_view name, std::size_t i, bool otherwise) {
  const std::size_t at = text.find(std::string(" ") + std::string(name) + ":[");
  if (at == std::string_view::npos) return otherwise;
  const std::size_t digit = at + name.size() + 3 + 2 * i;
  return digit < text.size() && text[digit] == '1';
}

// A packed instruction on register pairs reads of each source only the dwords that op_sel (for the low result) and
// op_sel_hi (for the high one) choose (gfx950-isa.md section 2).
std::vector<RegSpan> packed_reads(const Decoded& d) {
  std::vector<RegSpan> reads;
  const auto operands = operands_of(d.text);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const auto source = parse_register(operands[i]);
    if (!source) continue;
    const bool low = list_bit(d.text, "op_sel", i - 1, false), high = list_bit(d.text, "op_sel_hi", i - 1, true);
    if (source->count == 2 && low == high) {
      reads.push_back({static_cast<std::uint16_t>(source->first + low), 1});
    } else {
      reads.push_back(*source);
    }
  }
  return reads;
}

bool is_packed_pair(std::string_view m) {
  return m == "v_pk_add_f32" || m == "v_pk_mul_f32" || m == "v_pk_fma_f32" || m == "v_pk_mov_b32";
}

class DefinitionChecker {
 public:
  DefinitionChecker(const Program& program, Reporter& reporter)
      : program_(program), reporter_(reporter), strict_(!program.object->listing.empty()) {}

  void run() {
    solve(must_, Meet::kEveryPath);
    solve(may_, Meet::kAnyPath);
    for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
      RegSet must = must_[b], may = may_[b];
      for (std::uint32_t i = program_.blocks[b].begin; i < program_.blocks[b].end; ++i) {
        inspect(must, may, i);
        for (RegSpan w : program_.writes(program_.nodes[i])) {
          must.add(w);
          may.add(w);
        }
      }
    }
    if (partial_ != 0) {
      reporter_.note(std::to_string(partial_) +
                     " reads of registers that some path does not write, right only if branches agree; the first: " +
                     first_partial_);
    }
  }

 private:
  enum class Meet : std::uint8_t { kEveryPath, kAnyPath };

  [[nodiscard]] RegSet initial() const {
    const KernelImage& k = *program_.kernel;
    const auto bit = [&](unsigned n) { return (k.rsrc2 >> n) & 1; };
    const std::uint32_t user = (k.rsrc2 >> 1) & 0x1f;
    const std::uint32_t scalars = user + bit(7) + bit(8) + bit(9) + bit(10);
    RegSet set;
    set.add({kSgprBase, static_cast<std::uint16_t>(scalars)});
    set.add({kVgprBase, 1});
    set.add({flat_special(Special::kExec), 1});
    set.add({flat_special(Special::kMode), 1});
    // Flat scratch, XNACK mask and trap registers have no producer in the program.
    set.add({kSgprBase + 102, 26});
    set.add({kSpecialBase + 5, 3});
    return set;
  }

  void solve(std::vector<RegSet>& in, Meet meet) {
    in.assign(program_.blocks.size(), RegSet{});
    if (meet == Meet::kEveryPath)
      for (RegSet& s : in) s.fill();
    std::vector<std::uint8_t> entry(program_.blocks.size());
    for (std::uint32_t e : program_.entries) {
      entry[e] = 1;
      in[e] = initial();
    }
    std::vector<RegSet> generated(program_.blocks.size());
    for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
      for (std::uint32_t i = program_.blocks[b].begin; i < program_.blocks[b].end; ++i)
        for (RegSpan w : program_.writes(program_.nodes[i])) generated[b].add(w);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t b : program_.order) {
        RegSet out = in[b];
        out.unite(generated[b]);
        for (const Successor& s : program_.blocks[b].successors) {
          RegSet along = out;
          if (s.edge == Edge::kExecEmpty && meet == Meet::kEveryPath) along.add(kAllVectors);
          const bool moved = meet == Meet::kEveryPath ? in[s.block].intersect(along) : in[s.block].unite(along);
          changed |= moved;
        }
      }
    }
  }

  void inspect(const RegSet& must, const RegSet& may, std::uint32_t i) {
    const Node& node = program_.nodes[i];
    const auto reads = program_.reads(node);
    if (std::all_of(reads.begin(), reads.end(), [&](RegSpan r) { return must.all(r); })) return;
    if (is_packed_pair(node.inst->mnemonic)) {
      const auto packed = packed_reads(*node.inst);
      report(must, may, i, packed);
    } else {
      report(must, may, i, reads);
    }
  }

  void report(const RegSet& must, const RegSet& may, std::uint32_t i, std::span<const RegSpan> reads) {
    const Node& node = program_.nodes[i];
    for (RegSpan r : reads) {
      if (must.all(r) || is_kept(node, r)) continue;
      const bool never = !may.all(r);
      const RegSpan bad = first_missing(never ? may : must, r);
      const std::string what = "reads " + span_name(bad) + (r == bad ? "" : " (of " + span_name(r) + ")");
      if (never) {
        reporter_.at(FindingKind::kUninitialised, *node.inst, i,
                     what + ", which no path from the entry writes; a definition before this instruction is required");
      } else if (strict_) {
        reporter_.at(FindingKind::kUninitialised, *node.inst, i,
                     what + ", which is not written on every path from the entry; a definition on each is required");
      } else if (partial_++ == 0) {
        first_partial_ = cite(program_, node) + " " + what;
      }
    }
  }

  [[nodiscard]] bool is_kept(const Node& node, RegSpan read) const {
    if (!keeps_destination(*node.inst)) return false;
    for (RegSpan w : program_.writes(node)) {
      if (!(w == read)) continue;
      // The same register may also be a real source.
      const auto operands = operands_of(node.inst->text);
      for (std::size_t i = 1; i < operands.size(); ++i) {
        const auto source = parse_register(operands[i]);
        if (source && source->overlaps(read)) return false;
      }
      return true;
    }
    return false;
  }

  static RegSpan first_missing(const RegSet& set, RegSpan r) {
    std::uint16_t begin = r.first;
    const auto end = static_cast<std::uint16_t>(r.first + r.count);
    while (begin < end && set.any({begin, 1})) ++begin;
    std::uint16_t stop = begin;
    while (stop < end && !set.any({stop, 1})) ++stop;
    return {begin, static_cast<std::uint16_t>(stop - begin)};
  }

  const Program& program_;
  Reporter& reporter_;
  const bool strict_;
  std::size_t partial_ = 0;  // reads that only some path leaves undefined, when not strict
  std::string first_partial_;
  std::vector<RegSet> must_, may_;
};

}  // namespace

void check_definitions(const Program& program, Reporter& reporter) { DefinitionChecker(program, reporter).run(); }

}  // namespace zyfa::jit::verify
