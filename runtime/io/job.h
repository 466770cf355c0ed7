// Job files: one kernel of any gfx950 code object, its launch shape and its arguments, for `zyfa-jit simulate`.
//
//   { "object": PATH, "kernel": SYMBOL, "grid": [x, y, z], "block": [x, y, z], "lds": BYTES = 0, "args": [ARG...] = []
//   } ARG := { "buffer": PATH, "write"?: PATH, "dtype"?: D, "shape"?: [int...] }         contents of a file
//        | { "bytes": N, "fill"?: 0..255 = 0, "write"?: PATH, "dtype"?, "shape"? }     N bytes of one value
//        | { "i32": n } | { "u32": n } | { "i64": n } | { "f32": x } | { "raw": HEX } | { "null": true }
//   every ARG may have "offset": its place in the kernel-argument segment.
// grid counts workgroups. Paths are relative to the job file. A buffer file that ends in .npy gives its array without
// the header; "write" to a name that ends in .npy labels the array with dtype and shape (default: those of the file
// read, else bytes), any other name gets the bare bytes. A key that is not listed is an error: a misspelt one must not
// be ignored in silence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/element_type.h"
#include "zyfa/device.h"
#include "zyfa/error.h"

namespace zyfa::io {

struct JobArgument {
  enum class Kind { kFile, kFilled, kValue };  // a buffer from a file, a filled buffer, or bytes passed by value

  Kind kind = Kind::kValue;
  std::optional<std::uint32_t> offset;
  std::vector<std::byte> value;  // kValue: what stands in the segment, little-endian
  std::uint32_t alignment = 1;   // kValue: natural alignment
  std::filesystem::path source;  // kFile
  std::uint64_t bytes = 0;       // kFilled
  std::byte fill{0};             // kFilled
  std::filesystem::path write;   // empty: the final bytes are not kept
  std::optional<ElementType> type;
  std::optional<std::vector<std::int64_t>> shape;

  [[nodiscard]] bool is_buffer() const { return kind != Kind::kValue; }
};

struct Job {
  std::filesystem::path object;
  std::string kernel;
  LaunchShape launch;
  std::vector<JobArgument> arguments;
};

// `folder` is what relative paths are relative to. kCorruptData names the place ("job.json: args[2]"), the value and
// what is allowed.
[[nodiscard]] Expected<Job> parse_job(std::string_view text, const std::filesystem::path& folder,
                                      const std::string& name);
[[nodiscard]] Expected<Job> read_job(const std::filesystem::path& path);

}  // namespace zyfa::io
