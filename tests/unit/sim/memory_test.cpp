// Memory rules of gfx950-isa.md section 3: buffer descriptors, direct-to-LDS loads, LDS forms and transposed reads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using Lanes = std::array<u32, 64>;

constexpr char kStart[] = R"(
s_load_dwordx4 s[4:7], s[0:1], 0
s_load_dword s10, s[0:1], 16
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
v_lshlrev_b32 v2, 4, v0
s_waitcnt lgkmcnt(0)
s_mov_b32 s8, s4
s_and_b32 s9, s5, 0xffff
s_mov_b32 s11, 0x20000
)";  // s[8:11]: raw buffer over the input with num_records = third argument

struct Machine {
  std::shared_ptr<SimDevice> device = make_device();
  std::vector<u32> in;
  explicit Machine(std::size_t dwords = 1024) {
    for (u32 i = 0; i < dwords; ++i) in.push_back(0x1000000 + i);
  }
  std::vector<u32> run(const std::string& code, u32 records, unsigned lds = 0, std::size_t out_dwords = 1024,
                       ErrorCode* error = nullptr) {
    const Buffer<u32> input(*device, in), output(*device, std::vector<u32>(out_dwords, 0xdeadbeef));
    const Status status = sim_test::run(*device, assemble_kernel(kStart + code, {.lds = lds}), "k", {},
                                        Args().add(input).add(output).add(records));
    if (error != nullptr) {
      *error = status ? ErrorCode::kInternal : status.error().code;
    } else if (!status) {
      ADD_FAILURE() << to_string(status.error());
    }
    return output.read();
  }
};

TEST(BufferDescriptor, ClipsEachDwordByItsOwnOffset) {
  Machine m;
  // Lane l reads 16 bytes at 16 l; 1000 bytes are in range: lane 62 has dwords at 992 and 996 inside, 1000 and 1004
  // not.
  const auto out = m.run(
      "buffer_load_dwordx4 v[4:7], v2, s[8:11], 0 offen\ns_waitcnt vmcnt(0)\nglobal_store_dwordx4 v2, v[4:7], s[6:7]\n",
      1000);
  for (u32 i = 0; i < 256; ++i) EXPECT_EQ(out[i], i < 250 ? m.in[i] : 0u) << i;
}

TEST(BufferDescriptor, ScalarOffsetIsOutsideOfTheCheck) {
  Machine m;
  const auto out = m.run(
      "s_movk_i32 s12, 0x400\nbuffer_load_dword v4, v1, s[8:11], s12 offen offset:4\ns_waitcnt "
      "vmcnt(0)\nglobal_store_dword v1, v4, s[6:7]\n",
      128);
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(out[l], 4 * l + 4 < 128 ? m.in[256 + l + 1] : 0u) << l;
}

TEST(BufferDescriptor, StoresOutOfRangeAreDropped) {
  Machine m;
  const auto out = m.run(
      "s_mov_b32 s8, s6\ns_and_b32 s9, s7, 0xffff\nbuffer_store_dwordx2 v[0:1], v1, s[8:11], 0 offen offset:8\n", 30);
  // Lane l stores at 4l + 8 and 4l + 12; later lanes overwrite. In range: offsets below 30.
  std::vector<u32> want(1024, 0xdeadbeef);
  for (u32 l = 0; l < 64; ++l) {
    if (4 * l + 8 < 30) want[l + 2] = l;
    if (4 * l + 12 < 30) want[l + 3] = 4 * l;
  }
  EXPECT_EQ(out, want);
}

TEST(BufferDescriptor, UnboundReadsZeroAndDropsWrites) {
  Machine m;
  const auto out = m.run(
      "s_mov_b32 s11, 0\nbuffer_load_dword v4, v1, s[8:11], 0 offen\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v4, "
      "s[6:7]\nbuffer_store_dword v0, v1, s[8:11], 0 offen\n",
      4096);
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(out[l], 0u);
}

TEST(BufferDescriptor, DescriptorBeyondTheBufferIsAFault) {
  Machine m;
  ErrorCode error{};
  m.run("buffer_load_dword v4, v1, s[8:11], 0 offen offset:4092\ns_waitcnt vmcnt(0)\n", 8192, 0, 1024, &error);
  EXPECT_EQ(error, ErrorCode::kMemoryFault);
}

TEST(BufferDescriptor, IndexedAddressing) {
  Machine m;
  // Stride 12 bytes, 40 records: word 1 bits 29:16.
  const auto out = m.run(
      "s_or_b32 s9, s9, 0xc0000\nbuffer_load_dword v4, v0, s[8:11], 0 idxen offset:4\ns_waitcnt "
      "vmcnt(0)\nglobal_store_dword v1, v4, s[6:7]\n",
      40);
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(out[l], l < 40 ? m.in[3 * l + 1] : 0u) << l;
}

TEST(GlobalMemory, FormsAndSigns) {
  Machine m(256);
  m.in[0] = 0x80ff7f01;
  const auto out = m.run(
      "v_mov_b32 v3, 0\nglobal_load_ubyte v4, v3, s[4:5] offset:2\nglobal_load_sbyte v5, v3, s[4:5] "
      "offset:2\nglobal_load_ushort v6, v3, s[4:5] offset:2\n"
      "global_load_sshort v7, v3, s[4:5] offset:2\nv_mov_b32 v8, -1\nglobal_load_short_d16 v8, v3, s[4:5]\nv_mov_b32 "
      "v9, -1\nglobal_load_ubyte_d16_hi v9, v3, s[4:5]\ns_waitcnt vmcnt(0)\n"
      "global_store_dwordx4 v3, v[4:7], s[6:7]\nglobal_store_dwordx2 v3, v[8:9], s[6:7] offset:16\nv_mov_b32 v4, "
      "0x1234abcd\nglobal_store_byte v3, v4, s[6:7] offset:24\nglobal_store_short_d16_hi v3, v4, s[6:7] offset:26\n",
      0);
  EXPECT_EQ(out[0], 0xffu);
  EXPECT_EQ(out[1], 0xffffffffu);
  EXPECT_EQ(out[2], 0x80ffu);
  EXPECT_EQ(out[3], 0xffff80ffu);
  EXPECT_EQ(out[4], 0xffff7f01u);
  EXPECT_EQ(out[5], 0x0001ffffu);
  EXPECT_EQ(out[6], 0x1234becdu);
}

TEST(DirectToLds, AddressIsM0PlusOffsetPlusLane) {
  Machine m;
  // Lanes read in reverse order; the LDS place is linear in the lane. offset:16 moves both addresses.
  const auto out = m.run(
      "v_sub_u32 v3, 63, v0\nv_lshlrev_b32 v3, 4, v3\ns_mov_b32 m0, 0x10040\ns_nop 0\nbuffer_load_dwordx4 v3, s[8:11], "
      "0 offen offset:16 lds\n"
      "s_waitcnt vmcnt(0)\nv_add_u32 v4, 0x10050, v2\nds_read_b128 v[4:7], v4\ns_waitcnt "
      "lgkmcnt(0)\nglobal_store_dwordx4 v2, v[4:7], s[6:7]\n",
      1024, 0x10050 + 1024);
  for (u32 l = 0; l < 64; ++l)
    for (u32 d = 0; d < 4; ++d) {
      const u32 byte = 16 * (63 - l) + 16 + 4 * d;
      EXPECT_EQ(out[4 * l + d], byte < 1024 ? m.in[byte / 4] : 0u) << l;
    }
}

TEST(DirectToLds, InactiveLanesWriteNothingAndDwordsStepByFour) {
  Machine m;
  const auto out = m.run(
      "v_mov_b32 v4, 7\nds_write_b32 v1, v4\ns_mov_b32 m0, 0\ns_mov_b64 exec, 0xff00\nglobal_load_lds_dword v1, s[4:5] "
      "offset:0\ns_mov_b64 exec, -1\n"
      "s_waitcnt vmcnt(0) lgkmcnt(0)\nds_read_b32 v5, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v5, s[6:7]\n",
      0, 1024);
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(out[l], l >= 8 && l < 16 ? m.in[l] : 7u) << l;
}

TEST(DirectToLds, DataLandsWhenTheWaveWaits) {
  Machine m;
  const auto out = m.run(
      "v_mov_b32 v4, 7\nds_write_b32 v1, v4\ns_waitcnt lgkmcnt(0)\ns_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dword v1, "
      "s[4:5]\nglobal_load_dword v9, v1, s[4:5]\n"
      "s_waitcnt vmcnt(2)\nds_read_b32 v5, v1\ns_waitcnt vmcnt(1)\nds_read_b32 v6, v1\ns_waitcnt vmcnt(0) "
      "lgkmcnt(0)\nglobal_store_dword v1, v5, s[6:7]\nglobal_store_dword v1, v6, s[6:7] offset:256\n",
      0, 1024);
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(out[l], 7u);
    EXPECT_EQ(out[64 + l], m.in[l]);
  }
}

TEST(Lds, ReadAndWriteForms) {
  Machine m;
  const auto out = m.run(
      "v_lshlrev_b32 v3, 3, v0\nds_write_b64 v3, v[0:1]\nds_write2_b32 v3, v1, v0 offset0:128 "
      "offset1:129\nds_write2st64_b64 v3, v[0:1], v[2:3] offset0:2 offset1:3\n"
      "s_waitcnt lgkmcnt(0)\nds_read_b64 v[4:5], v3\nds_read2_b32 v[6:7], v3 offset0:129 offset1:128\nds_read2st64_b64 "
      "v[8:11], v3 offset0:3 offset1:2\nds_read_u16 v12, v3 offset:1026\nds_read_i8 v13, v3 offset:4\n"
      "s_waitcnt lgkmcnt(0)\nglobal_store_dwordx2 v3, v[4:5], s[6:7]\nglobal_store_dwordx2 v3, v[6:7], s[6:7] "
      "offset:512\nglobal_store_dwordx4 v2, v[8:11], s[6:7] offset:1024\n"
      "global_store_dwordx2 v3, v[12:13], s[6:7] offset:2048\n",
      0, 8192);
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(out[2 * l], l);
    EXPECT_EQ(out[2 * l + 1], 4 * l);
    EXPECT_EQ(out[128 + 2 * l], l);
    EXPECT_EQ(out[128 + 2 * l + 1], 4 * l);
    EXPECT_EQ(out[256 + 4 * l], 16 * l);
    EXPECT_EQ(out[256 + 4 * l + 1], 8 * l);
    EXPECT_EQ(out[256 + 4 * l + 2], l);
    EXPECT_EQ(out[256 + 4 * l + 3], 4 * l);
    // The byte pairs at 1024 + 2 hold the high half of l (write2st64 stride 64 * 8).
    EXPECT_EQ(out[512 + 2 * l], 0u);
    EXPECT_EQ(out[512 + 2 * l + 1], static_cast<u32>(static_cast<std::int8_t>(4 * l)));
  }
}

TEST(Lds, OutOfRangeReadsZeroAndDropsWrites) {
  Machine m;
  const auto out = m.run(
      "v_mov_b32 v4, 9\nv_mov_b32 v5, 9\nds_write_b64 v2, v[4:5]\nds_read_b64 v[6:7], v2\ns_waitcnt "
      "lgkmcnt(0)\nv_lshlrev_b32 v3, 3, v0\nglobal_store_dwordx2 v3, v[6:7], s[6:7]\n",
      0, 516);
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(out[2 * l], 16 * l < 516 ? 9u : 0u) << l;
    EXPECT_EQ(out[2 * l + 1], 16 * l + 4 < 516 ? 9u : 0u) << l;
  }
}

TEST(Lds, PermutesAndSwizzles) {
  Machine m;
  const auto out = m.run(
      "v_xor_b32 v3, 5, v0\nv_lshlrev_b32 v3, 2, v3\nds_bpermute_b32 v4, v3, v0\nds_permute_b32 v5, v3, "
      "v1\nds_swizzle_b32 v6, v0 offset:swizzle(SWAP,16)\nds_swizzle_b32 v7, v0 offset:swizzle(QUAD_PERM,3,2,1,0)\n"
      "s_waitcnt lgkmcnt(0)\nglobal_store_dwordx4 v2, v[4:7], s[6:7]\n",
      0, 0);
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(out[4 * l], l ^ 5);
    EXPECT_EQ(out[4 * l + 1], 4 * (l ^ 5));
    EXPECT_EQ(out[4 * l + 2], l ^ 16);
    EXPECT_EQ(out[4 * l + 3], l ^ 3);
  }
}

// Item n of lane l comes from lane `from`, element `element` (the table of 3.4).
struct Transpose {
  const char* name;
  int bits, bytes;
  int (*from)(int l, int n);
  int (*element)(int l);
};
class TransposedRead : public testing::TestWithParam<Transpose> {};

TEST_P(TransposedRead, FollowsTheTable) {
  const Transpose& t = GetParam();
  // LDS filled with random bytes; lane addresses permuted so that own address and lane number differ.
  Machine m;
  std::mt19937 rng(1);
  for (auto& x : m.in) x = static_cast<u32>(rng());
  const int stride = t.bytes == 12 ? 12 : 8;
  const auto out =
      m.run(fmt::format("s_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dwordx4 v2, s[4:5]\ns_waitcnt vmcnt(0)\nv_xor_b32 "
                        "v3, 37, v0\nv_mul_u32_u24 v3, {}, v3\n{} v[{}], v3\ns_waitcnt lgkmcnt(0)\n"
                        "global_store_dwordx4 v2, v[4:7], s[6:7]\n",
                        stride, t.name, t.bytes == 12 ? "4:6" : "4:5"),
            0, 4096);
  const auto* memory = reinterpret_cast<const std::uint8_t*>(m.in.data());
  auto bit = [&](int lane, int index) { return (memory[(lane ^ 37) * stride + index / 8] >> (index % 8)) & 1; };
  for (int l = 0; l < 64; ++l) {
    for (int n = 0; n < t.bytes * 8 / t.bits; ++n) {
      for (int b = 0; b < t.bits; ++b) {
        const int at = n * t.bits + b;
        ASSERT_EQ((out[static_cast<std::size_t>(4 * l + at / 32)] >> (at % 32)) & 1,
                  static_cast<u32>(bit(t.from(l, n), t.element(l) * t.bits + b)))
            << t.name << " lane " << l << " item " << n;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Widths, TransposedRead,
    testing::Values(
        Transpose{"ds_read_b64_tr_b16", 16, 8, [](int l, int n) { return (l & ~15) + 4 * n + ((l >> 2) & 3); },
                  [](int l) { return l & 3; }},
        Transpose{"ds_read_b64_tr_b8", 8, 8, [](int l, int n) { return (l & ~15) + 2 * n + ((l >> 3) & 1); },
                  [](int l) { return l & 7; }},
        Transpose{"ds_read_b64_tr_b4", 4, 8, [](int l, int n) { return (l & ~15) + n; }, [](int l) { return l & 15; }},
        Transpose{"ds_read_b96_tr_b6", 6, 12, [](int l, int n) { return (l & ~15) + n; },
                  [](int l) { return l & 15; }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zyfa::sim_test
