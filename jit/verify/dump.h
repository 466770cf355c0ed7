// Annotated dump of a code object: offset, encoding, instruction, comment, stage.
#pragma once

#include <string>

#include "jit/object/code_object.h"
#include "zyfa/error.h"

namespace zyfa::jit {

// isa: decoded machine code with offset, encoding, comment and stage. assembly: re-assemblable text for stock llvm-mc.
[[nodiscard]] Expected<std::string> dump_isa(const CodeObject& object, std::string_view kernel);
[[nodiscard]] Expected<std::string> dump_assembly(const CodeObject& object, std::string_view kernel);
// Descriptor, metadata, sizes: as text a person reads.
[[nodiscard]] std::string dump_metadata(const CodeObject& object);

}  // namespace zyfa::jit
