// Scalar memory: address components, buffers, stores, atomics (CDNA4 guide 8.2).
#include "tests/unit/sim/memory_machine.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;

// Lane 0 of the block holds the scalar register.
std::string scalar_result(unsigned block, const char* reg) {
  return fmt::format("v_mov_b32 v9, {}\n", reg) + result(block, "v9");
}

TEST(ScalarMemory, ComponentsCountInDwords) {
  MemoryMachine m;
  m.run(
      "s_mov_b32 s20, 11\ns_load_dword s21, s[4:5], s20\ns_load_dword s22, s[4:5], 0x42\ns_load_dword s23, s[4:5], s20 "
      "offset:0x13\ns_add_u32 s24, s4, 0x403\ns_addc_u32 s25, s5, 0\ns_load_dword s26, s[24:25], "
      "-4\ns_scratch_load_dwordx2 "
      "s[28:29], s[4:5], s20\n" +
      std::string(kWait) + scalar_result(0, "s21") + scalar_result(1, "s22") + scalar_result(2, "s23") +
      scalar_result(3, "s26") + scalar_result(4, "s29"));
  EXPECT_EQ(m.at(0, 0), m.in[2]);
  EXPECT_EQ(m.at(1, 0), m.in[0x40 / 4]);
  EXPECT_EQ(m.at(2, 0), m.in[(8 + 0x10) / 4]) << "every component drops its low bits";
  EXPECT_EQ(m.at(3, 0), m.in[0x3fc / 4]);
  EXPECT_EQ(m.at(4, 0), m.in[8 * 64 / 4 + 1]) << "scratch forms scale the SGPR by 64";
}

TEST(ScalarMemory, BuffersCheckEachDword) {
  MemoryMachine m;
  m.run(resource({.records = 40}) + "s_buffer_load_dwordx4 s[20:23], s[8:11], 28\n" + std::string(kWait) +
        // Three records of 16 bytes: the stride scales the check and nothing else.
        resource({.stride = 16, .records = 3}) + "s_buffer_load_dwordx4 s[24:27], s[8:11], 40\n" + kWait +
        scalar_result(0, "s20") + scalar_result(1, "s22") + scalar_result(2, "s23") + scalar_result(3, "s24") +
        scalar_result(4, "s25") + scalar_result(5, "s26"));
  EXPECT_EQ(m.at(0, 0), m.in[7]);
  EXPECT_EQ(m.at(1, 0), m.in[9]);
  EXPECT_EQ(m.at(2, 0), 0u);
  EXPECT_EQ(m.at(3, 0), m.in[10]);
  EXPECT_EQ(m.at(4, 0), m.in[11]);
  EXPECT_EQ(m.at(5, 0), 0u);
}

TEST(ScalarMemory, Stores) {
  MemoryMachine m;
  m.run(resource({.records = 24, .base = "s6"}) +
        "s_mov_b32 s20, 1\ns_mov_b32 s21, 2\ns_mov_b32 s22, 3\ns_mov_b32 s23, 4\ns_store_dwordx4 s[20:23], s[6:7], "
        "0x100\ns_mov_b32 m0, 0x81\ns_store_dword s20, s[6:7], m0\ns_buffer_store_dwordx4 s[20:23], s[8:11], "
        "16\ns_scratch_store_dword "
        "s23, s[6:7], 0x200\ns_dcache_wb\ns_dcache_discard s[6:7], 0x0\ns_dcache_wb_vol\n");
  EXPECT_EQ(m.out[64], 1u);
  EXPECT_EQ(m.out[67], 4u);
  EXPECT_EQ(m.out[32], 1u);
  EXPECT_EQ(m.out[4], 1u);
  EXPECT_EQ(m.out[5], 2u);
  EXPECT_EQ(m.out[6], 0xdeadbeefu) << "beyond the records";
  EXPECT_EQ(m.out[128], 4u);
}

TEST(ScalarMemory, Atomics) {
  MemoryMachine m;
  m.out[0] = 10;
  m.out[1] = 20;
  m.out[2] = 0xffffffff;
  m.out[3] = 0;
  m.run(
      resource({.records = 4, .base = "s6"}) +
      "s_mov_b32 s20, 5\ns_atomic_add s20, s[6:7], 0x0 glc\ns_mov_b32 s21, 7\ns_atomic_sub s21, s[6:7], 0x4\ns_mov_b64 "
      "s[22:23], 1\ns_atomic_add_x2 s[22:23], s[6:7], 0x8 glc\n" +
      std::string(kWait) +
      // New value 99 if 15 is there.
      "s_mov_b32 s24, 99\ns_mov_b32 s25, 15\ns_buffer_atomic_cmpswap s[24:25], s[8:11], 0x0 glc\ns_mov_b32 s26, "
      "1\ns_buffer_atomic_add s26, s[8:11], 0x4 glc\n" +
      kWait + scalar_result(1, "s20") + scalar_result(2, "s21") + scalar_result(3, "s22") + scalar_result(4, "s24") +
      scalar_result(5, "s25") + scalar_result(6, "s26"));
  EXPECT_EQ(m.at(1, 0), 10u);
  EXPECT_EQ(m.at(2, 0), 7u) << "without glc nothing is returned";
  EXPECT_EQ(m.at(3, 0), 0xffffffffu);
  EXPECT_EQ(m.at(4, 0), 15u);
  EXPECT_EQ(m.at(5, 0), 15u);
  EXPECT_EQ(m.at(6, 0), 0u) << "out of range";
  EXPECT_EQ(m.out[0], 99u);
  EXPECT_EQ(m.out[1], 13u);
  EXPECT_EQ(m.out[2], 0u);
  EXPECT_EQ(m.out[3], 1u);
}

TEST(ScalarMemory, ProbesAreRefused) {
  MemoryMachine m;
  m.run("s_atc_probe 1, s[4:5], 0x0\n", true);
  EXPECT_NE(m.error.find("address translation probes are not in the CDNA4 guide"), std::string::npos) << m.error;
}

TEST(ScalarMemory, OutsideOfEveryBufferIsAFault) {
  MemoryMachine m;
  m.run("s_store_dword s4, s[6:7], 0x1000\n", true);
  EXPECT_NE(m.error.find("writes 4 bytes"), std::string::npos) << m.error;
}

}  // namespace
}  // namespace zyfa::sim_test
