// LDS atomics against the definitions of the CDNA4 guide (9.2, 12.12).
#include <bit>
#include <functional>

#include "tests/unit/sim/memory_machine.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

// Old values, data and second data of the integer cases.
constexpr std::array<u32, 8> kOld{0, 1, 5, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 1000};
constexpr std::array<u32, 4> kData{0, 3, 0x80000001, 0xffffffff};
constexpr u32 kSecond = 0x00ff00f7;

struct Case32 {
  const char* name;
  bool second;
  std::function<u32(u32, u32, u32)> next;
};

TEST(LdsAtomic, IntegerDefinitions32) {
  const std::vector<Case32> cases{
      {"add_rtn_u32", false, [](u32 a, u32 b, u32) { return a + b; }},
      {"sub_rtn_u32", false, [](u32 a, u32 b, u32) { return a - b; }},
      {"rsub_rtn_u32", false, [](u32 a, u32 b, u32) { return b - a; }},
      {"inc_rtn_u32", false, [](u32 a, u32 b, u32) { return a >= b ? 0 : a + 1; }},
      {"dec_rtn_u32", false, [](u32 a, u32 b, u32) { return a == 0 || a > b ? b : a - 1; }},
      {"min_rtn_i32", false, [](u32 a, u32 b, u32) { return static_cast<i32>(b) < static_cast<i32>(a) ? b : a; }},
      {"max_rtn_i32", false, [](u32 a, u32 b, u32) { return static_cast<i32>(b) > static_cast<i32>(a) ? b : a; }},
      {"min_rtn_u32", false, [](u32 a, u32 b, u32) { return b < a ? b : a; }},
      {"max_rtn_u32", false, [](u32 a, u32 b, u32) { return b > a ? b : a; }},
      {"and_rtn_b32", false, [](u32 a, u32 b, u32) { return a & b; }},
      {"or_rtn_b32", false, [](u32 a, u32 b, u32) { return a | b; }},
      {"xor_rtn_b32", false, [](u32 a, u32 b, u32) { return a ^ b; }},
      {"wrxchg_rtn_b32", false, [](u32, u32 b, u32) { return b; }},
      {"mskor_rtn_b32", true, [](u32 a, u32 b, u32 c) { return (a & ~b) | c; }},
      {"cmpst_rtn_b32", true, [](u32 a, u32 b, u32 c) { return a == b ? c : a; }},
      {"wrap_rtn_b32", true, [](u32 a, u32 b, u32 c) { return a >= b ? a - b : a + c; }},
  };
  for (const Case32& c : cases) {
    MemoryMachine m;
    m.options.lds = 1024;
    for (u32 l = 0; l < 64; ++l) {
      m.in[l] = kOld[l % 8];
      m.in[64 + l] = l >= 32 && c.second ? kOld[l % 8] : kData[l / 8 % 4];
    }
    m.run("global_load_dword v4, v1, s[4:5]\nglobal_load_dword v5, v1, s[4:5] offset:256\nv_mov_b32 v6, 0xff00f7\n" +
          std::string(kWait) + "ds_write_b32 v1, v4\n" +
          fmt::format("ds_{} v7, v1, v5{}\nds_read_b32 v8, v1\n", c.name, c.second ? ", v6" : "") + kWait +
          result(0, "v7") + result(1, "v8"));
    for (u32 l = 0; l < 64; ++l) {
      EXPECT_EQ(m.at(0, l), m.in[l]) << c.name;
      EXPECT_EQ(m.at(1, l), c.next(m.in[l], m.in[64 + l], kSecond)) << c.name << " lane " << l;
    }
  }
}

TEST(LdsAtomic, IntegerDefinitions64WithoutResult) {
  struct Case64 {
    const char* name;
    bool second;
    std::function<u64(u64, u64, u64)> next;
  };
  const std::vector<Case64> cases{
      {"add_u64", false, [](u64 a, u64 b, u64) { return a + b; }},
      {"sub_u64", false, [](u64 a, u64 b, u64) { return a - b; }},
      {"rsub_u64", false, [](u64 a, u64 b, u64) { return b - a; }},
      {"inc_u64", false, [](u64 a, u64 b, u64) { return a >= b ? 0 : a + 1; }},
      {"dec_u64", false, [](u64 a, u64 b, u64) { return a == 0 || a > b ? b : a - 1; }},
      {"min_i64", false, [](u64 a, u64 b, u64) { return static_cast<i64>(b) < static_cast<i64>(a) ? b : a; }},
      {"max_u64", false, [](u64 a, u64 b, u64) { return b > a ? b : a; }},
      {"xor_b64", false, [](u64 a, u64 b, u64) { return a ^ b; }},
      {"mskor_b64", true, [](u64 a, u64 b, u64 c) { return (a & ~b) | c; }},
      {"cmpst_b64", true, [](u64 a, u64 b, u64 c) { return a == b ? c : a; }},
  };
  for (const Case64& c : cases) {
    MemoryMachine m;
    m.options.lds = 1024;
    for (u32 l = 0; l < 64; ++l) {
      m.in[2 * l] = kOld[l % 8];
      m.in[2 * l + 1] = kOld[(l + 3) % 8];
      const bool same = l >= 32 && c.second;
      m.in[128 + 2 * l] = same ? m.in[2 * l] : kData[l / 8 % 4];
      m.in[128 + 2 * l + 1] = same ? m.in[2 * l + 1] : kData[(l / 8 + 1) % 4];
    }
    m.run(
        "v_lshlrev_b32 v3, 3, v0\nglobal_load_dwordx2 v[4:5], v3, s[4:5]\nglobal_load_dwordx2 v[6:7], v3, s[4:5] "
        "offset:512\nv_mov_b32 v8, 0xff00f7\nv_mov_b32 v9, 0x01234567\n" +
        std::string(kWait) + "ds_write_b64 v3, v[4:5]\n" +
        fmt::format("ds_{} v3, v[6:7]{}\nds_read_b64 v[10:11], v3\n", c.name, c.second ? ", v[8:9]" : "") + kWait +
        result(0, "v10") + result(1, "v11"));
    for (u32 l = 0; l < 64; ++l) {
      const auto wide = [&](u32 at) { return m.in[at] | (static_cast<u64>(m.in[at + 1]) << 32); };
      const u64 want = c.next(wide(2 * l), wide(128 + 2 * l), 0x0123456700ff00f7ull);
      EXPECT_EQ(m.at(0, l) | (static_cast<u64>(m.at(1, l)) << 32), want) << c.name << " lane " << l;
    }
  }
}

// One lane a case: old, data -> new.
struct FloatCase {
  u32 old, data, want;
};
void check_f32(const char* name, const std::vector<FloatCase>& cases, unsigned denorm32, bool second = false) {
  MemoryMachine m;
  m.options.lds = 1024;
  m.options.denorm32 = denorm32;
  for (u32 i = 0; i < cases.size(); ++i) {
    m.in[i] = cases[i].old;
    m.in[64 + i] = cases[i].data;
  }
  m.run(
      "global_load_dword v4, v1, s[4:5]\nglobal_load_dword v5, v1, s[4:5] offset:256\n"
      // a denormal, stored by the compare-and-store forms
      "v_mov_b32 v6, 0x00000005\n" +
      std::string(kWait) + "ds_write_b32 v1, v4\n" +
      fmt::format("ds_{} v7, v1, v5{}\nds_read_b32 v8, v1\n", name, second ? ", v6" : "") + kWait + result(0, "v7") +
      result(1, "v8"));
  for (u32 i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(m.at(0, i), cases[i].old) << name;
    EXPECT_EQ(m.at(1, i), cases[i].want) << fmt::format("{} {:x} {:x} denorm {}", name, cases[i].old, cases[i].data,
                                                        denorm32);
  }
}

constexpr u32 kOne = 0x3f800000, kTwo = 0x40000000, kInf = 0x7f800000, kMinusInf = 0xff800000;
constexpr u32 kQuiet = 0x7fc00123, kQuiet2 = 0xffc00456, kSignaling = 0x7f800789, kDenormal = 0x00400000;

TEST(LdsAtomic, AddF32) {
  const std::vector<FloatCase> common{
      {kOne, kOne, kTwo},
      {0x4b800000, kOne, 0x4b800000},  // 2^24 + 1: tie to even
      {0x4b800001, kOne, 0x4b800002},  // 2^24 + 2 + 1: tie to even
      {kInf, kMinusInf, 0x7fc00000},   // only the top bit of the mantissa
      {kInf, kOne, kInf},
      {0x80000000, 0x00000000, 0x00000000},  // -0 + 0
      {0x80000000, 0x80000000, 0x80000000},
      {kQuiet, kQuiet2, kQuiet},  // the first one's NaN
      {kOne, kSignaling, kSignaling | 0x400000},
      {0x7f7fffff, 0x7f7fffff, kInf},
  };
  check_f32("add_rtn_f32", common, 0);
  check_f32("add_rtn_f32", common, 3);
  check_f32("add_rtn_f32", {{kDenormal, 0, 0}, {kDenormal, kDenormal, 0}, {0x00800001, 0x80800000, 0}}, 0);
  check_f32("add_rtn_f32", {{kDenormal, 0, kDenormal}, {kDenormal, kDenormal, 0x00800000}, {0x00800001, 0x80800000, 1}},
            3);
  // Inputs kept, results flushed, and the reverse.
  check_f32("add_rtn_f32", {{kDenormal, kDenormal, 0x00800000}, {0x00800001, 0x80800000, 0}}, 1);
  check_f32("add_rtn_f32", {{kDenormal, kDenormal, 0}, {0x00800001, 0x80800000, 1}}, 2);
}

TEST(LdsAtomic, MinMaxF32) {
  check_f32("min_rtn_f32",
            {{kOne, kTwo, kOne},
             {0, 0x80000000, 0x80000000},
             {0x80000000, 0, 0x80000000},
             {kQuiet, kOne, kOne},
             {kOne, kQuiet, kOne},
             {kSignaling, kOne, kSignaling | 0x400000},
             {kOne, kSignaling, kSignaling | 0x400000},
             {kQuiet, kQuiet2, kQuiet},
             {kMinusInf, kOne, kMinusInf},
             {3, 2, 2},
             {0x80000002, 0x80000003, 0x80000003}},
            3);
  check_f32("max_rtn_f32",
            {{kOne, kTwo, kTwo},
             {0, 0x80000000, 0},
             {0x80000000, 0, 0},
             {kQuiet, kMinusInf, kMinusInf},
             {kSignaling, kOne, kSignaling | 0x400000},
             {2, 3, 3}},
            3);
  // Denormals compare as zeros; the result is an operand as it is.
  check_f32("max_rtn_f32", {{2, 3, 2}, {0x80000005, 4, 4}, {kOne, 3, kOne}}, 0);
  check_f32("min_rtn_f32", {{3, 2, 3}, {4, 0x80000005, 0x80000005}}, 0);
}

TEST(LdsAtomic, CompareStoreF32) {
  check_f32("cmpst_rtn_f32",
            {{kOne, kOne, 5}, {0, 0x80000000, 5}, {kQuiet, kQuiet, kQuiet}, {kOne, kTwo, kOne}, {7, 7, 5}, {7, 0, 7}},
            3, true);
  check_f32("cmpst_rtn_f32", {{kOne, kOne, 0}, {7, 0, 0}, {kOne, kTwo, kOne}}, 0, true);
}

TEST(LdsAtomic, F64) {
  MemoryMachine m;
  m.options.lds = 1024;
  const std::vector<std::array<u64, 2>> cases{{std::bit_cast<u64>(1.5), std::bit_cast<u64>(2.25)},
                                              {std::bit_cast<u64>(-0.0), std::bit_cast<u64>(0.0)},
                                              {1, 2},
                                              {0x7ff0000000000001ull, std::bit_cast<u64>(1.0)}};
  for (u32 i = 0; i < cases.size(); ++i) {
    for (u32 h = 0; h < 2; ++h) {
      m.in[2 * i + h] = static_cast<u32>(cases[i][0] >> (32 * h));
      m.in[128 + 2 * i + h] = static_cast<u32>(cases[i][1] >> (32 * h));
    }
  }
  std::string code =
      "v_lshlrev_b32 v3, 3, v0\nglobal_load_dwordx2 v[4:5], v3, s[4:5]\nglobal_load_dwordx2 v[6:7], v3, "
      "s[4:5] offset:512\ns_mov_b64 exec, 15\n" +
      std::string(kWait);
  const char* names[] = {"ds_add_f64 v3, v[6:7]", "ds_min_f64 v3, v[6:7]", "ds_max_f64 v3, v[6:7]",
                         "ds_cmpst_f64 v3, v[6:7], v[6:7]"};
  for (unsigned k = 0; k < 4; ++k)
    code += fmt::format("ds_write_b64 v3, v[4:5]\n{}\nds_read_b64 v[{}:{}], v3\n", names[k], 10 + 2 * k, 11 + 2 * k);
  code += kWait;
  for (unsigned k = 0; k < 4; ++k)
    code += result(2 * k, fmt::format("v{}", 10 + 2 * k).c_str()) +
            result(2 * k + 1, fmt::format("v{}", 11 + 2 * k).c_str());
  m.run(code);
  const auto got = [&](unsigned k, unsigned i) {
    return m.at(2 * k, i) | (static_cast<u64>(m.at(2 * k + 1, i)) << 32);
  };
  const u64 quiet = 0x7ff8000000000001ull;
  const u64 want[4][4] = {{std::bit_cast<u64>(3.75), std::bit_cast<u64>(0.0), 3, quiet},
                          {cases[0][0], std::bit_cast<u64>(-0.0), 1, quiet},
                          {cases[0][1], std::bit_cast<u64>(0.0), 2, quiet},
                          {cases[0][0], std::bit_cast<u64>(0.0), 1, 0x7ff0000000000001ull}};
  for (unsigned k = 0; k < 4; ++k)
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(got(k, i), want[k][i]) << names[k] << " case " << i;
}

TEST(LdsAtomic, PackedHalves) {
  MemoryMachine m;
  m.options.lds = 1024;
  // f16: 1.0 + 2^-11 ties to even, 65504 + 65504 overflows; bf16: 1.0 + 2^-8 ties, NaN is made quiet.
  m.in[0] = 0x7bff3c00;
  m.in[64] = 0x7bff1000;
  m.in[1] = 0x00010001;
  m.in[65] = 0x00018001;
  m.in[2] = 0x7f813f80;
  m.in[66] = 0x3f803b80;
  m.run(
      "global_load_dword v4, v1, s[4:5]\nglobal_load_dword v5, v1, s[4:5] offset:256\n" + std::string(kWait) +
      "ds_write_b32 v1, v4\nds_pk_add_rtn_f16 v6, v1, v5\nds_read_b32 v7, v1\nds_write_b32 v1, v4\nds_pk_add_bf16 v1, "
      "v5\nds_read_b32 v8, v1\n" +
      kWait + result(0, "v6") + result(1, "v7") + result(2, "v8"));
  EXPECT_EQ(m.at(0, 0), 0x7bff3c00u);
  EXPECT_EQ(m.at(1, 0), 0x7c003c00u);
  EXPECT_EQ(m.at(1, 1), 0x00020000u) << "f16 denormals are kept by MODE";
  EXPECT_EQ(m.at(2, 2), 0x7fc13f80u);
}

TEST(LdsAtomic, LanesOnOneAddressActInOrder) {
  MemoryMachine m;
  m.options.lds = 64;
  m.run("v_mov_b32 v3, 0\nv_mov_b32 v4, 5\nds_write_b32 v3, v4\nds_add_rtn_u32 v5, v3, v0\nds_read_b32 v6, v3\n" +
        std::string(kWait) + result(0, "v5") + result(1, "v6"));
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), 5 + l * (l - 1) / 2);
    EXPECT_EQ(m.at(1, l), 5 + 63 * 64 / 2);
  }
}

TEST(LdsAtomic, ExchangeOfTwoAddresses) {
  MemoryMachine m;
  m.options.lds = 8192;
  m.run(
      "v_lshlrev_b32 v3, 3, v0\nv_add_u32 v4, 1000, v0\nv_add_u32 v5, 2000, v0\nds_write_b32 v3, v4 "
      "offset:8\nds_write_b32 "
      "v3, v5 offset:4\nds_wrxchg2_rtn_b32 v[6:7], v3, v0, v1 offset0:2 offset1:1\nds_read_b32 v8, v3 "
      "offset:8\nds_read_b32 v9, v3 offset:4\nds_wrxchg2st64_rtn_b32 v[10:11], v3, v0, v1 offset0:4 "
      "offset1:4\nds_read_b32 v12, v3 offset:1024\nds_write_b64 v3, v[4:5] offset:4096\nds_wrxchg2_rtn_b64 v[16:19], "
      "v3, "
      "v[0:1], v[2:3] offset0:0 offset1:255\n" +
      std::string(kWait) + result(0, "v6") + result(1, "v7") + result(2, "v8") + result(3, "v9") + result(4, "v12"));
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(m.at(0, l), 1000 + l);
    EXPECT_EQ(m.at(1, l), 2000 + l);
    EXPECT_EQ(m.at(2, l), l);
    EXPECT_EQ(m.at(3, l), 4 * l);
    EXPECT_EQ(m.at(4, l), l) << "equal offsets: one exchange with the first data";
  }
}

TEST(LdsAtomic, ConditionalExchangeOfHalves) {
  MemoryMachine m;
  m.options.lds = 1024;
  m.run(
      "v_lshlrev_b32 v3, 3, v0\nv_mov_b32 v4, 0x80000007\nv_mov_b32 v5, 9\nv_mov_b32 v6, 1\nv_mov_b32 v7, "
      "2\nds_write_b64 "
      "v3, v[6:7]\nds_condxchg32_rtn_b64 v[8:9], v3, v[4:5] offset:4\nds_read_b64 v[10:11], v3\n" +
      std::string(kWait) + result(0, "v8") + result(1, "v9") + result(2, "v10") + result(3, "v11"));
  EXPECT_EQ(m.at(0, 5), 1u);
  EXPECT_EQ(m.at(1, 5), 2u);
  EXPECT_EQ(m.at(2, 5), 7u);
  EXPECT_EQ(m.at(3, 5), 2u) << "its top bit is clear";
}

TEST(LdsAtomic, AppendAndConsumeCountActiveLanes) {
  MemoryMachine m;
  m.options.lds = 64;
  m.run(
      "s_mov_b32 m0, 0\nv_mov_b32 v3, 8\nv_mov_b32 v4, 100\nds_write_b32 v3, v4\ns_mov_b64 exec, 0xff0\nds_append v5 "
      "offset:8\nds_append v6 offset:8\ns_mov_b64 exec, 7\nds_consume v7 offset:8\ns_mov_b64 exec, -1\nds_read_b32 v8, "
      "v3\n" +
      std::string(kWait) + result(0, "v5") + result(1, "v6") + result(2, "v7") + result(3, "v8"));
  for (u32 l = 4; l < 12; ++l) {
    EXPECT_EQ(m.at(0, l), 100u);
    EXPECT_EQ(m.at(1, l), 108u);
  }
  EXPECT_EQ(m.at(2, 0), 116u);
  EXPECT_EQ(m.at(3, 0), 113u);
  m.run("s_mov_b32 m0, 4\nds_append v5\n", true);
  EXPECT_NE(m.error.find("M0 is 0x4"), std::string::npos) << m.error;
}

TEST(LdsAtomic, OutOfRangeInPartHasNoEffect) {
  MemoryMachine m;
  m.options.lds = 12;
  m.run(
      "v_mov_b32 v3, 8\nv_mov_b32 v4, 7\nv_mov_b32 v5, 7\nds_write_b32 v3, v4\nds_add_rtn_u64 v[6:7], v3, "
      "v[4:5]\nds_read_b32 "
      "v8, v3\n" +
      std::string(kWait) + result(0, "v6") + result(1, "v8"));
  EXPECT_EQ(m.at(0, 0), 0u);
  EXPECT_EQ(m.at(1, 0), 7u);
}

TEST(LdsAtomic, GlobalWaveSyncIsRefused) {
  MemoryMachine m;
  m.run("ds_gws_init v2 gds\n", true);
  EXPECT_NE(m.error.find("global wave sync is not in the CDNA4 guide"), std::string::npos) << m.error;
}

}  // namespace
}  // namespace zyfa::sim_test
