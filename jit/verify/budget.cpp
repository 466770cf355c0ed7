// Register use against the allocation, operand rules of gfx950-isa.md 1.2, and what descriptor and metadata declare.
#include <algorithm>

#include "jit/verify/text.h"

namespace zyfa::jit::verify {
namespace {

constexpr std::uint32_t kLdsBytes = 163840;    // gfx950-isa.md 3.3
constexpr std::uint32_t kMaxSgpr = 102;        // s0..s101
constexpr std::uint32_t kSimdRegisters = 512;  // gfx950-isa.md 5.4
constexpr std::uint32_t kCodeAlignment = 256;  // 5.1

std::uint32_t allocated_sgprs(const KernelImage& k) { return (((k.rsrc1 >> 6) & 0xf) + 1) * 8; }
std::uint32_t allocated_agprs(const KernelImage& k) {
  return k.total_vgprs() > k.accum_offset() ? k.total_vgprs() - k.accum_offset() : 0;
}

std::string number(std::uint64_t n) { return std::to_string(n); }

class BudgetChecker {
 public:
  BudgetChecker(const Program& program, Reporter& reporter, VerifyReport& report)
      : program_(program), kernel_(*program.kernel), reporter_(reporter), report_(report) {}

  void run() {
    for (const Block& block : program_.blocks)
      for (std::uint32_t i = block.begin; i < block.end; ++i) inspect(i);
    metadata();
  }

 private:
  void inspect(std::uint32_t i) {
    const InstFacts& facts = program_.nodes[i].inst->facts;
    for (const auto* list : {&facts.reads, &facts.writes}) {
      for (const RegRange& r : *list) {
        const std::uint32_t end = std::uint32_t{r.first} + r.count;
        if (r.count == 0) continue;
        if (r.bank == Bank::kVgpr)
          use(i, r, end, report_.vgprs, kernel_.accum_offset(), "architectural VGPRs (accum_offset)");
        if (r.bank == Bank::kAgpr) use(i, r, end, report_.agprs, allocated_agprs(kernel_), "AGPRs");
        // s102 and up are hardware registers, not part of the allocation.
        if (r.bank == Bank::kSgpr && end <= kMaxSgpr)
          use(i, r, end, report_.sgprs, std::min(kMaxSgpr, allocated_sgprs(kernel_)), "SGPRs");
      }
    }
  }

  void use(std::uint32_t i, const RegRange& r, std::uint32_t end, std::uint32_t& highest, std::uint32_t limit,
           const char* what) {
    highest = std::max(highest, end);
    if (end <= limit) return;
    reporter_.at(FindingKind::kRegisterBudget, *program_.nodes[i].inst, i,
                 "uses " + span_name(flat(r)) + ", but the descriptor allocates " + number(limit) + " " + what);
  }

  void metadata() {
    const KernelImage& k = kernel_;
    if (!k.has_metadata) return;
    const auto below = [&](std::uint32_t declared, std::uint32_t used, const char* what) {
      if (declared != 0 && declared < used) {
        reporter_.about(FindingKind::kDescriptor, "the metadata declares " + number(declared) + " " + what +
                                                      ", the code uses " + number(used) + " of them");
      }
    };
    below(k.sgprs, report_.sgprs, "SGPRs");
    below(k.vgprs, report_.vgprs, "VGPRs");
    if (report_.agprs > k.agprs) {
      reporter_.about(FindingKind::kDescriptor, "the metadata declares " + number(k.agprs) + " AGPRs, the code uses " +
                                                    number(report_.agprs) + " of them");
    }
  }

  const Program& program_;
  const KernelImage& kernel_;
  Reporter& reporter_;
  VerifyReport& report_;
};

class OperandChecker {
 public:
  OperandChecker(const Program& program, Reporter& reporter) : program_(program), reporter_(reporter) {}

  void run() {
    for (const Block& block : program_.blocks) {
      for (std::uint32_t i = block.begin; i < block.end; ++i) {
        alignment(i);
        overlap(i);
        scratch(i);
      }
    }
  }

 private:
  [[nodiscard]] const Decoded& inst(std::uint32_t i) const { return *program_.nodes[i].inst; }

  // Vector tuples are even-aligned but for ds_read_b96_tr_b6 (gfx950-isa.md 3.3).
  void alignment(std::uint32_t i) {
    if (inst(i).mnemonic == "ds_read_b96_tr_b6") return;
    const Node& n = program_.nodes[i];
    for (const auto list : {program_.reads(n), program_.writes(n)}) {
      for (RegSpan s : list) {
        if (is_vector(s) && s.count >= 2 && s.first % 2 != 0) {
          reporter_.at(FindingKind::kAlignment, inst(i), i,
                       span_name(s) + " starts at an odd register; tuples of two or more must start at an even one");
        }
      }
    }
  }

  void overlap(std::uint32_t i) {
    const InstFacts& f = inst(i).facts;
    const RegSpan d = flat(f.mfma_d);
    if (d.count == 0) return;
    const auto clash = [&](const RegRange& range, const char* role) {
      const RegSpan s = flat(range);
      if (s.count == 0 || !s.overlaps(d)) return;
      const std::string text = "D " + span_name(d) + " overlaps " + role + " " + span_name(s);
      // LLVM marks only results wider than four registers as early-clobber, so smaller ones occur in compiled code.
      if (d.count > 4) {
        reporter_.at(FindingKind::kAlignment, inst(i), i, text + "; they must be disjoint");
      } else {
        reporter_.note(cite(program_, program_.nodes[i]) + ": " + text);
      }
    };
    clash(f.mfma_a, "A");
    clash(f.mfma_b, "B");
    const RegSpan c = flat(f.mfma_c);
    if (c.count == 0) return;
    if ((c.first < kAgprBase) != (d.first < kAgprBase)) {
      reporter_.at(FindingKind::kAlignment, inst(i), i,
                   "C " + span_name(c) + " and D " + span_name(d) + " lie in different banks; one bank is required");
    }
    if (!(c == d)) clash(f.mfma_c, "C");
  }

  void scratch(std::uint32_t i) {
    if (inst(i).mnemonic.starts_with("scratch_"))
      reporter_.at(FindingKind::kScratch, inst(i), i, "accesses scratch memory; zyfa kernels must use none");
  }

  const Program& program_;
  Reporter& reporter_;
};

class DeclarationChecker {
 public:
  DeclarationChecker(const CodeObject& object, const KernelImage& kernel, Reporter& reporter)
      : object_(object), k_(kernel), reporter_(reporter) {}

  void run() {
    lds();
    scratch();
    registers();
    user_sgprs();
    placement();
    if (k_.has_metadata) metadata();
  }

 private:
  void say(FindingKind kind, std::string text) { reporter_.about(kind, std::move(text)); }

  void lds() {
    if (k_.descriptor_lds > kLdsBytes) {
      say(FindingKind::kLdsBudget, "the descriptor declares " + number(k_.descriptor_lds) + " bytes of LDS; at most " +
                                       number(kLdsBytes) + " are allowed");
    }
    if (k_.has_metadata && k_.descriptor_lds != k_.group_bytes) {
      say(FindingKind::kLdsBudget, "the descriptor declares " + number(k_.descriptor_lds) +
                                       " bytes of LDS, the metadata " + number(k_.group_bytes) + "; they must agree");
    }
  }

  void scratch() {
    constexpr std::uint16_t kDynamicStack = 1u << 11;
    if (k_.descriptor_private != 0) {
      say(FindingKind::kScratch,
          "the descriptor declares a private segment of " + number(k_.descriptor_private) + " bytes; 0 is required");
    }
    if (k_.has_metadata && k_.private_bytes != k_.descriptor_private) {
      say(FindingKind::kScratch, "the metadata declares a private segment of " + number(k_.private_bytes) +
                                     " bytes, the descriptor " + number(k_.descriptor_private) + "; they must agree");
    }
    if (k_.properties & kDynamicStack)
      say(FindingKind::kScratch, "the descriptor asks for a dynamic stack; none is allowed");
  }

  void registers() {
    if (k_.total_vgprs() > kSimdRegisters) {
      say(FindingKind::kRegisterBudget,
          "the descriptor allocates " + number(k_.total_vgprs()) + " VGPRs and AGPRs; at most 512 exist");
    }
    const std::uint32_t waves_per_simd = k_.max_workgroup == 0 ? 1 : (k_.max_workgroup + 255) / 256;
    if (k_.has_metadata && waves_per_simd <= 4 && waves_per_simd * k_.total_vgprs() > kSimdRegisters) {
      say(FindingKind::kRegisterBudget, "a workgroup of " + number(k_.max_workgroup) + " work-items puts " +
                                            number(waves_per_simd) + " waves on a SIMD, which leaves " +
                                            number(kSimdRegisters / waves_per_simd / 8 * 8) +
                                            " registers a wave; the descriptor allocates " + number(k_.total_vgprs()));
    }
  }

  // Enabled user SGPRs (gfx950-isa.md 5.1) must fit the count in rsrc2.
  void user_sgprs() {
    static constexpr std::uint8_t kWidths[] = {4, 2, 2, 2, 2, 2, 1};  // by properties bit
    std::uint32_t needed = k_.preload & 0x7f;
    for (unsigned b = 0; b < std::size(kWidths); ++b)
      if (k_.properties >> b & 1) needed += kWidths[b];
    const std::uint32_t count = (k_.rsrc2 >> 1) & 0x1f;
    if (count > 16) say(FindingKind::kDescriptor, number(count) + " user SGPRs are declared; at most 16 are allowed");
    if (needed > count) {
      say(FindingKind::kDescriptor,
          "the enabled kernel inputs need " + number(needed) + " user SGPRs, rsrc2 declares " + number(count));
    }
    if (k_.properties >> 10 & 1)
      say(FindingKind::kDescriptor, "the descriptor asks for wave32; gfx950 has wave64 only");
  }

  void placement() {
    if (k_.entry_offset >= object_.text.size() || k_.code_bytes == 0 ||
        k_.code_bytes > object_.text.size() - k_.entry_offset) {
      say(FindingKind::kDescriptor, "the code of the kernel, text bytes " + number(k_.entry_offset) + " + " +
                                        number(k_.code_bytes) + ", does not lie in the " + number(object_.text.size()) +
                                        " bytes of .text");
    }
    if ((object_.text_address + k_.entry_offset) % kCodeAlignment != 0) {
      say(FindingKind::kDescriptor,
          "the entry at address " + hex(object_.text_address + k_.entry_offset) + " is not aligned to 256 bytes");
    }
  }

  void metadata() {
    if (k_.descriptor_kernarg != 0 && k_.descriptor_kernarg != k_.kernarg_bytes) {
      say(FindingKind::kDescriptor, "the descriptor declares " + number(k_.descriptor_kernarg) +
                                        " bytes of kernel arguments, the metadata " + number(k_.kernarg_bytes));
    }
    for (const KernelArgument& a : k_.arguments) {
      if (std::uint64_t{a.offset} + a.size > k_.kernarg_bytes) {
        say(FindingKind::kDescriptor, "argument " + a.name + " ends at byte " +
                                          number(std::uint64_t{a.offset} + a.size) + " of " + number(k_.kernarg_bytes) +
                                          " bytes of kernel arguments");
      }
    }
    if (k_.wavefront_size != 64) {
      say(FindingKind::kDescriptor,
          "the metadata declares wavefront size " + number(k_.wavefront_size) + "; 64 is required");
    }
    if (k_.max_workgroup == 0 || k_.max_workgroup > 1024) {
      say(FindingKind::kDescriptor, "the metadata declares a workgroup of at most " + number(k_.max_workgroup) +
                                        " work-items; 1 to 1024 are allowed");
    }
    if (k_.vgprs > k_.total_vgprs()) {
      say(FindingKind::kDescriptor,
          "the metadata declares " + number(k_.vgprs) + " VGPRs, the descriptor allocates " + number(k_.total_vgprs()));
    }
    if (k_.agprs > allocated_agprs(k_)) {
      say(FindingKind::kDescriptor, "the metadata declares " + number(k_.agprs) + " AGPRs, the descriptor allocates " +
                                        number(allocated_agprs(k_)));
    }
  }

  const CodeObject& object_;
  const KernelImage& k_;
  Reporter& reporter_;
};

}  // namespace

void check_budget(const Program& program, Reporter& reporter, VerifyReport& report) {
  BudgetChecker(program, reporter, report).run();
}

void check_operands(const Program& program, Reporter& reporter) { OperandChecker(program, reporter).run(); }

void check_declaration(const CodeObject& object, const KernelImage& kernel, Reporter& reporter) {
  DeclarationChecker(object, kernel, reporter).run();
}

}  // namespace zyfa::jit::verify
