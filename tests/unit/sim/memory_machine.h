// One wave over an input and an output buffer, for the tests of memory instructions.
//
// Registers at the start of the code: v0 lane, v1 4 * lane, v2 16 * lane; s[4:5] input, s[6:7] output. `result(k,
// "v4")` stores a register as block k of the output: 64 dwords.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {

// s[8:11] as a buffer resource over the input.
struct Resource {
  std::uint32_t stride = 0;
  std::uint32_t records = 0;
  std::uint32_t word3 = 0x20000;  // data format 32
  bool swizzle = false;
  const char* base = "s4";  // low register of the buffer's address
};
inline std::string resource(const Resource& r) {
  const bool input = std::string_view(r.base) == "s4";
  return fmt::format(
      "s_mov_b32 s8, {}\ns_and_b32 s9, {}, 0xffff\ns_or_b32 s9, s9, 0x{:x}\ns_mov_b32 s10, 0x{:x}\n"
      "s_mov_b32 s11, 0x{:x}\n",
      input ? "s4" : "s6", input ? "s5" : "s7", (r.stride & 0x3fff) << 16 | (r.swizzle ? 1u << 31 : 0), r.records,
      r.word3);
}
// dst_sel x y z w = R G B A.
inline std::uint32_t typed_word3(std::uint32_t data_format, std::uint32_t number_format, std::uint32_t select = 07654) {
  return select | (number_format << 12) | (data_format << 15);
}

inline std::string result(unsigned block, const char* reg) {
  return fmt::format("global_store_dword v1, {}, s[6:7] offset:{}\n", reg, 256 * block);
}
inline constexpr char kWait[] = "s_waitcnt vmcnt(0) lgkmcnt(0)\n";

struct MemoryMachine {
  std::vector<std::uint32_t> in = std::vector<std::uint32_t>(1024);
  std::vector<std::uint32_t> out = std::vector<std::uint32_t>(1024, 0xdeadbeef);
  AsmOptions options{};
  std::string error;  // of the last run, or empty

  MemoryMachine() {
    for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = 0x01000000 + i;
  }

  // Runs `code`; both buffers hold what it left behind.
  void run(const std::string& code, bool may_fail = false) {
    const auto device = make_device();
    SimOptions device_options = device->options();
    device_options.rules = options.rules;
    check(device->set_options(device_options));
    const Buffer<std::uint32_t> input(*device, in), output(*device, out);
    const std::string start =
        "s_load_dwordx4 s[4:7], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\nv_lshlrev_b32 v2, 4, v0\n"
        "s_waitcnt lgkmcnt(0)\n";
    const Bytes object = assemble_kernel(start + code, options);
    ASSERT_FALSE(object.empty()) << code;
    const Status status = sim_test::run(*device, object, "k", {}, Args().add(input).add(output));
    error = status ? "" : to_string(status.error());
    if (!may_fail) {
      EXPECT_EQ(error, "") << code;
    }
    in = input.read();
    out = output.read();
  }
  // Block k of the output.
  [[nodiscard]] std::uint32_t at(unsigned block, unsigned lane) const { return out[64 * block + lane]; }
};

}  // namespace zyfa::sim_test
