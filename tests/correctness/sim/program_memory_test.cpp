// Memory in the ways compilers use it: LDS and global atomics, transposes, copies of structs and odd widths, bytes and
// shorts, private memory with dynamic indices, a scan through LDS.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/correctness/sim/program.h"

namespace zyfa::sim_test {
namespace {

class ProgramMemory : public Program {};

TEST_P(ProgramMemory, LdsHistogram) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global u32* bins, global const u32* x, u32 n) {
  local u32 count[256];
  count[LID] = 0; BARRIER();
  for (u32 i = GID * 256 + LID; i < n; i += 512) {
    u32 w = x[i];
    for (u32 byte = 0; byte < 4; ++byte)
      __opencl_atomic_fetch_add((local atomic_uint*)&count[w >> 8 * byte & 255], 1, memory_order_relaxed, memory_scope_work_group);
  }
  BARRIER();
  __opencl_atomic_fetch_add((global atomic_uint*)&bins[LID], count[LID], memory_order_relaxed, memory_scope_device);
})"));
  const auto x = random_words(1500, 1);
  std::vector<std::uint32_t> want(256);
  for (const auto w : x)
    for (int byte = 0; byte < 4; ++byte) ++want[w >> 8 * byte & 255];
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bins(device, std::vector<std::uint32_t>(256)), in(device, x);
    if (!launch(device, 2, 256, Args().add(bins).add(in).add(1500u))) return;
    EXPECT_EQ(bins.read(), want);
  });
}

// Integer, 64-bit, f32, f64 and packed f16 adds in memory, and a compare-and-swap loop that multiplies. All exact.
TEST_P(ProgramMemory, GlobalAtomics) {
  ZYFA_COMPILE(compile_cl(R"(
typedef half half2_ __attribute__((ext_vector_type(2)));
kernel void k(global int* sum, global ulong* wide, global float* f, global double* d, global half2_* h, global u32* product, global const int* x) {
  int v = x[GID * 128 + LID];
  __opencl_atomic_fetch_add((global atomic_int*)sum, v, memory_order_relaxed, memory_scope_device);
  __opencl_atomic_fetch_add((global atomic_ulong*)wide, (ulong)(uint)v << 20, memory_order_relaxed, memory_scope_device);
  __builtin_amdgcn_global_atomic_fadd_f32(f, (float)v);
  __builtin_amdgcn_global_atomic_fadd_f64(d, (double)v * 0.5);
  __builtin_amdgcn_global_atomic_fadd_v2f16(h, (half2_)((half)(v & 1), (half)(v >> 1 & 1)));
  u32 seen = *(volatile global u32*)product;
  while (!__opencl_atomic_compare_exchange_strong((global atomic_uint*)product, &seen, seen * ((u32)v | 1), memory_order_relaxed, memory_order_relaxed, memory_scope_device)) {}
})",
                          "-munsafe-fp-atomics"));
  const auto x = random_ints(256, 2, -500, 500);
  std::uint64_t wide = 0;
  std::uint32_t product = 1;
  int sum = 0, low = 0, high = 0;
  for (const int v : x) {
    sum += v;
    wide += std::uint64_t{static_cast<std::uint32_t>(v)} << 20;
    product *= static_cast<std::uint32_t>(v) | 1;
    low += v & 1;
    high += v >> 1 & 1;
  }
  on_each_device([&](SimDevice& device) {
    const Buffer<int> isum(device, {0}), in(device, x);
    const Buffer<std::uint64_t> iwide(device, {0});
    const Buffer<float> f(device, {0});
    const Buffer<double> d(device, {0});
    const Buffer<_Float16> h(device, std::vector<_Float16>(2));
    const Buffer<std::uint32_t> p(device, {1});
    if (!launch(device, 2, 128, Args().add(isum).add(iwide).add(f).add(d).add(h).add(p).add(in))) return;
    EXPECT_EQ(isum.read()[0], sum);
    EXPECT_EQ(iwide.read()[0], wide);
    EXPECT_EQ(f.read()[0], static_cast<float>(sum));
    EXPECT_EQ(d.read()[0], 0.5 * sum);
    EXPECT_EQ(static_cast<int>(h.read()[0]), low);
    EXPECT_EQ(static_cast<int>(h.read()[1]), high);
    EXPECT_EQ(p.read()[0], product);
  });
}

// 16-bit elements through a tile with a padded row.
TEST_P(ProgramMemory, TransposeShorts) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global u16* out, global const u16* in) {
  local u16 tile[32][33];
  u32 bx = GID % 3, by = GID / 3, x = LID % 32, y = LID / 32;
  for (u32 i = 0; i < 32; i += 8) tile[y + i][x] = in[(by * 32 + y + i) * 96 + bx * 32 + x];
  BARRIER();
  for (u32 i = 0; i < 32; i += 8) out[(bx * 32 + y + i) * 64 + by * 32 + x] = tile[x][y + i];
})"));
  std::vector<std::uint16_t> in(64 * 96), want(96 * 64);
  std::iota(in.begin(), in.end(), std::uint16_t{60000});
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < 96; ++c) want[c * 64 + r] = in[r * 96 + c];
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint16_t> bin(device, in), out(device, std::vector<std::uint16_t>(64 * 96));
    if (!launch(device, 6, 256, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

// Without padding: a store of bytes that nobody wrote is a finding.
struct Record {
  std::uint8_t kind, flag;
  std::uint16_t weight;
  std::uint32_t words[7];
  double value;
  std::uint8_t tail[8];
};

// Structs by value through memory, private memory and LDS; memcpy of 3 to 40 bytes; unaligned words, taken apart by the
// compiler: strict mode asks for aligned LDS accesses.
TEST_P(ProgramMemory, StructCopies) {
  ZYFA_COMPILE(compile_cl(R"(
typedef struct { u8 kind, flag; u16 weight; u32 words[7]; double value; u8 tail[8]; } Record;
typedef struct __attribute__((packed)) { u8 a; u32 b; u64 c; u16 d; } Packed;
NOINLINE Record turn(Record r) {
  Record s = r; s.kind ^= 0x5a; s.weight += r.kind;
  for (int i = 0; i < 7; ++i) s.words[i] = r.words[6 - i] + i;
  s.value = -r.value; s.tail[4] = r.tail[0]; return s;
}
kernel void k(global Record* out, global u8* bytes, global Packed* packed, global const Record* in) {
  local Record shared[64];
  u32 i = GID * 64 + LID;
  shared[LID] = turn(in[i]); BARRIER();
  Record r = shared[63 - LID];
  out[i] = r;
  __builtin_memcpy(bytes + i * 61, &r, 40);
  __builtin_memcpy(bytes + i * 61 + 40, r.tail, 3);
  __builtin_memcpy(bytes + i * 61 + 43, &r.words[2], 12);
  Packed p = {(u8)i, r.words[0], (u64)r.words[1] << 16 | r.weight, (u16)r.words[3]};
  packed[i] = p; p.b += packed[i].c; packed[i] = p;
})",
                          "-Xclang -target-feature -Xclang -unaligned-access-mode"));
  struct __attribute__((packed)) Packed {
    std::uint8_t a;
    std::uint32_t b;
    std::uint64_t c;
    std::uint16_t d;
  };
  std::vector<Record> in(128), want(128);
  const auto w = random_words(128 * 10, 3);
  for (int i = 0; i < 128; ++i) {
    std::memset(&in[i], 0, sizeof(Record));
    in[i].kind = static_cast<std::uint8_t>(w[10 * i]);
    in[i].weight = static_cast<std::uint16_t>(w[10 * i] >> 8);
    std::copy_n(&w[10 * i + 1], 7, in[i].words);
    in[i].value = w[10 * i + 8];
    std::memcpy(in[i].tail, &w[10 * i + 9], 4);
    in[i].flag = static_cast<std::uint8_t>(w[10 * i] >> 24);
  }
  const auto turn = [](const Record& r) {
    Record s = r;
    s.kind ^= 0x5a;
    s.weight = static_cast<std::uint16_t>(s.weight + r.kind);
    for (int i = 0; i < 7; ++i) s.words[i] = r.words[6 - i] + static_cast<std::uint32_t>(i);
    s.value = -r.value;
    s.tail[4] = r.tail[0];
    return s;
  };
  for (int i = 0; i < 128; ++i) want[i] = turn(in[(i & 64) + 63 - (i & 63)]);
  on_each_device([&](SimDevice& device) {
    const Buffer<Record> bin(device, in), out(device, std::vector<Record>(128));
    const Buffer<std::uint8_t> bytes(device, std::vector<std::uint8_t>(128 * 61));
    const Buffer<Packed> packed(device, std::vector<Packed>(128));
    if (!launch(device, 2, 64, Args().add(out).add(bytes).add(packed).add(bin))) return;
    const auto o = out.read();
    const auto b = bytes.read();
    const auto p = packed.read();
    for (int i = 0; i < 128; ++i) {
      const Record& r = want[i];
      ASSERT_EQ(o[i].kind, r.kind) << i;
      ASSERT_EQ(o[i].flag, r.flag) << i;
      ASSERT_EQ(o[i].weight, r.weight) << i;
      ASSERT_EQ(std::memcmp(o[i].words, r.words, sizeof r.words), 0) << i;
      ASSERT_EQ(o[i].value, r.value) << i;
      ASSERT_EQ(std::memcmp(o[i].tail, r.tail, 8), 0) << i;
      ASSERT_EQ(std::memcmp(&b[i * 61 + 4], r.words, 28), 0) << i;
      ASSERT_EQ(std::memcmp(&b[i * 61 + 40], r.tail, 3), 0) << i;
      ASSERT_EQ(std::memcmp(&b[i * 61 + 43], &r.words[2], 12), 0) << i;
      const std::uint64_t c = std::uint64_t{r.words[1]} << 16 | r.weight;
      ASSERT_EQ(p[i].a, static_cast<std::uint8_t>(i));
      ASSERT_EQ(p[i].b, r.words[0] + static_cast<std::uint32_t>(c)) << i;
      ASSERT_EQ(p[i].c, c);
      ASSERT_EQ(p[i].d, static_cast<std::uint16_t>(r.words[3]));
    }
  });
}

// Signed and unsigned bytes and shorts from global memory, LDS and private memory.
TEST_P(ProgramMemory, BytesAndShorts) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global u8* text, global short* sums, global const char* in, global const short* s) {
  local char line[256]; u32 i = GID * 256 + LID;
  char c = in[i];
  line[LID] = c >= 'a' && c <= 'z' ? c - 32 : c; BARRIER();
  u8 window[8];
  for (u32 j = 0; j < 8; ++j) window[j] = (u8)line[(LID + j * 3) & 255];
  short sum = s[i];
  for (u32 j = 0; j < 8; ++j) sum = (short)(sum * 3 + (char)window[(j + (u8)c) & 7]);
  text[i] = (u8)line[255 - LID]; sums[i] = sum;
})"));
  const auto w = random_words(256, 4);
  std::vector<std::int8_t> in(512);
  std::vector<std::int16_t> s(512);
  std::memcpy(in.data(), w.data(), 512);
  std::memcpy(s.data(), w.data(), 1024);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::int8_t> bin(device, in);
    const Buffer<std::int16_t> bs(device, s), sums(device, std::vector<std::int16_t>(512));
    const Buffer<std::uint8_t> text(device, std::vector<std::uint8_t>(512));
    if (!launch(device, 2, 256, Args().add(text).add(sums).add(bin).add(bs))) return;
    const auto t = text.read();
    const auto got = sums.read();
    const auto upper = [&](int base, int at) {
      const std::int8_t c = in[base + (at & 255)];
      return static_cast<std::int8_t>(c >= 'a' && c <= 'z' ? c - 32 : c);
    };
    for (int i = 0; i < 512; ++i) {
      const int base = i & ~255;
      ASSERT_EQ(t[i], static_cast<std::uint8_t>(upper(base, 255 - i))) << i;
      std::int16_t sum = s[i];
      for (int j = 0; j < 8; ++j) {
        const int pick = (j + static_cast<std::uint8_t>(in[i])) & 7;
        sum = static_cast<std::int16_t>(sum * 3 + upper(base, i + pick * 3));
      }
      ASSERT_EQ(got[i], sum) << i;
    }
  });
}

// A private array sorted in place: every index is dynamic and differs by lane.
TEST_P(ProgramMemory, PrivateSort) {
  ZYFA_COMPILE(compile_cl(R"(
NOINLINE void sort(u32* a, u32 n) {
  for (u32 i = 1; i < n; ++i) { u32 v = a[i], j = i; while (j > 0 && a[j - 1] > v) { a[j] = a[j - 1]; --j; } a[j] = v; }
}
kernel void k(global u32* out, global const u32* in) {
  u32 a[24], i = GID * 64 + LID, n = 8 + LID % 17;
  for (u32 j = 0; j < n; ++j) a[j] = in[i * 24 + j];
  sort(a, n);
  for (u32 j = 0; j < n; ++j) out[i * 24 + j] = a[j];
})"));
  const auto in = random_words(128 * 24, 5);
  std::vector<std::uint32_t> want(in.size(), 7);
  for (int i = 0; i < 128; ++i) {
    const int n = 8 + i % 64 % 17;
    std::partial_sort_copy(&in[i * 24], &in[i * 24] + n, &want[i * 24], &want[i * 24] + n);
  }
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(in.size(), 7));
    if (!launch(device, 2, 64, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

// Exclusive scan of 512 values by 256 work-items, up and down a tree in LDS.
TEST_P(ProgramMemory, TreeScan) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global u32* out, global const u32* in) {
  local u32 t[512]; u32 l = LID, base = GID * 512;
  t[2 * l] = in[base + 2 * l]; t[2 * l + 1] = in[base + 2 * l + 1];
  u32 offset = 1;
  for (u32 d = 256; d > 0; d >>= 1) {
    BARRIER();
    if (l < d) t[offset * (2 * l + 2) - 1] += t[offset * (2 * l + 1) - 1];
    offset *= 2;
  }
  BARRIER();
  if (l == 0) t[511] = 0;
  for (u32 d = 1; d < 512; d *= 2) {
    offset >>= 1; BARRIER();
    if (l < d) { u32 a = offset * (2 * l + 1) - 1, b = offset * (2 * l + 2) - 1, x = t[a]; t[a] = t[b]; t[b] += x; }
  }
  BARRIER();
  out[base + 2 * l] = t[2 * l]; out[base + 2 * l + 1] = t[2 * l + 1];
})"));
  const auto in = random_words(1024, 6);
  std::vector<std::uint32_t> want(1024);
  for (int g = 0; g < 2; ++g) std::exclusive_scan(&in[512 * g], &in[512 * g] + 512, &want[512 * g], 0u);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(1024));
    if (!launch(device, 2, 256, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

INSTANTIATE_TEST_SUITE_P(Levels, ProgramMemory, testing::Values("-O0", "-O2", "-O3"), level_name);

}  // namespace
}  // namespace zyfa::sim_test
