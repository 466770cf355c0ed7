#include "runtime/io/job_run.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>

#include "runtime/io/file.h"
#include "runtime/io/npy.h"
#include "runtime/io/safetensors.h"
#include "runtime/sim/hidden_argument.h"

namespace zyfa::io {
namespace {

constexpr std::uint32_t kPointerBytes = 8;

struct Placed {
  std::uint64_t begin = 0, end = 0;
  std::size_t index = 0;  // of the job's argument
};

std::string argument_name(std::size_t index) { return "args[" + std::to_string(index) + "]"; }

std::string range_text(const Placed& placed) {
  return argument_name(placed.index) + " at bytes " + std::to_string(placed.begin) + " to " +
         std::to_string(placed.end);
}

bool is_hidden(const ObjectArgument& argument) { return argument.kind.starts_with("hidden_"); }

void store(std::vector<std::byte>& segment, std::uint64_t offset, std::span<const std::byte> bytes) {
  segment.resize(std::max<std::size_t>(segment.size(), offset + bytes.size()));
  std::copy(bytes.begin(), bytes.end(), segment.begin() + static_cast<std::ptrdiff_t>(offset));
}

void store_hidden(std::vector<std::byte>& segment, const ObjectKernel& kernel, const LaunchShape& launch) {
  for (const ObjectArgument& argument : kernel.arguments) {
    const std::uint64_t value = is_hidden(argument) ? sim::hidden_value(argument.kind, launch) : 0;
    if (value != 0 && std::uint64_t{argument.offset} + argument.size <= segment.size()) {
      const std::size_t bytes = std::min<std::size_t>(argument.size, sizeof value);
      store(segment, argument.offset, std::as_bytes(std::span(&value, 1)).first(bytes));
    }
  }
}

Status check_overlap(std::vector<Placed> places) {
  std::sort(places.begin(), places.end(), [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].begin < places[i - 1].end) {
      return make_error(ErrorCode::kInvalidArgument, range_text(places[i]) + " overlaps " + range_text(places[i - 1]));
    }
  }
  return {};
}

std::uint64_t buffer_bytes(const JobArgument& argument) {
  if (argument.kind == JobArgument::Kind::kFilled) {
    return argument.bytes;
  }
  std::error_code failed;
  const std::uint64_t bytes = std::filesystem::file_size(argument.source, failed);
  return failed ? 0 : bytes;  // reading the file says what is wrong
}

// Physical memory that programs may take now; all that can be counted when the system does not say.
std::uint64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string name; info >> name;) {
    std::uint64_t kibibytes = 0;
    if (name == "MemAvailable:" && info >> kibibytes) {
      return kibibytes * 1024;
    }
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::numeric_limits<std::uint64_t>::max();
}

// Every buffer exists twice: as read, and on the device.
Status check_memory(const Job& job) {
  std::uint64_t bytes = 0;
  for (const JobArgument& argument : job.arguments) {
    bytes += argument.is_buffer() ? buffer_bytes(argument) : 0;
  }
  const std::uint64_t available = available_memory();
  if (bytes > available / 2) {
    return make_error(ErrorCode::kInvalidArgument, "the job's buffers have " + std::to_string(bytes) +
                                                       " bytes and are held twice; this host has " +
                                                       std::to_string(available) + " bytes of memory to give");
  }
  return {};
}

// What the .npy to be written says of the buffer's bytes.
Status label(JobOutput& buffer, const std::string& where) {
  const JobArgument& argument = *buffer.argument;
  const std::size_t read_width = element_bytes(buffer.type);
  buffer.type = argument.type.value_or(buffer.type);
  const std::size_t width = element_bytes(buffer.type);
  if (argument.shape) {
    buffer.shape = *argument.shape;
  } else if (width != read_width) {
    buffer.shape = {static_cast<std::int64_t>(buffer.bytes.size() / width)};
  }
  std::uint64_t labelled = 0;
  if (!checked_bytes(buffer.shape, width, labelled) || labelled != buffer.bytes.size()) {
    return make_error(ErrorCode::kInvalidArgument,
                      where + ": shape " + shape_text(buffer.shape) + " of " + std::string(dtype_name(buffer.type)) +
                          " does not match the buffer's " + std::to_string(buffer.bytes.size()) + " bytes");
  }
  return {};
}

Expected<JobOutput> host_buffer(const JobArgument& argument, const std::string& where) {
  JobOutput buffer{.argument = &argument, .type = ElementType::kU8, .shape = {}, .bytes = {}};
  if (argument.kind == JobArgument::Kind::kFile && argument.source.extension() == ".npy") {
    Expected<Npy> array = read_npy(argument.source);
    if (!array) {
      return tl::unexpected<Error>(array.error());
    }
    buffer.bytes = std::move(array->data);
    buffer.type = array->type;
    buffer.shape = std::move(array->shape);
  } else if (argument.kind == JobArgument::Kind::kFile) {
    Expected<std::vector<std::byte>> bytes = read_file(argument.source);
    if (!bytes) {
      return tl::unexpected<Error>(bytes.error());
    }
    buffer.bytes = *std::move(bytes);
    buffer.shape = {static_cast<std::int64_t>(buffer.bytes.size())};
  } else {
    try {
      buffer.bytes.assign(argument.bytes, argument.fill);
    } catch (const std::bad_alloc&) {
      return make_error(ErrorCode::kInvalidArgument,
                        where + ": " + std::to_string(argument.bytes) + " bytes do not fit in memory");
    }
    buffer.shape = {static_cast<std::int64_t>(buffer.bytes.size())};
  }
  if (Status labelled = label(buffer, where); !labelled) {
    return tl::unexpected<Error>(labelled.error());
  }
  return buffer;
}

Status write_buffer(const JobOutput& buffer) {
  const std::filesystem::path& path = buffer.argument->write;
  return path.extension() == ".npy" ? write_npy(path, buffer.type, buffer.shape, buffer.bytes)
                                    : write_file(path, {buffer.bytes});
}

// Device allocations of one job, released together.
class DeviceBuffers {
 public:
  explicit DeviceBuffers(Device& device) : device_(device) {}
  ~DeviceBuffers() {
    for (const DeviceAddress address : addresses_) {
      device_.release(address);
    }
  }
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  Status add(std::span<const std::byte> bytes) {
    const Expected<DeviceAddress> address = device_.allocate(bytes.size());
    if (!address) {
      return tl::unexpected<Error>(address.error());
    }
    addresses_.push_back(*address);
    return bytes.empty() ? Status{} : device_.write(*address, bytes);
  }
  [[nodiscard]] const std::vector<DeviceAddress>& addresses() const { return addresses_; }

 private:
  Device& device_;
  std::vector<DeviceAddress> addresses_;
};

}  // namespace

Expected<std::vector<std::byte>> pack_arguments(const Job& job, const ObjectKernel& kernel,
                                                std::span<const DeviceAddress> buffers) {
  std::vector<const ObjectArgument*> declared;
  for (const ObjectArgument& argument : kernel.arguments) {
    if (!is_hidden(argument)) {
      declared.push_back(&argument);
    }
  }
  std::vector<std::byte> segment(kernel.kernarg_bytes);
  store_hidden(segment, kernel, job.launch);
  std::vector<Placed> places;
  std::uint64_t next = 0;
  std::size_t buffer = 0;
  for (std::size_t i = 0; i < job.arguments.size(); ++i) {
    const JobArgument& argument = job.arguments[i];
    std::vector<std::byte> bytes = argument.value;
    std::uint32_t alignment = argument.alignment;
    if (argument.is_buffer()) {
      bytes.resize(kPointerBytes);
      std::memcpy(bytes.data(), &buffers[buffer++], kPointerBytes);
      alignment = kPointerBytes;
    }
    const ObjectArgument* slot = i < declared.size() && !argument.offset ? declared[i] : nullptr;
    if (slot != nullptr && bytes.size() > slot->size) {
      return make_error(ErrorCode::kInvalidArgument, argument_name(i) + " has " + std::to_string(bytes.size()) +
                                                         " bytes, but argument " + std::to_string(i) +
                                                         (slot->name.empty() ? "" : " (" + slot->name + ")") + " of " +
                                                         kernel.symbol + " takes " + std::to_string(slot->size));
    }
    const std::uint64_t aligned = (next + alignment - 1) / alignment * alignment;
    const std::uint64_t offset = argument.offset ? *argument.offset : slot != nullptr ? slot->offset : aligned;
    store(segment, offset, bytes);
    next = offset + bytes.size();
    places.push_back({offset, next, i});
  }
  if (Status status = check_overlap(std::move(places)); !status) {
    return tl::unexpected<Error>(status.error());
  }
  return segment;
}

Expected<std::vector<JobOutput>> execute_job(const Job& job, std::span<const std::byte> object,
                                             const ObjectKernel& kernel, Device& device) {
  if (Status enough = check_memory(job); !enough) {
    return tl::unexpected<Error>(enough.error());
  }
  std::vector<JobOutput> host;
  for (std::size_t i = 0; i < job.arguments.size(); ++i) {
    if (job.arguments[i].is_buffer()) {
      Expected<JobOutput> buffer = host_buffer(job.arguments[i], argument_name(i));
      if (!buffer) {
        return tl::unexpected<Error>(buffer.error());
      }
      host.push_back(*std::move(buffer));
    }
  }
  const Expected<std::shared_ptr<LoadedKernel>> loaded = device.load(object, job.kernel);
  if (!loaded) {
    return tl::unexpected<Error>(loaded.error());
  }
  DeviceBuffers buffers(device);
  for (const JobOutput& buffer : host) {
    if (Status status = buffers.add(buffer.bytes); !status) {
      return tl::unexpected<Error>(status.error());
    }
  }
  const Expected<std::vector<std::byte>> segment = pack_arguments(job, kernel, buffers.addresses());
  if (!segment) {
    return tl::unexpected<Error>(segment.error());
  }
  Status status = device.launch(**loaded, job.launch, *segment, nullptr);
  if (status) {
    status = device.synchronize(nullptr);
  }
  std::vector<JobOutput> outputs;
  for (std::size_t i = 0; status && i < host.size(); ++i) {
    if (host[i].argument->write.empty()) {
      continue;
    }
    if (!host[i].bytes.empty()) {
      status = device.read(host[i].bytes, buffers.addresses()[i]);
    }
    outputs.push_back(std::move(host[i]));
  }
  if (!status) {
    return tl::unexpected<Error>(status.error());
  }
  return outputs;
}

Status store_outputs(const std::vector<JobOutput>& outputs) {
  for (const JobOutput& output : outputs) {
    if (Status status = write_buffer(output); !status) {
      return status;
    }
  }
  return {};
}

Status run_job(const Job& job, std::span<const std::byte> object, const ObjectKernel& kernel, Device& device) {
  const Expected<std::vector<JobOutput>> outputs = execute_job(job, object, kernel, device);
  return outputs ? store_outputs(*outputs) : Status(tl::unexpected<Error>(outputs.error()));
}

}  // namespace zyfa::io
