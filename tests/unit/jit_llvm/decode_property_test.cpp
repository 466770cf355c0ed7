// Decoding of random words: whatever LLVM decodes, every register its text names must be among the facts' reads and
// writes, and every byte must belong to exactly one entry.
#include <array>
#include <charconv>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "jit/llvm/assembler.h"

namespace zyfa::jit {
namespace {

struct Named {
  RegRange range;
  std::string token;
};

// Registers that the printed operand list names: v3, v[4:7], s0, a[0:3], vcc, exec, m0 and their halves. Register banks
// that facts leave out (ttmp, flat_scratch, ...) do not match.
std::vector<Named> named_registers(const std::string& text) {
  std::vector<Named> result;
  std::size_t at = text.find(' ');
  while (at != std::string::npos && at < text.size()) {
    const std::size_t begin = text.find_first_not_of(" ,-|()", at);
    if (begin == std::string::npos) break;
    std::size_t end = text.find_first_of(" ,|)", begin);
    end = std::min(end, text.size());
    std::string token = text.substr(begin, end - begin);
    at = end;
    for (const char* wrapper : {"abs(", "neg(", "sext("}) {
      if (token.starts_with(wrapper)) token = token.substr(std::string(wrapper).size());
    }
    if (token.empty() || token.find(':') < token.find('[')) continue;  // "op_sel:[0,1]"
    const auto special = [&](std::initializer_list<const char*> names, Special id) {
      for (const char* name : names) {
        if (token == name) result.push_back({{Bank::kSpecial, static_cast<std::uint16_t>(id), 1}, token});
      }
    };
    special({"vcc", "vcc_lo", "vcc_hi"}, Special::kVcc);
    special({"exec", "exec_lo", "exec_hi"}, Special::kExec);
    special({"m0"}, Special::kM0);
    const Bank bank = token[0] == 'v' ? Bank::kVgpr : token[0] == 's' ? Bank::kSgpr : Bank::kAgpr;
    if (token[0] != 'v' && token[0] != 's' && token[0] != 'a') continue;
    const char* const last = token.data() + token.size();
    unsigned first = 0, top = 0;
    if (token.size() > 1 && token[1] == '[') {
      auto r = std::from_chars(token.data() + 2, last, first);
      if (r.ec != std::errc{} || r.ptr == last || *r.ptr != ':') continue;
      r = std::from_chars(r.ptr + 1, last, top);
      if (r.ec != std::errc{} || r.ptr == last || *r.ptr != ']') continue;
    } else {
      const auto r = std::from_chars(token.data() + 1, last, first);
      if (r.ec != std::errc{} || r.ptr != last) continue;
      top = first;
    }
    result.push_back({{bank, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(top - first + 1)}, token});
  }
  return result;
}

bool covered(const InstFacts& facts, const RegRange& range) {
  const auto holds = [&range](const RegRange& r) {
    return r.bank == range.bank && r.first <= range.first && range.first + range.count <= r.first + r.count;
  };
  return std::any_of(facts.reads.begin(), facts.reads.end(), holds) ||
         std::any_of(facts.writes.begin(), facts.writes.end(), holds);
}

// Words whose top bits pick each gfx9 encoding family often, the rest random.
std::vector<std::byte> random_code(std::mt19937_64& random, std::size_t words) {
  static constexpr std::array<std::uint32_t, 20> kFamilies = {
      0x00000000, 0x80000000, 0xb0000000, 0xbe800000, 0xbf000000, 0xbf800000, 0xc0000000,
      0x7e000000, 0x7c000000, 0xd0000000, 0xd1000000, 0xd2000000, 0xd3800000, 0xd3c00000,
      0xd8000000, 0xdc000000, 0xe0000000, 0xe8000000, 0xd3ac0000, 0xd3a00000};
  std::vector<std::byte> bytes;
  const auto put = [&bytes](std::uint32_t word) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(word >> (8 * i)));
  };
  while (bytes.size() < words * 4) {
    const std::uint32_t family = kFamilies[random() % kFamilies.size()];
    put(family | (static_cast<std::uint32_t>(random()) & 0x01ffffff));
    // A second dword with plain register numbers makes long encodings decode more often.
    put(static_cast<std::uint32_t>(random()) & (random() % 2 != 0 ? 0xffffffff : 0x0403ffff));
  }
  return bytes;
}

TEST(DecodeProperty, EveryNamedRegisterIsAFact) {
  std::mt19937_64 random(20250101);
  std::set<std::string> mnemonics;
  std::size_t valid = 0;
  for (int round = 0; round < 40; ++round) {
    const std::vector<std::byte> code = random_code(random, 4096);
    const auto decoded = disassemble(code);
    ASSERT_TRUE(decoded);
    std::uint64_t offset = 0;
    for (const Decoded& row : *decoded) {
      ASSERT_EQ(row.offset, offset);
      ASSERT_TRUE(row.size >= 4 && row.size <= 16 && row.size % 4 == 0) << int{row.size};
      offset += row.size;
      if (!row.valid) continue;
      ++valid;
      mnemonics.insert(row.mnemonic);
      for (const Named& named : named_registers(row.text)) {
        EXPECT_TRUE(covered(row.facts, named.range)) << row.text << ": " << named.token;
      }
    }
    ASSERT_EQ(offset, code.size());
  }
  // The draw is fixed, so these only guard against a generator that stops reaching the instruction set.
  EXPECT_GT(valid, 50000u);
  EXPECT_GT(mnemonics.size(), 900u);
}

TEST(DecodeProperty, TrailingFragmentIsOneInvalidEntry) {
  const std::vector<std::byte> code = {std::byte{0},    std::byte{0}, std::byte{0x81},
                                       std::byte{0xbf}, std::byte{1}, std::byte{2}};
  const auto decoded = disassemble(code);
  ASSERT_TRUE(decoded);
  ASSERT_EQ(decoded->size(), 2u);
  EXPECT_EQ((*decoded)[0].text, "s_endpgm");
  EXPECT_FALSE((*decoded)[1].valid);
  EXPECT_EQ((*decoded)[1].size, 2);
  EXPECT_EQ((*decoded)[1].text, ".byte 0x01, 0x02");
}

}  // namespace
}  // namespace zyfa::jit
