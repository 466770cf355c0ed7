// Whole files in and out, with errors that name the path and the system's reason.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zyfa/error.h"

namespace zyfa::io {

// kNotFound: no such file. kIoError: not a regular file, or the system refused.
[[nodiscard]] Expected<std::vector<std::byte>> read_file(const std::filesystem::path& path);

// Writes the parts one after another to a temporary file beside `path` and renames it, so a reader never sees half a
// file. A path that exists and is not a regular file (/dev/stdout, a pipe) is written in place.
[[nodiscard]] Status write_file(const std::filesystem::path& path,
                                std::initializer_list<std::span<const std::byte>> parts);

// Text from a file for use in a message: quoted, control bytes as \xNN, cut at 80 characters.
[[nodiscard]] std::string quote(std::string_view text);

// Product of `extents` times `element`, or nothing when one is negative or the product passes 2^63 - 1.
[[nodiscard]] bool checked_bytes(std::span<const std::int64_t> extents, std::size_t element, std::uint64_t& bytes);

}  // namespace zyfa::io
