// The opcode table of opcodes.def, parsed at compile time: a malformed row does not compile.
#include "jit/isa/op_info.h"

#include <array>
#include <bit>

namespace zyfa::jit {
namespace {

constexpr std::size_t kOpCount = static_cast<std::size_t>(Op::kCount);
constexpr std::size_t kMaxOperands = 6;

struct Row {
  std::string_view mnemonic;
  Unit unit;
  std::string_view signature, implicit;
};

constexpr std::array<Row, kOpCount> kRows = {{
#define ZYFA_OP(name, mnemonic, unit, signature, implicit) {mnemonic, Unit::unit, signature, implicit},
#include "jit/isa/opcodes.def"
#undef ZYFA_OP
}};

constexpr Role parse_role(char c) {
  switch (c) {
    case 'd':
      return Role::kDef;
    case 'u':
      return Role::kUse;
    case 'x':
      return Role::kTied;
    default:
      throw "bad role in opcodes.def";
  }
}

constexpr Kind parse_kind(char c) {
  switch (c) {
    case 'v':
      return Kind::kVgpr;
    case 'a':
      return Kind::kAgpr;
    case 'w':
      return Kind::kVgprOrAgpr;
    case 's':
      return Kind::kSgpr;
    case 'c':
      return Kind::kVectorSource;
    case 'l':
      return Kind::kVectorSourceLiteral;
    case 'm':
      return Kind::kMfmaC;
    case 'i':
      return Kind::kScalarSource;
    case 'k':
      return Kind::kImmediate;
    case 'b':
      return Kind::kLabel;
    default:
      throw "bad operand type in opcodes.def";
  }
}

struct Operands {
  std::array<OperandInfo, kMaxOperands> info{};
  std::size_t count = 0;
};

constexpr Operands parse_signature(std::string_view s) {
  Operands out;
  while (!s.empty()) {
    if (s.size() < 3 || s[1] != ':') throw "bad signature in opcodes.def";
    OperandInfo info{parse_role(s[0]), parse_kind(s[2]), 0};
    s.remove_prefix(3);
    while (!s.empty() && s[0] != ',') {
      info.count = static_cast<std::uint16_t>(info.count * 10 + (s[0] - '0'));
      s.remove_prefix(1);
    }
    if (!s.empty()) s.remove_prefix(1);
    out.info[out.count++] = info;
  }
  return out;
}

constexpr std::uint8_t special_bit(char c) {
  const auto bit = [](Special s) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(s)); };
  switch (c) {
    case 'c':
      return bit(Special::kScc);
    case 'v':
      return bit(Special::kVcc);
    case 'e':
      return bit(Special::kExec);
    case 'm':
      return bit(Special::kM0);
    case 'o':
      return bit(Special::kMode);
    default:
      throw "bad implicit register in opcodes.def";
  }
}

// The mask of the letters that follow `which` ('r' or 'w').
constexpr std::uint8_t parse_implicit(std::string_view s, char which) {
  std::uint8_t mask = 0;
  char mode = 0;
  for (const char c : s) {
    if (c == '-') continue;
    if (c == 'r' || c == 'w') {
      mode = c;
    } else if (mode == which) {
      mask = static_cast<std::uint8_t>(mask | special_bit(c));
    }
  }
  return mask;
}

constexpr bool contains(std::string_view s, std::string_view part) { return s.find(part) != std::string_view::npos; }

// gfx950-isa.md 1.5.
constexpr std::uint8_t parse_passes(std::string_view mnemonic) {
  if (contains(mnemonic, "32x32x64_f8f6f4")) return 16;
  if (contains(mnemonic, "32x32x") || contains(mnemonic, "16x16x128_f8f6f4")) return 8;
  return 4;
}

// The VOP1 and VOP2 instructions that zyfa moves between lanes with; others of them take DPP too.
constexpr bool takes_dpp(std::string_view m) {
  return m == "v_mov_b32" || m == "v_add_f32" || m == "v_max_f32" || m == "v_min_f32" || m == "v_fmac_f32";
}

constexpr std::uint16_t vector_modifiers(std::string_view m) {
  if (m.starts_with("v_pk_")) return kModPacked | kModClamp;
  if (m == "v_cvt_pk_fp8_f32") return kModNegAbs | kModDestHalf;
  if (m == "v_bitop3_b32") return kModBitop3;
  if (m.starts_with("v_cvt_pk_") || m.starts_with("v_cmp_") || m == "v_cndmask_b32") {
    return contains(m, "_i32") || contains(m, "_u32") ? 0 : kModNegAbs;
  }
  if (m.ends_with("_f32")) return kModNegAbs | kModClamp;
  if (m == "v_add_u32" || m == "v_sub_u32" || m == "v_subrev_u32" || m == "v_mad_u32_u24" || m == "v_cvt_f32_i32") {
    return kModClamp;
  }
  return 0;
}

constexpr std::uint16_t parse_modifiers(const Row& row) {
  switch (row.unit) {
    case Unit::kValu:
    case Unit::kTrans:
      return vector_modifiers(row.mnemonic);
    case Unit::kMfma:
      if (!row.mnemonic.ends_with("f8f6f4")) return 0;
      return row.mnemonic.starts_with("v_mfma_scale") ? kModFormats | kModScaleSel : kModFormats;
    case Unit::kLds:
      return kModOffset;
    case Unit::kVmem:
      return row.mnemonic.starts_with("buffer_") ? kModOffset | kModOffen | kModCache : kModOffset | kModCache;
    default:
      return 0;
  }
}

constexpr std::uint8_t parse_negatable(const Row& row, std::size_t operands) {
  if (row.mnemonic == "v_cvt_pk_u8_f32") return 1;  // the others are a byte number and bytes
  if (row.mnemonic == "v_ldexp_f32") return 1;      // the other is an integer
  if (row.mnemonic == "v_cndmask_b32") return 3;
  return static_cast<std::uint8_t>((1u << (operands > 0 ? operands - 1 : 0)) - 1);
}

constexpr auto kOperands = [] {
  std::array<Operands, kOpCount> all{};
  for (std::size_t i = 0; i < kOpCount; ++i) all[i] = parse_signature(kRows[i].signature);
  return all;
}();

constexpr auto kInfos = [] {
  std::array<OpInfo, kOpCount> all{};
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const Row& row = kRows[i];
    OpInfo& info = all[i];
    info.op = static_cast<Op>(i);
    info.mnemonic = row.mnemonic;
    info.unit = row.unit;
    info.operands = std::span(kOperands[i].info.data(), kOperands[i].count);
    info.implicit_reads = parse_implicit(row.implicit, 'r');
    info.implicit_writes = parse_implicit(row.implicit, 'w');
    info.mfma_passes = row.unit == Unit::kMfma ? parse_passes(row.mnemonic) : 0;
    info.is_lds_dma = row.unit == Unit::kVmem && contains(row.mnemonic, "_load_") &&
                      (kOperands[i].count == 0 || kOperands[i].info[0].role != Role::kDef);
    info.is_store = contains(row.mnemonic, "_store_") || contains(row.mnemonic, "ds_write");
    info.modifiers = parse_modifiers(row);
    if (takes_dpp(row.mnemonic)) info.modifiers |= kModDpp;
    if (info.modifiers & kModNegAbs) info.negatable = parse_negatable(row, kOperands[i].count);
  }
  return all;
}();

}  // namespace

const OpInfo& op_info(Op op) { return kInfos[static_cast<std::size_t>(op)]; }

bool is_inline_constant(std::uint32_t bits) {
  const auto value = std::bit_cast<std::int32_t>(bits);
  if (value >= -16 && value <= 64) return true;
  switch (bits) {
    case 0x3f000000:  // 0.5
    case 0xbf000000:
    case 0x3f800000:  // 1.0
    case 0xbf800000:
    case 0x40000000:  // 2.0
    case 0xc0000000:
    case 0x40800000:  // 4.0
    case 0xc0800000:
    case 0x3e22f983:  // 1/(2 pi)
      return true;
    default:
      return false;
  }
}

std::optional<std::uint32_t> literal_of(const Operand& operand) {
  std::optional<std::uint32_t> bits;
  if (const Imm* imm = std::get_if<Imm>(&operand)) bits = static_cast<std::uint32_t>(imm->value);
  if (const FloatImm* imm = std::get_if<FloatImm>(&operand)) bits = std::bit_cast<std::uint32_t>(imm->value);
  return bits && !is_inline_constant(*bits) ? bits : std::nullopt;
}

std::uint16_t mfma_format_dwords(std::uint8_t format) {
  constexpr std::array<std::uint16_t, 5> kDwords = {8, 8, 6, 6, 4};
  return format < kDwords.size() ? kDwords[format] : 0;
}

}  // namespace zyfa::jit
