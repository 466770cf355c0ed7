#include "runtime/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>

namespace zyfa::io {
namespace {

// Closes on scope exit; close() of a written file is checked by the writer.
struct Descriptor {
  explicit Descriptor(int value) : fd(value) {}
  ~Descriptor() {
    if (fd >= 0) {
      ::close(fd);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

tl::unexpected<Error> system_error(const std::filesystem::path& path, const char* action) {
  const int reason = errno;
  return make_error(reason == ENOENT || reason == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIoError,
                    path.string() + ": cannot " + action + ": " + std::strerror(reason));
}

std::string temporary_name(const std::filesystem::path& path) {
  static std::atomic<unsigned> count{0};
  return path.string() + "." + std::to_string(::getpid()) + "." + std::to_string(count++) + ".tmp";
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno != EINTR) {
      return false;
    }
    bytes = bytes.subspan(done < 0 ? 0 : static_cast<std::size_t>(done));
  }
  return true;
}

}  // namespace

Expected<std::vector<std::byte>> read_file(const std::filesystem::path& path) {
  // A FIFO without a writer would block the call; regular files know no O_NONBLOCK.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) {
    return system_error(path, "open");
  }
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) {
    return system_error(path, "read");
  }
  if (!S_ISREG(info.st_mode)) {
    return make_error(ErrorCode::kIoError, path.string() + ": not a regular file");
  }
  std::vector<std::byte> bytes;
  try {
    bytes.resize(static_cast<std::size_t>(info.st_size));
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kIoError,
                      path.string() + ": " + std::to_string(info.st_size) + " bytes do not fit in memory");
  }
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return system_error(path, "read");
    }
    if (got == 0) {
      break;  // the file shrank since fstat
    }
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

Status write_file(const std::filesystem::path& path, std::initializer_list<std::span<const std::byte>> parts) {
  struct stat info{};
  const bool in_place = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  const std::string name = in_place ? path.string() : temporary_name(path);
  Descriptor file(in_place ? ::open(name.c_str(), O_WRONLY | O_CLOEXEC)
                           : ::open(name.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0666));
  if (file.fd < 0) {
    return system_error(path, "create");
  }
  const auto fail = [&](const char* action) {
    const auto error = system_error(path, action);
    if (!in_place) {
      ::unlink(name.c_str());
    }
    return error;
  };
  for (const std::span<const std::byte> part : parts) {
    if (!write_all(file.fd, part)) {
      return fail("write");
    }
  }
  if (in_place) {
    return {};
  }
  const int closed = ::close(file.fd);
  file.fd = -1;
  if (closed != 0 || ::rename(name.c_str(), path.c_str()) != 0) {
    return fail("write");
  }
  return {};
}

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      result += escape;
    } else {
      result += c;
    }
  }
  return result + (text.size() > kLongest ? "...'" : "'");
}

bool checked_bytes(std::span<const std::int64_t> extents, std::size_t element, std::uint64_t& bytes) {
  constexpr std::uint64_t kLimit = std::numeric_limits<std::int64_t>::max();
  std::uint64_t product = element;
  bool empty = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) {
      return false;
    }
    empty = empty || extent == 0;
  }
  for (const std::int64_t extent : extents) {
    if (!empty && product > kLimit / static_cast<std::uint64_t>(extent)) {
      return false;
    }
    product = empty ? 0 : product * static_cast<std::uint64_t>(extent);
  }
  bytes = empty ? 0 : product;
  return true;
}

}  // namespace zyfa::io
