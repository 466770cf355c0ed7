// Runs LLVM's assembly parser with an ELF object streamer into memory.
//
// Per call: SourceMgr, MCContext, streamer, parser. Every diagnostic goes through handlers that fill a vector; nothing
// is printed to stderr.
#include "jit/llvm/mc_assemble.h"

#include <memory>
#include <string>

#include <llvm/ADT/SmallVector.h>
#include <llvm/MC/MCAsmBackend.h>
#include <llvm/MC/MCCodeEmitter.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCObjectFileInfo.h>
#include <llvm/MC/MCObjectWriter.h>
#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include "jit/llvm/mc_target.h"

namespace zyfa::jit {
namespace {

struct Collector {
  std::vector<Diagnostic> diagnostics;
  bool has_error = false;

  void add(const llvm::SMDiagnostic& diagnostic) {
    has_error |= diagnostic.getKind() == llvm::SourceMgr::DK_Error;
    Diagnostic row;
    row.message = diagnostic.getMessage().str();
    row.line = diagnostic.getLineNo() > 0 ? static_cast<std::uint32_t>(diagnostic.getLineNo()) : 0;
    row.column = diagnostic.getColumnNo() >= 0 ? static_cast<std::uint32_t>(diagnostic.getColumnNo()) + 1 : 0;
    row.text = diagnostic.getLineContents().trim().str();
    diagnostics.push_back(std::move(row));
  }
};

}  // namespace

Expected<McOutcome> mc_assemble(std::string_view text) {
  const auto mc_or = mc_target();
  if (!mc_or) {
    return tl::unexpected<Error>(mc_or.error());
  }
  const McTarget& mc = **mc_or;

  Collector collector;
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(text.data(), text.size()), "listing"),
                             llvm::SMLoc());
  sources.setDiagHandler([](const llvm::SMDiagnostic& d, void* context) { static_cast<Collector*>(context)->add(d); },
                         &collector);

  llvm::MCContext context(mc.triple, mc.asm_info.get(), mc.registers.get(), mc.subtarget.get(), &sources, &mc.options);
  context.setDiagnosticHandler([&collector](const llvm::SMDiagnostic& d, bool, const llvm::SourceMgr&,
                                            std::vector<const llvm::MDNode*>&) { collector.add(d); });
  const std::unique_ptr<llvm::MCObjectFileInfo> file_info(mc.target->createMCObjectFileInfo(context, /*PIC=*/true));
  context.setObjectFileInfo(file_info.get());

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  std::unique_ptr<llvm::MCAsmBackend> backend(mc.target->createMCAsmBackend(*mc.subtarget, *mc.registers, mc.options));
  std::unique_ptr<llvm::MCCodeEmitter> emitter(mc.target->createMCCodeEmitter(*mc.instructions, context));
  std::unique_ptr<llvm::MCObjectWriter> writer = backend->createObjectWriter(stream);
  const std::unique_ptr<llvm::MCStreamer> streamer(mc.target->createMCObjectStreamer(
      mc.triple, context, std::move(backend), std::move(writer), std::move(emitter), *mc.subtarget));
  const std::unique_ptr<llvm::MCAsmParser> parser(llvm::createMCAsmParser(sources, context, *streamer, *mc.asm_info));
  const std::unique_ptr<llvm::MCTargetAsmParser> target_parser(
      mc.target->createMCAsmParser(*mc.subtarget, *parser, *mc.instructions, mc.options));
  if (target_parser == nullptr) {
    return make_error(ErrorCode::kInternal, "LLVM " + llvm_version() + " has no AMDGPU assembly parser");
  }
  parser->setTargetParser(*target_parser);

  const bool failed = parser->Run(/*NoInitialTextSection=*/false);
  McOutcome outcome;
  if (!failed && !collector.has_error && !context.hadError()) {
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    outcome.object.assign(first, first + bytes.size());
  } else if (collector.diagnostics.empty()) {
    collector.diagnostics.push_back({"LLVM rejected the text without saying why", 0, 0, {}, {}});
  }
  outcome.diagnostics = std::move(collector.diagnostics);
  return outcome;
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string line = "line " + std::to_string(diagnostic.line) + ", column " + std::to_string(diagnostic.column) +
                     ": " + diagnostic.message;
  if (!diagnostic.text.empty()) {
    line += " | " + diagnostic.text;
  }
  if (!diagnostic.origin.empty()) {
    line += " | " + diagnostic.origin;
  }
  return line;
}

Expected<std::vector<std::byte>> assemble_object(std::string_view text) {
  auto outcome = mc_assemble(text);
  if (!outcome) {
    return tl::unexpected<Error>(outcome.error());
  }
  if (outcome->object.empty()) {
    std::vector<std::string> details;
    for (const Diagnostic& diagnostic : outcome->diagnostics) {
      details.push_back(to_string(diagnostic));
    }
    std::string message = "assembly text is not valid for gfx950: " + details.front();
    return make_error(ErrorCode::kCompileError, std::move(message), std::move(details));
  }
  return std::move(outcome->object);
}

}  // namespace zyfa::jit
