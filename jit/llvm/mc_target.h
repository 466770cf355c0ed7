// LLVM's gfx950 target objects, made once a process and shared by assembler and disassembler. Internal to jit/llvm:
// this is one of the few headers that may name LLVM types.
//
// Invariant: everything here is immutable after construction, so any number of threads may use it; MCContext, parser
// and streamer, which are not, are made per call.
#pragma once

#include <memory>
#include <string>

#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Triple.h>

#include "zyfa/error.h"

namespace zyfa::jit {

struct McTarget {
  llvm::Triple triple;
  const llvm::Target* target = nullptr;
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> asm_info;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
};

// kInternal when the linked LLVM lacks the AMDGPU target or does not know gfx950.
[[nodiscard]] Expected<const McTarget*> mc_target();

}  // namespace zyfa::jit
