// Entry points of the static verifier and the collection of findings (verifier.h, program.h).
#include "jit/verify/verifier.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "jit/verify/program.h"

namespace zyfa::jit {
namespace verify {
namespace {

// A broken kernel repeats one fault many times: this many findings are enough to see it.
constexpr std::size_t kMaxFindings = 200;

bool is_padding(const Decoded& inst) {
  return !inst.valid || inst.mnemonic == "s_nop" || inst.mnemonic == "s_code_end";
}

// Instructions of `kernel` that no followed path reaches.
std::uint32_t count_not_reached(const Program& program) {
  std::uint32_t count = 0, next = 0;  // blocks are in order of address
  const auto add = [&](std::uint32_t end) {
    for (; next < end; ++next) count += is_padding(*program.nodes[next].inst) ? 0 : 1;
  };
  for (const Block& block : program.blocks) {
    add(block.begin);
    next = block.end;
  }
  add(static_cast<std::uint32_t>(program.nodes.size()));
  return count;
}

std::uint32_t count_outside_kernels(const CodeObject& object, std::span<const Decoded> decoded) {
  return static_cast<std::uint32_t>(std::ranges::count_if(decoded, [&](const Decoded& inst) {
    const auto holds = [&](const KernelImage& kernel) {
      return inst.offset >= kernel.entry_offset && inst.offset - kernel.entry_offset < kernel.code_bytes;
    };
    return !is_padding(inst) && std::ranges::none_of(object.kernels, holds);
  }));
}

}  // namespace

std::string hex(std::uint64_t value) {
  char buffer[16];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, 16).ptr;
  return "0x" + std::string(buffer, end);
}

void Reporter::add(Finding finding) {
  const bool known = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& f) {
    return f.offset == finding.offset && f.kind == finding.kind && f.message == finding.message;
  });
  if (known) return;
  if (findings_.size() >= kMaxFindings) {
    ++dropped_;
    return;
  }
  findings_.push_back(std::move(finding));
}

void Reporter::at(FindingKind kind, const Decoded& inst, std::size_t index, std::string message) {
  Finding finding{kind, inst.offset - kernel_.entry_offset, inst.text, std::move(message), {}};
  // The listing section describes the one kernel of an object that zyfa built.
  if (object_.kernels.size() <= 1 && index < object_.listing.size()) {
    const ListingNote& note = object_.listing[index];
    for (const std::string* part : {&note.stage, &note.comment, &note.source}) {
      if (part->empty()) continue;
      if (!finding.origin.empty()) finding.origin += ", ";
      finding.origin += *part;
    }
  }
  name_kernel(finding);
  add(std::move(finding));
}

void Reporter::note(std::string text) {
  if (object_.kernels.size() > 1) text = "kernel " + kernel_.name + ": " + text;
  notes_.push_back(std::move(text));
}

void Reporter::about(FindingKind kind, std::string message) {
  Finding finding{kind, 0, {}, std::move(message), {}};
  name_kernel(finding);
  add(std::move(finding));
}

// Offsets count from a kernel's entry, so in an object of several kernels the kernel must be named.
void Reporter::name_kernel(Finding& finding) const {
  if (object_.kernels.size() > 1) finding.origin = "kernel " + kernel_.name;
}

void Reporter::finish(VerifyReport& report) {
  std::sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.offset, a.kind, a.message) < std::tie(b.offset, b.kind, b.message);
  });
  if (dropped_ != 0) {
    notes_.push_back(std::to_string(dropped_) + " further findings of kernel " + kernel_.name +
                     " are not listed (limit " + std::to_string(kMaxFindings) + ")");
  }
  std::move(findings_.begin(), findings_.end(), std::back_inserter(report.findings));
  std::move(notes_.begin(), notes_.end(), std::back_inserter(report.notes));
}

}  // namespace verify

std::string_view finding_kind_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kWaitStates:
      return "wait-states";
    case FindingKind::kMissingWait:
      return "missing-wait";
    case FindingKind::kUninitialised:
      return "uninitialised";
    case FindingKind::kRegisterBudget:
      return "register-budget";
    case FindingKind::kLdsBudget:
      return "lds-budget";
    case FindingKind::kAlignment:
      return "alignment";
    case FindingKind::kScratch:
      return "scratch";
    case FindingKind::kDescriptor:
      return "descriptor";
    case FindingKind::kControlFlow:
      return "control-flow";
    case FindingKind::kBarrier:
      return "barrier";
  }
  return "unknown";
}

std::string to_string(const Finding& finding) {
  std::string text(finding_kind_name(finding.kind));
  if (!finding.instruction.empty()) text += " at " + verify::hex(finding.offset) + " `" + finding.instruction + "`";
  text += ": " + finding.message;
  if (!finding.origin.empty()) text += " [" + finding.origin + "]";
  return text;
}

VerifyReport verify_kernel(const CodeObject& object, const KernelImage& kernel, std::span<const Decoded> decoded) {
  VerifyReport report;
  verify::Reporter reporter(object, kernel);
  verify::check_declaration(object, kernel, reporter);
  const verify::Program program = verify::build_program(object, kernel, decoded, reporter);
  for (const verify::Block& block : program.blocks) report.instructions += block.end - block.begin;
  report.not_reached = verify::count_not_reached(program);
  if (report.not_reached != 0) {
    reporter.note("not checked: instructions that no followed path reaches: " + std::to_string(report.not_reached));
  }
  verify::check_budget(program, reporter, report);
  verify::check_operands(program, reporter);
  verify::check_wait_states(program, reporter);
  verify::check_memory_waits(program, reporter);
  verify::check_definitions(program, reporter);
  reporter.finish(report);
  return report;
}

Expected<VerifyReport> verify_object(const CodeObject& object) {
  if (object.kernels.empty()) {
    return make_error(ErrorCode::kNotFound, "the code object holds no kernel, so there is nothing to verify");
  }
  auto decoded = disassemble(object.text);
  if (!decoded) return tl::unexpected<Error>(decoded.error());
  VerifyReport total;
  for (const KernelImage& kernel : object.kernels) {
    VerifyReport one = verify_kernel(object, kernel, *decoded);
    std::move(one.findings.begin(), one.findings.end(), std::back_inserter(total.findings));
    std::move(one.notes.begin(), one.notes.end(), std::back_inserter(total.notes));
    total.instructions += one.instructions;
    total.not_reached += one.not_reached;
    total.vgprs = std::max(total.vgprs, one.vgprs);
    total.agprs = std::max(total.agprs, one.agprs);
    total.sgprs = std::max(total.sgprs, one.sgprs);
  }
  if (const std::uint32_t outside = verify::count_outside_kernels(object, *decoded); outside != 0) {
    total.not_reached += outside;
    total.notes.push_back("not checked: instructions that belong to no kernel (functions, say): " +
                          std::to_string(outside));
  }
  return total;
}

}  // namespace zyfa::jit
