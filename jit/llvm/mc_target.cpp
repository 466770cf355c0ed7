// One guarded initialisation of LLVM's AMDGPU MC layer (TargetInfo, TargetMC, AsmParser, Disassembler; no code
// generator).
#include "jit/llvm/mc_target.h"

#include "jit/llvm/assembler.h"

// The C entry points: llvm/Support/TargetSelect.h would pull in every target.
extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmParser();
void LLVMInitializeAMDGPUDisassembler();
}

namespace zyfa::jit {
namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";
constexpr const char* kCpu = "gfx950";
// gfx950 always has ECC memory; page-fault retry is off, as every shipped MI355X stack runs it (gfx950-isa.md 5.3).
constexpr const char* kFeatures = "+sramecc,-xnack";

#if LLVM_VERSION_MAJOR >= 22
using TripleArgument = llvm::Triple;
#else
using TripleArgument = std::string;
#endif

Expected<McTarget> make_target() {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUAsmParser();
  LLVMInitializeAMDGPUDisassembler();

  McTarget mc;
  mc.triple = llvm::Triple(kTriple);
  const TripleArgument triple(kTriple);
  std::string reason;
  mc.target = llvm::TargetRegistry::lookupTarget(triple, reason);
  if (mc.target == nullptr) {
    return make_error(ErrorCode::kInternal, "LLVM " + llvm_version() + " has no target " + kTriple + ": " + reason);
  }
  // createMCSubtargetInfo prints to stderr and falls back to a generic CPU for an unknown name, so ask first.
  const std::unique_ptr<llvm::MCSubtargetInfo> generic(mc.target->createMCSubtargetInfo(triple, "", ""));
  if (generic == nullptr || !generic->isCPUStringValid(kCpu)) {
    return make_error(ErrorCode::kInternal,
                      "LLVM " + llvm_version() + " does not know the CPU " + kCpu + "; zyfa needs LLVM 20 or newer");
  }
  mc.registers.reset(mc.target->createMCRegInfo(triple));
  mc.instructions.reset(mc.target->createMCInstrInfo());
  mc.subtarget.reset(mc.target->createMCSubtargetInfo(triple, kCpu, kFeatures));
  if (mc.registers == nullptr || mc.instructions == nullptr || mc.subtarget == nullptr) {
    return make_error(ErrorCode::kInternal, "LLVM " + llvm_version() + " could not make its gfx950 tables");
  }
  mc.asm_info.reset(mc.target->createMCAsmInfo(*mc.registers, triple, mc.options));
  if (mc.asm_info == nullptr) {
    return make_error(ErrorCode::kInternal, "LLVM " + llvm_version() + " could not make its gfx950 assembler syntax");
  }
  return mc;
}

}  // namespace

Expected<const McTarget*> mc_target() {
  static const Expected<McTarget> target = make_target();
  if (!target) {
    return tl::unexpected<Error>(target.error());
  }
  return &*target;
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace zyfa::jit
