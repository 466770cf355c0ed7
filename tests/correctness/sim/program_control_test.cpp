// Control flow of C++ programs: calls through pointers, calls with arguments on the stack, switches, computed gotos,
// an interpreter whose lanes run different programs, templates and lambdas.
#include <array>
#include <cstring>

#include "tests/correctness/sim/program.h"

namespace zyfa::sim_test {
namespace {

class ProgramControl : public Program {};

TEST_P(ProgramControl, FunctionPointers) {
  ZYFA_COMPILE(compile_cxx(R"(
NOINLINE u32 add(u32 a, u32 b) { return a + b; }
NOINLINE u32 mul(u32 a, u32 b) { return a * b; }
NOINLINE u32 power(u32 a, u32 b) { u32 r = 1; for (b &= 7; b != 0; --b) r *= a; return r; }
using Function = u32 (*)(u32, u32);
KERNEL void k(u32 GLOBAL* out, const u32 GLOBAL* in) {
  u32 i = GID * 64 + LID, v = in[i];
  Function table[] = {add, mul, power};
  u32 r = table[v % 3](v, i);
  Function uniform = table[__builtin_amdgcn_readfirstlane(in[0]) % 3];
  out[i] = r ^ uniform(i, v);
})"));
  const auto in = random_words(128, 1);
  const auto apply = [](std::uint32_t which, std::uint32_t a, std::uint32_t b) {
    if (which == 0) return a + b;
    if (which == 1) return a * b;
    std::uint32_t r = 1;
    for (b &= 7; b != 0; --b) r *= a;
    return r;
  };
  std::vector<std::uint32_t> want(128);
  for (std::uint32_t i = 0; i < 128; ++i) want[i] = apply(in[i] % 3, in[i], i) ^ apply(in[0] % 3, i, in[i]);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(128));
    if (!launch(device, 2, 64, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

// Structs too large for registers go through the stack, by value and by reference, four calls deep.
TEST_P(ProgramControl, CallsThroughTheStack) {
  ZYFA_COMPILE(compile_cxx(R"(
struct Big { u32 word[48]; };
NOINLINE u32 fold(Big b, u32 first) { u32 r = first; for (u32 w : b.word) r = r * 16777619u ^ w; return r; }
NOINLINE Big spread(u32 seed) { Big b; for (u32& w : b.word) { seed = seed * 1664525u + 1013904223u; w = seed; } return b; }
NOINLINE void swap_halves(Big& b) { for (u32 i = 0; i < 24; ++i) { u32 t = b.word[i]; b.word[i] = b.word[i + 24]; b.word[i + 24] = t; } }
NOINLINE u32 outer(u32 seed, u32 where) { Big b = spread(seed); swap_halves(b); b.word[where % 48] ^= seed; return fold(b, where) + b.word[seed % 48]; }
KERNEL void k(u32 GLOBAL* out, const u32 GLOBAL* in) { u32 i = GID * 64 + LID; out[i] = outer(in[i], i) + outer(~in[i], 3); }
)"));
  const auto in = random_words(128, 2);
  const auto outer = [](std::uint32_t seed, std::uint32_t where) {
    std::array<std::uint32_t, 48> b{};
    std::uint32_t s = seed;
    for (int i = 0; i < 48; ++i) {
      s = s * 1664525u + 1013904223u;
      b[static_cast<std::size_t>((i + 24) % 48)] = s;
    }
    b[where % 48] ^= seed;
    std::uint32_t r = where;
    for (const std::uint32_t w : b) r = (r * 16777619u) ^ w;
    return r + b[seed % 48];
  };
  std::vector<std::uint32_t> want(128);
  for (std::uint32_t i = 0; i < 128; ++i) want[i] = outer(in[i], i) + outer(~in[i], 3);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(128));
    if (!launch(device, 2, 64, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

// A dense switch on values that differ by lane, and a table of jumps behind s_setpc on one that does not. LLVM 22 drops
// the target of C's computed goto on this machine, so the table is in assembly.
TEST_P(ProgramControl, SwitchAndJumpTable) {
  ZYFA_COMPILE(compile_cxx(R"(
KERNEL void k(u32 GLOBAL* out, const u32 GLOBAL* in) {
  u32 i = GID * 64 + LID, v = in[i], r = 0;
  switch (v % 9) {
    case 0: r = v + 1; break; case 1: r = v * 3; break; case 2: r = v >> 5; [[fallthrough]]; case 3: r ^= 0x55; break;
    case 4: r = ~v; break; case 5: r = v / 11; break; case 6: r = v << 7; break; case 7: r = v * v; break; default: r = 42;
  }
  u32 constant;
  asm volatile("s_getpc_b64 s[40:41]\n s_lshl_b32 s42, %1, 3\n s_add_u32 s42, s42, 20\n s_add_u32 s40, s40, s42\n s_addc_u32 s41, s41, 0\n"
               "s_setpc_b64 s[40:41]\n"
               "s_movk_i32 %0, 0x64\n s_branch 3\n s_movk_i32 %0, 0x65\n s_branch 1\n s_movk_i32 %0, 0x77\n"
               : "=&s"(constant) : "s"(__builtin_amdgcn_readfirstlane(v % 3)) : "s40", "s41", "s42", "scc");
  out[i] = r * constant;
})"));
  const auto in = random_words(256, 3);
  std::vector<std::uint32_t> want(256);
  for (std::uint32_t i = 0; i < 256; ++i) {
    const std::uint32_t v = in[i];
    const std::array<std::uint32_t, 9> values{v + 1, v * 3, v >> 5 ^ 0x55, 0x55, ~v, v / 11, v << 7, v * v, 42};
    constexpr std::array<std::uint32_t, 3> kConstants{0x64, 0x65, 0x77};
    want[i] = values[v % 9] * kConstants[in[i & ~63u] % 3];
  }
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(256));
    if (!launch(device, 4, 64, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

// A stack machine in private memory; every lane interprets a program of its own.
TEST_P(ProgramControl, Interpreter) {
  ZYFA_COMPILE(compile_cxx(R"(
template <int kDepth> struct Stack {
  u32 slot[kDepth]; int top = 0;
  void push(u32 v) { slot[top++] = v; }
  u32 pop() { return slot[--top]; }
};
KERNEL void k(u32 GLOBAL* out, const u8 GLOBAL* programs) {
  u32 i = GID * 64 + LID; const u8 GLOBAL* code = programs + i * 32; Stack<40> s; s.push(i + 1);
  auto binary = [&](auto op) { u32 b = s.pop(), a = s.top > 0 ? s.pop() : 7; s.push(op(a, b)); };
  for (u32 at = 0, fuel = 200; at < 32 && fuel != 0; --fuel) {
    u8 c = code[at++];
    switch (c & 7) {
      case 0: s.push(c >> 3); break;
      case 1: binary([](u32 a, u32 b) { return a + b; }); break;
      case 2: binary([](u32 a, u32 b) { return a * b; }); break;
      case 3: binary([](u32 a, u32 b) { return a - b; }); break;
      case 4: binary([](u32 a, u32 b) { return a ^ b << 3; }); break;
      case 5: s.push(s.slot[s.top - 1]); break;
      case 6: if (s.slot[s.top - 1] & 1) at += c >> 6; break;
      default: if ((s.slot[s.top - 1] & 12) == 4 && at > 2) at -= 2; else s.slot[s.top - 1] += at;
    }
    if (s.top > 38) s.top = 4;
  }
  out[i] = s.slot[s.top - 1] + (u32)s.top;
})"));
  const auto words = random_words(128 * 8, 4);
  std::vector<std::uint8_t> programs(128 * 32);
  std::memcpy(programs.data(), words.data(), programs.size());
  std::vector<std::uint32_t> want;
  for (std::uint32_t i = 0; i < 128; ++i) {
    std::vector<std::uint32_t> s{i + 1};
    const std::uint8_t* code = &programs[i * 32];
    std::uint32_t at = 0;
    for (int fuel = 200; at < 32 && fuel != 0; --fuel) {
      const std::uint8_t c = code[at++];
      const int op = c & 7;
      if (op == 0) {
        s.push_back(c >> 3);
      } else if (op <= 4) {
        const std::uint32_t b = s.back();
        s.pop_back();
        std::uint32_t a = 7;
        if (!s.empty()) {
          a = s.back();
          s.pop_back();
        }
        s.push_back(op == 1 ? a + b : op == 2 ? a * b : op == 3 ? a - b : a ^ (b << 3));
      } else if (op == 5) {
        s.push_back(s.back());
      } else if (op == 6) {
        if ((s.back() & 1) != 0) at += c >> 6;
      } else if ((s.back() & 12) == 4 && at > 2) {
        at -= 2;
      } else {
        s.back() += at;
      }
      if (s.size() > 38) s.resize(4);
    }
    want.push_back(s.back() + static_cast<std::uint32_t>(s.size()));
  }
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint8_t> bin(device, programs);
    const Buffer<std::uint32_t> out(device, std::vector<std::uint32_t>(128));
    if (!launch(device, 2, 64, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

// Generic pointers that lead to LDS, to private and to global memory, chosen by lane.
TEST_P(ProgramControl, GenericPointers) {
  ZYFA_COMPILE(compile_cxx(R"(
LOCAL u32 shared_words[64];
NOINLINE u32 sum(const u32* p, u32 n) { u32 r = 0; for (u32 i = 0; i < n; ++i) r = r * 3 + p[i]; return r; }
NOINLINE void bump(u32* p, u32 by) { *p += by; }
KERNEL void k(u32 GLOBAL* out, u32 GLOBAL* in) {
  u32 i = LID, mine[8];
  for (u32 j = 0; j < 8; ++j) mine[j] = in[i] + j * j;
  shared_words[i] = in[63 - i]; barrier();
  u32* p = i % 3 == 0 ? (u32*)&shared_words[i & 56] : i % 3 == 1 ? mine : (u32*)(in + (i & 56));
  u32 r = sum(p, 8); barrier();
  u32* q = i % 3 == 0 ? (u32*)&shared_words[i] : i % 3 == 1 ? &mine[i & 7] : (u32*)(in + i);
  bump(q, i);
  out[i] = r + *q;
})"));
  const auto in = random_words(64, 5);
  std::vector<std::uint32_t> want(64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::uint32_t r = 0;
    for (std::uint32_t j = 0; j < 8; ++j)
      r = r * 3 + (i % 3 == 0 ? in[63 - (i & 56) - j] : i % 3 == 1 ? in[i] + j * j : in[(i & 56) + j]);
    const std::uint32_t last = i % 3 == 0 ? in[63 - i] : i % 3 == 1 ? in[i] + (i & 7) * (i & 7) : in[i];
    want[i] = r + last + i;
  }
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(64));
    if (!launch(device, 1, 64, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

INSTANTIATE_TEST_SUITE_P(Levels, ProgramControl, testing::Values("-O0", "-O2", "-O3"), level_name);

}  // namespace
}  // namespace zyfa::sim_test
