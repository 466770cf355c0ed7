// In-process lld: one relocatable object to a code object, both in memory.
//
// lld works on paths and keeps global state, so input and output are memfd files named through /proc/self/fd and all
// links go through one lock. lld's fatal errors end in its crash-recovery frame, not in exit(), and come back as text.
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lld/Common/Driver.h>

#include "jit/llvm/assembler.h"

LLD_HAS_DRIVER(elf)

namespace zyfa::jit {
namespace {

class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  [[nodiscard]] bool write_all(std::span<const std::byte> bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n <= 0) {
        return false;
      }
      done += static_cast<std::size_t>(n);
    }
    return true;
  }

  [[nodiscard]] bool read_all(std::vector<std::byte>& bytes) const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) {
      return false;
    }
    bytes.resize(static_cast<std::size_t>(info.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n <= 0) {
        return false;
      }
      done += static_cast<std::size_t>(n);
    }
    return true;
  }

 private:
  int fd_;
};

tl::unexpected<Error> io_error(const char* what) {
  return make_error(ErrorCode::kIoError,
                    std::string("linking in memory failed: ") + what + ": " + std::strerror(errno));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.empty()) {
      lines.emplace_back(line);
    }
    if (end == std::string_view::npos) {
      break;
    }
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace

Expected<std::vector<std::byte>> link_object(std::span<const std::byte> object) {
  static std::mutex lld_lock;
  static bool lld_broken = false;  // guarded by lld_lock; set when lld says that it must not run again

  const MemoryFile input("zyfa-object");
  const MemoryFile output("zyfa-code-object");
  if (!input.is_open() || !output.is_open()) {
    return io_error("memfd_create");
  }
  if (!input.write_all(object)) {
    return io_error("write");
  }
  const std::string input_path = input.path();
  const std::string output_path = output.path();
  // --threads=1 also keeps lld from unlinking the output path first. Local labels are of no use after linking.
  const char* const arguments[] = {"ld.lld",
                                   "-shared",
                                   "--no-undefined",
                                   "--build-id=none",
                                   "--discard-all",
                                   "--threads=1",
                                   "--color-diagnostics=never",
                                   "--no-mmap-output-file",
                                   "-o",
                                   output_path.c_str(),
                                   input_path.c_str()};
  std::string messages;
  bool failed = false;
  {
    const std::scoped_lock lock(lld_lock);
    if (lld_broken) {
      return make_error(ErrorCode::kInternal, "lld crashed earlier in this process and cannot be run again");
    }
    llvm::raw_string_ostream stream(messages);
    const lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
    failed = result.retCode != 0;
    lld_broken = !result.canRunAgain;
  }
  if (failed) {
    std::vector<std::string> details = lines_of(messages);
    return make_error(
        ErrorCode::kCompileError,
        "linking the object failed: " + (details.empty() ? std::string("no reason given") : details.front()),
        std::move(details));
  }
  std::vector<std::byte> linked;
  if (!output.read_all(linked)) {
    return io_error("read");
  }
  return linked;
}

}  // namespace zyfa::jit
