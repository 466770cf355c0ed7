// In-process lld: one relocatable object to a code object, both in memory.
//
// lld works on paths and keeps global state. The input is a memfd and the output a pipe, both named through
// /proc/self/fd: to a regular file lld would write beside it and rename, to a special file it writes in place. All
// links go through one lock. lld's fatal errors end in its crash-recovery frame, not in exit(), and come back as text.
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
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

 private:
  int fd_;
};

// A pipe whose write end has a path, drained by a thread until every write end is closed.
class OutputPipe {
 public:
  OutputPipe() {
    if (::pipe2(fds_, O_CLOEXEC) != 0) return;
    reader_ = std::thread([this] { drain(); });
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe() { finish(); }

  [[nodiscard]] bool is_open() const { return fds_[0] >= 0; }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fds_[1]); }

  // Everything written to the path. Call once, when no one writes any more.
  std::vector<std::byte> finish() {
    if (fds_[1] >= 0) ::close(fds_[1]);
    if (reader_.joinable()) reader_.join();
    if (fds_[0] >= 0) ::close(fds_[0]);
    fds_[0] = fds_[1] = -1;
    return std::move(bytes_);
  }

 private:
  void drain() {
    std::array<std::byte, 65536> block;
    while (true) {
      const ssize_t n = ::read(fds_[0], block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      bytes_.insert(bytes_.end(), block.begin(), block.begin() + n);
    }
  }

  int fds_[2] = {-1, -1};
  std::thread reader_;
  std::vector<std::byte> bytes_;
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
  OutputPipe output;
  if (!input.is_open() || !output.is_open()) {
    return io_error("memfd_create or pipe");
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
  std::vector<std::byte> linked = output.finish();
  if (failed) {
    std::vector<std::string> details = lines_of(messages);
    std::string message = "linking the object failed: " + (details.empty() ? "no reason given" : details.front());
    return make_error(ErrorCode::kCompileError, std::move(message), std::move(details));
  }
  return linked;
}

}  // namespace zyfa::jit
