#include "cache/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace zyfa::cache {
namespace {

constexpr mode_t kPrivate = 0700;

std::string octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "0%03o", static_cast<unsigned>(mode & 07777));
  return text;
}

}  // namespace

std::string unsafe_reason(const struct stat& status, LayerAccess access, const std::string& path) {
  if (S_ISLNK(status.st_mode)) {
    return "is a symbolic link, which the cache refuses: name the directory or file it points to instead";
  }
  const bool owner_allowed = status.st_uid == ::geteuid() || (access == LayerAccess::kReadOnly && status.st_uid == 0);
  if (!owner_allowed) {
    return "belongs to user " + std::to_string(status.st_uid) + ", not to user " + std::to_string(::geteuid()) +
           " who runs this process: chown it, or set ZYFA_CACHE_PATH to a directory of your own";
  }
  if ((status.st_mode & 022) != 0) {
    return "has mode " + octal(status.st_mode) + " and can be written by others: run chmod go-w '" + path +
           "', and clear it first if others may have written there";
  }
  return {};
}

Status make_directories(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  for (const std::string& directory : {parent, path}) {
    if (!directory.empty() && ::mkdir(directory.c_str(), kPrivate) != 0 && errno != EEXIST) {
      return tl::unexpected(os_error("cannot make the cache directory '" + directory + "'", errno));
    }
  }
  return {};
}

Expected<UniqueFd> open_checked_directory(int parent, const std::string& name, LayerAccess access,
                                          const std::string& path) {
  UniqueFd fd = open_at(parent, name.c_str(), O_RDONLY | O_DIRECTORY);
  if (!fd.valid()) {
    const int code = errno;
    struct stat link{};
    if (::fstatat(parent, name.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "cache directory '" + path + "' " + unsafe_reason(link, access, path));
    }
    if (code == ENOENT) return make_error(ErrorCode::kNotFound, "cache directory '" + path + "' does not exist");
    return tl::unexpected(os_error("cannot open the cache directory '" + path + "'", code));
  }
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) {
    return tl::unexpected(os_error("cannot examine the cache directory '" + path + "'", errno));
  }
  if (const std::string reason = unsafe_reason(status, access, path); !reason.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "cache directory '" + path + "' " + reason);
  }
  return fd;
}

Status for_each_name(int directory, const std::function<void(const char*)>& visit) {
  // A descriptor of its own, so that concurrent walks do not share one position.
  const int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return tl::unexpected(os_error("cannot read a cache directory", errno));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own), &::closedir);
  if (!stream) {
    const int code = errno;
    ::close(own);
    return tl::unexpected(os_error("cannot read a cache directory", code));
  }
  while (const dirent* item = ::readdir(stream.get())) {
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") visit(item->d_name);
  }
  return {};
}

std::string network_file_system(int fd) {
  struct statfs info{};
  if (::fstatfs(fd, &info) != 0) return {};
  switch (static_cast<std::uint32_t>(info.f_type)) {  // magic numbers: statfs(2), and each file system's own documents
    case 0x00006969:
      return "nfs";
    case 0x0000517b:
    case 0xfe534d42:
    case 0xff534d42:
      return "cifs";
    case 0x00c36400:
      return "ceph";
    case 0x5346414f:
      return "afs";
    case 0x0bd00bd0:
      return "lustre";
    case 0x47504653:
      return "gpfs";
    case 0x19830326:
      return "beegfs";
    default:
      return {};
  }
}

}  // namespace zyfa::cache
