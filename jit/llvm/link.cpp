// In-process lld: one relocatable object to a code object, both in memory.
//
// lld works on paths and keeps global state. The input is a memfd and the output a pipe, both named through
// /proc/self/fd: to a regular file lld would write beside it and rename, to a special file it writes in place. All
// links go through one lock. lld's fatal errors end in its crash-recovery frame, not in exit(), and come back as text.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <lld/Common/Driver.h>

#include "jit/llvm/assembler.h"

LLD_HAS_DRIVER(elf)

namespace zyfa::jit {
namespace {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_ = -1;
};

tl::unexpected<Error> io_error(const char* what, int code) {
  return make_error(ErrorCode::kIoError, std::string("linking in memory failed: ") + what + ": " + std::strerror(code));
}

Expected<UniqueFd> memory_file(std::span<const std::byte> bytes) {
  UniqueFd file(::memfd_create("zyfa-object", MFD_CLOEXEC));
  if (!file.is_open()) return io_error("memfd_create", errno);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pwrite(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io_error("write", errno);
    done += static_cast<std::size_t>(n);
  }
  return file;
}

// A pipe whose write end has a path, drained by a thread. The end of the output is what finish() says and not the end
// of the file: a process forked meanwhile holds copies of the write end for as long as it likes.
class OutputPipe {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<OutputPipe>> open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return io_error("pipe", errno);
    std::unique_ptr<OutputPipe> pipe(new OutputPipe);
    pipe->read_end_ = UniqueFd(fds[0]);
    pipe->write_end_ = UniqueFd(fds[1]);
    pipe->written_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
    if (!pipe->written_.is_open()) return io_error("eventfd", errno);
    // Only this end: lld opens the path anew, and must block when the pipe is full.
    if (::fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) return io_error("fcntl", errno);
    try {
      pipe->reader_ = std::thread([raw = pipe.get()] { raw->drain(); });
    } catch (const std::system_error& error) {
      return io_error("no thread to read lld's output", error.code().value());
    }
    return pipe;
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe() { stop(); }

  [[nodiscard]] std::string path() const { return write_end_.path(); }

  // Everything written to the path. Call once, when no one in this process writes any more.
  [[nodiscard]] std::vector<std::byte> finish() {
    stop();
    return std::move(bytes_);
  }

 private:
  OutputPipe() = default;

  void stop() {
    if (!reader_.joinable()) return;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(written_.get(), &one, sizeof one));  // a new counter takes a 1 at once
    reader_.join();
  }

  void drain() {
    pollfd fds[2] = {{read_end_.get(), POLLIN, 0}, {written_.get(), POLLIN, 0}};
    while (true) {
      if (::poll(fds, 2, -1) < 0) continue;
      const bool last = fds[1].revents != 0;  // before the read: what was written before it was told is then read
      if (!read_all() || last) return;
    }
  }

  // What the pipe holds now; false at its end.
  bool read_all() {
    std::array<std::byte, 65536> block;
    while (true) {
      const ssize_t n = ::read(read_end_.get(), block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return n < 0 && errno == EAGAIN;
      bytes_.insert(bytes_.end(), block.begin(), block.begin() + n);
    }
  }

  UniqueFd read_end_, write_end_, written_;
  std::thread reader_;
  std::vector<std::byte> bytes_;
};

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

  const Expected<UniqueFd> input = memory_file(object);
  if (!input) return tl::unexpected(input.error());
  const Expected<std::unique_ptr<OutputPipe>> output = OutputPipe::open();
  if (!output) return tl::unexpected(output.error());
  const std::string input_path = input->path();
  const std::string output_path = (*output)->path();
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
  std::vector<std::byte> linked = (*output)->finish();
  if (failed) {
    std::vector<std::string> details = lines_of(messages);
    std::string message = "linking the object failed: " + (details.empty() ? "no reason given" : details.front());
    return make_error(ErrorCode::kCompileError, std::move(message), std::move(details));
  }
  return linked;
}

}  // namespace zyfa::jit
