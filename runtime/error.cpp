#include "zyfa/error.h"

namespace zyfa {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid-argument";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kCorruptData:
      return "corrupt-data";
    case ErrorCode::kIoError:
      return "io-error";
    case ErrorCode::kCompileError:
      return "compile-error";
    case ErrorCode::kScheduleError:
      return "schedule-error";
    case ErrorCode::kArchMismatch:
      return "arch-mismatch";
    case ErrorCode::kDeviceUnavailable:
      return "device-unavailable";
    case ErrorCode::kDeviceError:
      return "device-error";
    case ErrorCode::kMemoryFault:
      return "memory-fault";
    case ErrorCode::kStrictFinding:
      return "strict-finding";
    case ErrorCode::kCacheMiss:
      return "cache-miss";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  std::string text(error_code_name(error.code));
  text += ": " + error.message;
  for (const std::string& detail : error.details) {
    text += "\n  " + detail;
  }
  return text;
}

}  // namespace zyfa
