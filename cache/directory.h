// Opening the directories of a layer under the cache's safety rules, and walking them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cache/file.h"
#include "zyfa/error.h"

namespace zyfa::cache {

enum class LayerAccess : std::uint8_t { kReadOnly, kWritable };

// Why a file with this status must not be trusted in a layer, as the end of a sentence that also says how to mend it;
// empty when it may be. Owners allowed: the effective user, and for a read-only layer root as well.
[[nodiscard]] std::string unsafe_reason(const struct stat& status, LayerAccess access, const std::string& path);

// Makes `path` and its parent, 0700, when missing. Whatever lies above must exist. kIoError.
[[nodiscard]] Status make_directories(const std::string& path);

// Opens directory `name` in `parent` (AT_FDCWD for a root) and checks it. `path` is what messages call it.
// kNotFound: it does not exist. kInvalidArgument: it is refused. kIoError.
[[nodiscard]] Expected<UniqueFd> open_checked_directory(int parent, const std::string& name, LayerAccess access,
                                                        const std::string& path);

// Calls `visit` with each name in the directory but "." and "..". kIoError when it cannot be read.
[[nodiscard]] Status for_each_name(int directory, const std::function<void(const char*)>& visit);

// "nfs", "cifs", ... or empty for a local file system.
[[nodiscard]] std::string network_file_system(int fd);

}  // namespace zyfa::cache
