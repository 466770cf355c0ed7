// MFMA operand and result layouts, exhaustively: every (lane, register, byte) of A and B and every (lane, register) of
// D against tables written out here from gfx950-isa.md 1.1, not from the simulator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using Register = std::array<std::uint32_t, 64>;

struct Slot {
  int index, k;  // row of A or column of B, and k
};

struct Shape {
  const char* mnemonic;
  int dim, k, bits;   // bits of an element of A and B
  std::uint32_t one;  // element code of 1.0
  Slot (*slot)(int lane, int item);
};

// Rows of the table in gfx950-isa.md 1.1.
Slot bf16_32x32x16(int lane, int s) { return {lane % 32, 8 * (lane / 32) + s}; }
Slot bf16_16x16x32(int lane, int s) { return {lane % 16, 8 * (lane / 16) + s}; }
Slot half_32x32x8(int lane, int s) { return {lane % 32, 4 * (lane / 32) + s}; }
Slot fp8_32x32x64(int lane, int s) {
  return {lane % 32, s < 16 ? 16 * (lane / 32) + s : 32 + 16 * (lane / 32) + (s - 16)};
}
Slot fp8_16x16x128(int lane, int s) {
  return {lane % 16, s < 16 ? 16 * (lane / 16) + s : 64 + 16 * (lane / 16) + (s - 16)};
}
Slot narrow_32x32x64(int lane, int s) { return {lane % 32, 32 * (lane / 32) + s}; }
Slot narrow_16x16x128(int lane, int s) { return {lane % 16, 32 * (lane / 16) + s}; }
Slot fp8_32x32x16(int lane, int s) { return {lane % 32, 8 * (lane / 32) + s}; }
Slot fp8_16x16x32(int lane, int s) { return {lane % 16, 8 * (lane / 16) + s}; }
Slot i8_32x32x32(int lane, int s) { return {lane % 32, 16 * (lane / 32) + s}; }
Slot i8_16x16x64(int lane, int s) { return {lane % 16, 16 * (lane / 16) + s}; }

const Shape kShapes[] = {
    {"v_mfma_f32_32x32x16_bf16", 32, 16, 16, 0x3f80, bf16_32x32x16},
    {"v_mfma_f32_16x16x32_bf16", 16, 32, 16, 0x3f80, bf16_16x16x32},
    {"v_mfma_f32_32x32x16_f16", 32, 16, 16, 0x3c00, bf16_32x32x16},
    {"v_mfma_f32_16x16x32_f16", 16, 32, 16, 0x3c00, bf16_16x16x32},
    {"v_mfma_f32_32x32x8_f16", 32, 8, 16, 0x3c00, half_32x32x8},
    {"v_mfma_f32_32x32x8_bf16", 32, 8, 16, 0x3f80, half_32x32x8},
    {"v_mfma_f32_32x32x64_f8f6f4", 32, 64, 8, 0x38, fp8_32x32x64},
    {"v_mfma_f32_16x16x128_f8f6f4", 16, 128, 8, 0x38, fp8_16x16x128},
    {"v_mfma_f32_32x32x64_f8f6f4 cbsz:1 blgp:1", 32, 64, 8, 0x3c, fp8_32x32x64},
    {"v_mfma_f32_16x16x128_f8f6f4 cbsz:1 blgp:1", 16, 128, 8, 0x3c, fp8_16x16x128},
    {"v_mfma_f32_32x32x64_f8f6f4 cbsz:2 blgp:2", 32, 64, 6, 0x08, narrow_32x32x64},
    {"v_mfma_f32_16x16x128_f8f6f4 cbsz:2 blgp:2", 16, 128, 6, 0x08, narrow_16x16x128},
    {"v_mfma_f32_32x32x64_f8f6f4 cbsz:3 blgp:3", 32, 64, 6, 0x0c, narrow_32x32x64},
    {"v_mfma_f32_16x16x128_f8f6f4 cbsz:3 blgp:3", 16, 128, 6, 0x0c, narrow_16x16x128},
    {"v_mfma_f32_32x32x64_f8f6f4 cbsz:4 blgp:4", 32, 64, 4, 0x2, narrow_32x32x64},
    {"v_mfma_f32_16x16x128_f8f6f4 cbsz:4 blgp:4", 16, 128, 4, 0x2, narrow_16x16x128},
    {"v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 8, 0x38, fp8_32x32x16},
    {"v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 8, 0x38, fp8_16x16x32},
    {"v_mfma_i32_32x32x32_i8", 32, 32, 8, 1, i8_32x32x32},
    {"v_mfma_i32_16x16x64_i8", 16, 64, 8, 1, i8_16x16x64},
};

// (lane, register) -> row, column of C and D.
int row_of(int dim, int lane, int r) { return dim == 32 ? 8 * (r / 4) + 4 * (lane / 32) + r % 4 : 4 * (lane / 16) + r; }
int col_of(int dim, int lane) { return lane % dim; }

int items(const Shape& s) { return s.k * s.dim / 64; }
int dwords(const Shape& s) { return items(s) * s.bits / 32; }

void set_item(std::vector<Register>& registers, int lane, int item, int bits, std::uint32_t code) {
  for (int b = 0; b < bits; ++b) {
    const int at = item * bits + b;
    registers[at / 32][lane] |= ((code >> b) & 1) << (at % 32);
  }
}

// Runs many products in one kernel: A registers v[2:..] and B registers from memory, D stored, for each pair.
class Products {
 public:
  explicit Products(const Shape& shape) : shape_(shape) {}

  std::vector<std::vector<Register>> run(const std::vector<std::vector<Register>>& a,
                                         const std::vector<std::vector<Register>>& b) {
    const int n = dwords(shape_), d = shape_.dim == 32 ? 16 : 4;
    std::string name = shape_.mnemonic, fields;
    if (const auto space = name.find(' '); space != std::string::npos) {
      fields = name.substr(space);
      name.resize(space);
    }
    // s8 counts products; v1 is the input offset, v2 the output offset.
    std::string body =
        "s_load_dwordx4 s[4:7], s[0:1], 0\ns_load_dword s8, s[0:1], 16\nv_and_b32 v0, 0x3ff, v0\n"
        "v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, v1\ns_waitcnt lgkmcnt(0)\nloop:\n";
    for (int i = 0; i < 2 * n; ++i) {
      const int reg = i < n ? 16 + i : 32 + (i - n);
      body += fmt::format("global_load_dword v{}, v1, s[4:5]\nv_add_u32 v1, 0x100, v1\n", reg);
    }
    body += fmt::format("s_waitcnt vmcnt(0)\n{} v[48:{}], v[16:{}], v[32:{}], 0{}\ns_nop 15\ns_nop 15\n", name, 47 + d,
                        15 + n, 31 + n, fields);
    for (int i = 0; i < d; ++i)
      body += fmt::format("global_store_dword v2, v{}, s[6:7]\nv_add_u32 v2, 0x100, v2\n", 48 + i);
    body += "s_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\n";
    std::vector<std::uint32_t> in;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (const auto& r : a[i]) in.insert(in.end(), r.begin(), r.end());
      for (const auto& r : b[i]) in.insert(in.end(), r.begin(), r.end());
    }
    const auto device = make_device();
    const Buffer<std::uint32_t> input(*device, in), output(*device, std::vector<std::uint32_t>(a.size() * d * 64, 0));
    const Status status = sim_test::run(*device, assemble_kernel(body), "k", {},
                                        Args().add(input).add(output).add(static_cast<std::uint32_t>(a.size())));
    if (!status) ADD_FAILURE() << to_string(status.error());
    const auto flat = output.read();
    std::vector<std::vector<Register>> result(a.size(), std::vector<Register>(d));
    for (std::size_t i = 0; i < a.size(); ++i)
      for (int r = 0; r < d; ++r) std::memcpy(result[i][r].data(), flat.data() + (i * d + r) * 64, 256);
    return result;
  }

 private:
  const Shape& shape_;
};

class MfmaLayout : public testing::TestWithParam<Shape> {};

// One 1.0 in A (each lane, each item) against B of all ones in one k: D must be 1 in the row of that A element, in all
// columns, exactly when the k agree. Each k of B is tried by a B whose k is marked with distinct powers of two per k
// bit.
TEST_P(MfmaLayout, EverySlotOfAAndB) {
  const Shape& s = GetParam();
  const bool integer = std::string_view(s.mnemonic).starts_with("v_mfma_i32");
  // B holds 1.0 where bit `bit` of k is set, plus one product with all ones: together they reveal the k of A's element.
  int bits = 0;
  while ((1 << bits) < s.k) ++bits;
  for (const bool is_a : {true, false}) {
    std::vector<std::vector<Register>> single, pattern;
    std::vector<Slot> expected;
    std::vector<int> which;
    for (int lane = 0; lane < 64; ++lane) {
      // Every item of lanes in different positions: all lanes for few-item shapes, all items always.
      for (int item = 0; item < items(s); ++item) {
        if ((lane * 7 + item) % 5 != 0 && item != lane % items(s)) continue;
        for (int bit = -1; bit < bits; ++bit) {
          std::vector<Register> one(dwords(s)), many(dwords(s));
          set_item(one, lane, item, s.bits, s.one);
          for (int l = 0; l < 64; ++l)
            for (int i = 0; i < items(s); ++i)
              if (bit < 0 || ((s.slot(l, i).k >> bit) & 1)) set_item(many, l, i, s.bits, s.one);
          single.push_back(one);
          pattern.push_back(many);
          expected.push_back(s.slot(lane, item));
          which.push_back(bit);
        }
      }
    }
    Products products(s);
    const auto d = is_a ? products.run(single, pattern) : products.run(pattern, single);
    const std::uint32_t unit = integer ? 1u : std::bit_cast<std::uint32_t>(1.0f);
    for (std::size_t p = 0; p < d.size(); ++p) {
      const bool on = which[p] < 0 || ((expected[p].k >> which[p]) & 1);
      for (int r = 0; r < static_cast<int>(d[p].size()); ++r) {
        for (int l = 0; l < 64; ++l) {
          const int hit = is_a ? row_of(s.dim, l, r) : col_of(s.dim, l);
          const std::uint32_t want = on && hit == expected[p].index ? unit : 0u;
          ASSERT_EQ(d[p][r][l], want) << (is_a ? "A" : "B") << " index " << expected[p].index << " k " << expected[p].k
                                      << ", D register " << r << " lane " << l;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MfmaLayout, testing::ValuesIn(kShapes), [](const auto& info) {
  std::string name = info.param.mnemonic;
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace zyfa::sim_test
