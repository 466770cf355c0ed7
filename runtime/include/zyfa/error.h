// The error vocabulary of zyfa: one code, one sentence that names the offending values, and what is allowed.
//
// Every fallible call returns Expected<T>; nothing in zyfa throws across its public surface or aborts on bad input.
// This header is the one public header that every folder (jit, schedules, cache, runtime) may include.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "zyfa/export.h"

namespace zyfa {

enum class ErrorCode {
  kInvalidArgument,    // a value the caller gave is out of its documented range
  kUnsupported,        // understood, but this version has no kernel or form for it; details list every reason
  kNotFound,           // a file, key, kernel symbol or library that was named does not exist
  kCorruptData,        // bytes that fail their own format's checks (truncated, bad checksum, foreign magic)
  kIoError,            // the operating system refused; the sentence carries its reason
  kCompileError,       // assembler, linker or verifier rejected a listing; details carry diagnostics with DSL origin
  kScheduleError,      // a placement is not legal for its algorithm; speaks of stage names
  kArchMismatch,       // a code object of another architecture
  kDeviceUnavailable,  // no usable library or device
  kDeviceError,        // the device runtime reported an error
  kMemoryFault,        // simulated device: an access outside every buffer
  kStrictFinding,      // simulated device, strict mode: poison, race, hazard; details carry each finding
  kCacheMiss,          // ZYFA_CACHE=require and no entry; details carry the prewarm line
  kInternal,           // a broken invariant of zyfa itself: please report
};

// Stable lower-case name of a code, as printed by the CLI and in JSON ("invalid-argument", ...).
ZYFA_API std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;               // one sentence: what was wrong, the value, what is allowed
  std::vector<std::string> details;  // zero or more further lines, e.g. each reason of a refusal
};

// "code: message" followed by the details, one a line, indented.
ZYFA_API std::string to_string(const Error& error);

template <typename T>
using Expected = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> make_error(ErrorCode code, std::string message, std::vector<std::string> details = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(details)});
}

}  // namespace zyfa
