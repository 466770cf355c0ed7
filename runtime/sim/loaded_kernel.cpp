// Loading of code objects and the initial state of a launch (gfx950-isa.md 5): see loaded_kernel.h.
#include "runtime/sim/loaded_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/hidden_argument.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u64 kPage = 4096;
constexpr u64 kMaxImage = 1ull << 30;
constexpr u64 kDynamicStackBytes = 16384;

// kernel_code_properties (gfx950-isa.md 5.1).
enum Property : std::uint16_t {
  kPrivateBuffer = 1 << 0,
  kDispatchPtr = 1 << 1,
  kQueuePtr = 1 << 2,
  kKernargPtr = 1 << 3,
  kDispatchId = 1 << 4,
  kFlatScratchInit = 1 << 5,
  kPrivateSize = 1 << 6,
  kWave32 = 1 << 10,
  kDynamicStack = 1 << 11,
};

u32 initial_mode(u32 rsrc1) {
  u32 mode = (rsrc1 >> 12) & 0xff;    // FP_ROUND, FP_DENORM
  mode |= ((rsrc1 >> 21) & 1) << 8;   // DX10_CLAMP
  mode |= ((rsrc1 >> 23) & 1) << 9;   // IEEE
  mode |= ((rsrc1 >> 26) & 1) << 23;  // FP16_OVFL
  return mode;
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
  if (at + sizeof(T) <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof(T));
}

}  // namespace

Expected<std::shared_ptr<SimKernel>> SimKernel::load(std::shared_ptr<DeviceMemory> memory,
                                                     std::vector<std::byte> object, std::string_view symbol) {
  auto read = jit::read_code_object(std::move(object));
  if (!read) return tl::unexpected(read.error());
  std::shared_ptr<SimKernel> kernel(new SimKernel);
  kernel->object_ = std::move(*read);
  const jit::KernelImage* image = kernel->object_.find(symbol);
  if (image == nullptr) {
    std::vector<std::string> names;
    for (const auto& k : kernel->object_.kernels) names.push_back("the object has '" + k.name + "'");
    return make_error(ErrorCode::kNotFound, fmt::format("the code object has no kernel '{}'", symbol),
                      std::move(names));
  }
  kernel->image_ = *image;
  if ((image->properties & kWave32) || (image->wavefront_size != 0 && image->wavefront_size != 64)) {
    return make_error(ErrorCode::kUnsupported,
                      fmt::format("kernel '{}' wants waves of 32 lanes; gfx950 has 64", symbol));
  }

  RegisterFile registers;
  registers.rows = std::min(512u, image->total_vgprs());
  registers.accum_offset = image->accum_offset();
  auto program = decode_program(kernel->object_.text, image->entry_offset, registers);
  if (!program) return tl::unexpected(program.error());
  kernel->program_ = std::move(*program);
  kernel->memory_ = std::move(memory);
  if (Status placed = kernel->place_segments(); !placed) return tl::unexpected(placed.error());
  kernel->collect_origins();
  // With kernel argument preload, execution starts behind the 256-byte fallback (gfx950-isa.md 5.2).
  if ((image->preload & 0x7f) != 0) {
    const u64 entry = image->entry_offset + 256;
    if (entry >= kernel->program_.text_bytes || kernel->program_.op_at[entry / 4] == Program::kNoOp ||
        kernel->program_.ops[kernel->program_.op_at[entry / 4]].row == nullptr) {
      return make_error(ErrorCode::kCorruptData,
                        "the kernel preloads arguments but has no code 256 bytes past its entry");
    }
    kernel->program_.entry = kernel->program_.op_at[entry / 4];
  }
  return kernel;
}

SimKernel::~SimKernel() {
  if (!memory_ || base_ == 0) return;
  const std::unique_lock hold(memory_->lock);
  memory_->space.release(base_);
}

Status SimKernel::place_segments() {
  u64 low = object_.text_address, high = object_.text_address + object_.text.size();
  for (const jit::Segment& s : object_.segments) {
    low = std::min(low, s.address);
    high = std::max(high, s.address + std::max<u64>(s.memory_size, s.bytes.size()));
  }
  low = low / kPage * kPage;
  if (high < low || high - low > kMaxImage) {
    return make_error(
        ErrorCode::kCorruptData,
        fmt::format("the code object's segments span {} bytes, more than the {} allowed", high - low, kMaxImage));
  }
  const std::unique_lock hold(memory_->lock);
  base_ = memory_->space.allocate(high - low);
  if (base_ == 0) return make_error(ErrorCode::kDeviceError, "no host memory for the code object");
  std::byte* to = memory_->space.find(base_, high - low);
  std::memset(to, 0, high - low);
  for (const jit::Segment& s : object_.segments) std::memcpy(to + (s.address - low), s.bytes.data(), s.bytes.size());
  for (const jit::Relocation& r : object_.relocations) {
    const u64 value = base_ - low + r.value;
    std::memcpy(to + (r.address - low), &value, sizeof(value));
  }
  code_address_ = base_ + (object_.text_address - low);
  return {};
}

void SimKernel::collect_origins() {
  origins_.assign(program_.ops.size(), {});
  first_listed_ = program_.entry;
  for (std::size_t i = 0; i < object_.listing.size() && program_.entry + i < origins_.size(); ++i) {
    const jit::ListingNote& note = object_.listing[i];
    std::string& text = origins_[program_.entry + i];
    text = note.comment;
    if (!note.stage.empty()) text += fmt::format("{}stage {}", text.empty() ? "" : ", ", note.stage);
    if (!note.source.empty()) text += fmt::format("{}{}", text.empty() ? "" : ", ", note.source);
  }
}

const jit::ListingNote* SimKernel::note(std::size_t op) const {
  const bool listed = op >= first_listed_ && op - first_listed_ < object_.listing.size();
  return listed ? &object_.listing[op - first_listed_] : nullptr;
}

const StrictTable& SimKernel::strict_table() const {
  std::call_once(strict_once_, [this] { strict_table_ = make_strict_table(program_); });
  return strict_table_;
}

std::vector<SimInstructionCount> SimKernel::instruction_counts(const std::vector<InstructionTally>& tallies) const {
  std::vector<SimInstructionCount> counts;
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    if (tallies[i].executed == 0) continue;
    counts.push_back(
        {program_.ops[i].offset - program_.entry_offset, program_.text[i], tallies[i].executed, tallies[i].lds, {}});
    const std::size_t line = i - first_listed_;  // wraps for code before it
    if (line < object_.listing.size()) counts.back().comment = object_.listing[line].comment;
  }
  return counts;
}

std::vector<std::byte> SimKernel::kernarg_segment(const LaunchShape& shape, std::span<const std::byte> kernargs) const {
  const u32 declared = std::max(image_.kernarg_bytes, image_.descriptor_kernarg);
  // Compilers load up to the end of the last aligned piece: runtimes hand out segments in units of 64 bytes.
  constexpr std::size_t kUnit = 64;
  const std::size_t used = std::max<std::size_t>(declared, kernargs.size());
  std::vector<std::byte> segment((used + kUnit - 1) / kUnit * kUnit);
  std::copy(kernargs.begin(), kernargs.end(), segment.begin());
  for (const jit::KernelArgument& a : image_.arguments) {
    if (!a.name.starts_with("hidden_") || a.offset < kernargs.size()) continue;
    const u64 value = hidden_value(a.name, shape);
    if (a.size == 2) put(segment, a.offset, static_cast<std::uint16_t>(value));
    if (a.size == 4) put(segment, a.offset, static_cast<u32>(value));
    if (a.size == 8) put(segment, a.offset, value);
  }
  return segment;
}

Expected<LaunchPlan> SimKernel::plan(const LaunchShape& shape, std::span<const std::byte> kernargs,
                                     DeviceAddress kernarg_address, DeviceAddress packet_address) const {
  const u64 items = static_cast<u64>(shape.block[0]) * shape.block[1] * shape.block[2];
  if (items == 0 || items > 1024 || shape.block[0] > 1024 || shape.block[1] > 1024 || shape.block[2] > 1024) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a workgroup of {}x{}x{} work-items; 1 to 1024 are allowed", shape.block[0],
                                  shape.block[1], shape.block[2]));
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    // The dispatch packet counts work-items of an axis in 32 bits (HSA system architecture, AQL packet).
    if (static_cast<u64>(shape.grid[axis]) * shape.block[axis] > ~u32{0}) {
      return make_error(
          ErrorCode::kInvalidArgument,
          fmt::format("a grid of {} workgroups of {} work-items on axis {}; an axis has at most {} work-items",
                      shape.grid[axis], shape.block[axis], axis, ~u32{0}));
    }
  }
  if (image_.max_workgroup != 0 && items > image_.max_workgroup) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a workgroup of {} work-items; kernel '{}' was built for at most {}", items, symbol(),
                                  image_.max_workgroup));
  }
  if (const auto& r = image_.required_block; r[0] != 0 && r != shape.block) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a workgroup of {}x{}x{} work-items; kernel '{}' requires {}x{}x{}", shape.block[0],
                                  shape.block[1], shape.block[2], symbol(), r[0], r[1], r[2]));
  }
  const u64 lds = static_cast<u64>(std::max(image_.descriptor_lds, image_.group_bytes)) + shape.dynamic_lds;
  if (lds > kLdsBytes) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("{} bytes of LDS; a workgroup has at most {}", lds, kLdsBytes));
  }
  u64 scratch = std::max(image_.descriptor_private, image_.private_bytes);
  // The compiler does not know how deep calls through pointers go; the runtime's limit applies (HIP: stack size limit).
  if (image_.properties & kDynamicStack) scratch += kDynamicStackBytes;
  if (scratch > (1u << 20)) {
    return make_error(
        ErrorCode::kUnsupported,
        fmt::format("{} bytes of private memory a work-item; the simulator gives at most {}", scratch, 1u << 20));
  }

  LaunchPlan plan;
  plan.program = &program_;
  plan.memory = &memory_->space;
  plan.shape = shape;
  plan.lds_bytes = static_cast<u32>(lds);
  plan.scratch_bytes = static_cast<u32>(scratch);
  plan.mode = initial_mode(image_.rsrc1);
  plan.code_address = code_address_;
  plan.origins = &origins_;
  auto& s = plan.user_sgprs;
  const auto push64 = [&](u64 value) {
    s.push_back(static_cast<u32>(value));
    s.push_back(static_cast<u32>(value >> 32));
  };
  if (image_.properties & kPrivateBuffer) s.insert(s.end(), 4, 0u);
  if (image_.properties & kDispatchPtr) push64(packet_address);
  if (image_.properties & kQueuePtr) push64(0);
  if (image_.properties & kKernargPtr) push64(kernarg_address);
  if (image_.properties & kDispatchId) push64(0);
  if (image_.properties & kFlatScratchInit) push64(0);
  if (image_.properties & kPrivateSize) s.push_back(static_cast<u32>(scratch));
  const u32 length = image_.preload & 0x7f, first = (image_.preload >> 7) & 0x1ff;
  for (u32 i = 0; i < length; ++i) {
    u32 value = 0;
    const std::size_t at = 4ull * (first + i);
    if (at + 4 <= kernargs.size()) std::memcpy(&value, kernargs.data() + at, 4);
    s.push_back(value);
  }
  // User SGPRs are counted by the descriptor; registers that no property claims hold nothing.
  const std::size_t declared = (image_.rsrc2 >> 1) & 0x1f;
  while (s.size() < declared) s.push_back(0);
  if (s.size() > 16) {
    return make_error(ErrorCode::kCorruptData,
                      fmt::format("the descriptor asks for {} user SGPRs; 16 are allowed", s.size()));
  }
  for (unsigned axis = 0; axis < 3; ++axis) plan.workgroup_id[axis] = (image_.rsrc2 >> (7 + axis)) & 1;
  plan.workgroup_info = (image_.rsrc2 >> 10) & 1;
  return plan;
}

}  // namespace zyfa::sim
