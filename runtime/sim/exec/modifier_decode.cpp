// Modifiers of printed instructions: offsets, VOP3 and VOP3P fields, DPP, SDWA, waits (operand_decode.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/sim/exec/operand_decode.h"

namespace zyfa::sim {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// "[1,0,1]" into bits, element 0 lowest; `length` receives the number of elements.
std::optional<u32> bit_list(std::string_view s, u32& length) {
  if (s.size() < 2 || s.front() != '[' || s.back() != ']') return std::nullopt;
  u32 bits = 0, position = 0;
  for (const char c : s.substr(1, s.size() - 2)) {
    if (c == ',' || c == ' ') continue;
    if ((c != '0' && c != '1') || position > 7) return std::nullopt;
    bits |= static_cast<u32>(c - '0') << position++;
  }
  length = position;
  return bits;
}

std::optional<Sel> parse_sel(std::string_view s) {
  constexpr std::array<std::string_view, 7> kNames{"DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1"};
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == s) return static_cast<Sel>(i);
  return std::nullopt;
}

// Lane movement of one DPP control (gfx950-isa.md 2); false for an unknown one.
bool dpp_lanes(std::string_view name, std::string_view value, DppControl& dpp) {
  u32 n = 0;
  if (!value.empty() && value.front() != '[') {
    const auto parsed = parse_integer(value);
    if (!parsed || *parsed < 0 || *parsed > 63) return false;
    n = static_cast<u32>(*parsed);
  }
  std::array<u32, 4> quad{};
  if (name == "quad_perm") {
    if (value.size() < 9 || value.front() != '[') return false;
    std::size_t k = 0;
    for (const char c : value)
      if (c >= '0' && c <= '3' && k < 4) quad[k++] = static_cast<u32>(c - '0');
    if (k != 4) return false;
  }
  for (int l = 0; l < static_cast<int>(kLanes); ++l) {
    const int row = l & ~15, i = l & 15, k = static_cast<int>(n);
    int from;
    if (name == "quad_perm") {
      from = (l & ~3) + static_cast<int>(quad[l & 3]);
    } else if (name == "row_shl") {
      from = i + k < 16 ? row + i + k : -1;
    } else if (name == "row_shr") {
      from = i - k >= 0 ? row + i - k : -1;
    } else if (name == "row_ror") {
      from = row + ((i - k) & 15);
    } else if (name == "row_mirror") {
      from = row + 15 - i;
    } else if (name == "row_half_mirror") {
      from = row + (i & 8) + 7 - (i & 7);
    } else if (name == "row_newbcast") {
      from = row + (k & 15);
    } else if (name == "row_bcast") {
      if (k != 15 && k != 31) return false;
      // 15: lane 15 of the previous row; 31: lane 31 to lanes 32-63. Lanes without a source keep their own value.
      from = k == 15 ? (row == 0 ? -1 : row - 1) : (l >= 32 ? 31 : -1);
    } else if (name == "wave_shl") {
      from = l + 1 < 64 ? l + 1 : -1;
    } else if (name == "wave_rol") {
      from = (l + 1) & 63;
    } else if (name == "wave_shr") {
      from = l - 1;
    } else if (name == "wave_ror") {
      from = (l - 1) & 63;
    } else {
      return false;
    }
    dpp.source[l] = from < 0 ? 0xff : static_cast<u8>(from);
  }
  return true;
}

u64 dpp_write_mask(u32 row_mask, u32 bank_mask) {
  u64 mask = 0;
  for (u32 l = 0; l < kLanes; ++l)
    if (((row_mask >> (l / 16)) & 1) && ((bank_mask >> ((l % 16) / 4)) & 1)) mask |= 1ull << l;
  return mask;
}

// "[BUF_DATA_FORMAT_32_32,BUF_NUM_FORMAT_FLOAT]" into data format | number format << 4.
std::optional<u32> buffer_format(std::string_view s) {
  if (const auto raw = parse_integer(s)) return static_cast<u32>(*raw) & 0x7f;
  constexpr std::string_view kData = "BUF_DATA_FORMAT_", kNumber = "BUF_NUM_FORMAT_";
  constexpr std::array<std::string_view, 16> kDataNames{
      "INVALID",    "8",          "16",      "8_8",   "32",          "16_16",    "10_11_11",    "11_11_10",
      "10_10_10_2", "2_10_10_10", "8_8_8_8", "32_32", "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15"};
  constexpr std::array<std::string_view, 8> kNumberNames{"UNORM", "SNORM", "USCALED",    "SSCALED",
                                                         "UINT",  "SINT",  "RESERVED_6", "FLOAT"};
  if (s.size() < 2 || s.front() != '[' || s.back() != ']') return std::nullopt;
  s = s.substr(1, s.size() - 2);
  u32 data = 1, number = 0;  // what is not printed
  while (!s.empty()) {
    const auto comma = s.find(',');
    std::string_view name = s.substr(0, comma);
    s = comma == std::string_view::npos ? std::string_view{} : s.substr(comma + 1);
    const bool is_data = name.starts_with(kData);
    if (!is_data && !name.starts_with(kNumber)) return std::nullopt;
    name.remove_prefix(is_data ? kData.size() : kNumber.size());
    const std::span<const std::string_view> names =
        is_data ? std::span<const std::string_view>(kDataNames) : kNumberNames;
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return std::nullopt;
    (is_data ? data : number) = static_cast<u32>(at - names.begin());
  }
  return data | (number << 4);
}

struct Reader {
  MicroOp& op;
  DppControl dpp{};
  bool has_dpp = false;
  u32 row_mask = 0xf, bank_mask = 0xf;

  Refusal read(const TextModifier& m);
  bool flag(std::string_view name);
  bool number(const TextModifier& m);
  bool bits(const TextModifier& m);
  bool sdwa(const TextModifier& m);
};

bool Reader::flag(std::string_view name) {
  if (name == "offen") {
    op.offen = true;
  } else if (name == "idxen") {
    op.idxen = true;
  } else if (name == "lds") {
    op.lds = true;
  } else if (name == "clamp") {
    op.clamp = true;
  } else if (name == "sc0" || name == "glc") {
    op.returns = true;  // of an atomic
  } else if (name != "sc1" && name != "nt" && name != "slc") {
    return false;
  }
  return true;
}

bool Reader::number(const TextModifier& m) {
  const auto value = parse_integer(m.value);
  if (!value) return false;
  const auto n = static_cast<std::int32_t>(*value);
  if (m.name == "offset" || m.name == "offset0") {
    op.imm = n;
  } else if (m.name == "offset1") {
    op.imm2 = n;
  } else if (m.name == "cbsz") {
    op.cbsz = static_cast<u8>(n);
  } else if (m.name == "abid") {
    op.abid = static_cast<u8>(n);
  } else if (m.name == "blgp") {
    op.blgp = static_cast<u8>(n);
  } else if (m.name == "bitop3") {
    op.bitop3 = static_cast<u8>(n);
  } else if (m.name == "mul") {
    op.omod = n == 2 ? 1 : 2;
  } else if (m.name == "div") {
    op.omod = 3;
  } else if (m.name == "row_mask") {
    row_mask = static_cast<u32>(n);
  } else if (m.name == "bank_mask") {
    bank_mask = static_cast<u32>(n);
  } else if (m.name == "bound_ctrl") {
    dpp.bound_zero = true;
  } else if (m.name == "vmcnt") {
    op.vmcnt = static_cast<u8>(n);
  } else if (m.name == "lgkmcnt") {
    op.lgkmcnt = static_cast<u8>(n);
  } else if (m.name != "expcnt") {
    return false;
  }
  return true;
}

bool Reader::bits(const TextModifier& m) {
  u32 length = 0;
  const auto list = bit_list(m.value, length);
  if (!list) return false;
  const auto value = static_cast<u8>(*list);
  if (m.name == "op_sel") {
    op.op_sel = value;
    // VOP3 prints the destination's bit after those of the sources; it is bit 3 of the field.
    const u32 last = length - 1;
    if (!(op.flags & kPacked) && length == op.sources + 1u && last < 3)
      op.op_sel = static_cast<u8>((value & ((1u << last) - 1)) | ((value >> last) << 3));
  } else if (m.name == "op_sel_hi") {
    op.op_sel_hi = value;
  } else if (m.name == "neg_lo") {
    op.neg_lo = value;
  } else if (m.name == "neg_hi") {
    op.neg_hi = value;
  } else if (m.name == "neg" && (op.flags & kDgemm)) {
    op.blgp = value;  // f64 forms: BLGP negates A, B and C
  } else {
    return false;
  }
  return true;
}

bool Reader::sdwa(const TextModifier& m) {
  if (m.name == "dst_unused") {
    op.dst_unused = m.value == "UNUSED_PAD"    ? Unused::kPad
                    : m.value == "UNUSED_SEXT" ? Unused::kSext
                                               : Unused::kPreserve;
    return true;
  }
  const auto sel = parse_sel(m.value);
  if (!sel) return false;
  if (m.name == "dst_sel") {
    op.dst_sel = *sel;
  } else if (m.name == "src0_sel") {
    op.src[0].sel = *sel;
  } else if (m.name == "src1_sel") {
    op.src[1].sel = *sel;
  } else {
    return false;
  }
  return true;
}

Refusal Reader::read(const TextModifier& m) {
  if (m.value.empty() && flag(m.name)) return {};
  if (m.name == "offset" && m.value.starts_with("swizzle(")) return {};  // program.cpp reads the encoding
  if (m.name == "format") {
    const auto format = buffer_format(m.value);
    if (!format) return fmt::format("buffer format '{}'", m.value);
    op.imm2 = static_cast<std::int32_t>(*format);
    return {};
  }
  if (number(m) || bits(m) || sdwa(m)) return {};
  if (dpp_lanes(m.name, m.value, dpp)) {
    has_dpp = true;
    return {};
  }
  return m.value.empty() ? fmt::format("modifier '{}'", m.name) : fmt::format("modifier '{}:{}'", m.name, m.value);
}

// Which modifiers an instruction may carry at all.
Refusal check_fields(const InstText& inst, const MicroOp& op) {
  if (op.op_sel && !(op.flags & (kPacked | kOpSel | kScaled))) return "op_sel";
  if ((op.neg_lo || op.neg_hi) && !(op.flags & kPacked)) return "neg_lo/neg_hi";
  for (unsigned i = 0; i < op.sources; ++i) {
    if ((op.src[i].neg || op.src[i].abs) && !(op.flags & kFloatMods)) return "negated or absolute integer operand";
    if (op.src[i].sext && inst.suffix != "sdwa") return "sext outside of SDWA";
  }
  // Output modifiers are ignored on integer results (guide 6.2.2); packed narrow floats have type 'i' too, but no
  // understanding of clamp.
  const char t = op.dst.type;
  const bool real = t == 'f' || t == 'h' || t == 'd', converted = t == 'i' && (op.flags & kIntClamp);
  if (op.omod && (!(op.flags & kFloatMods) || (!real && !converted))) return "output modifier";
  if (op.clamp && !(op.flags & kIntClamp) && (!(op.flags & kFloatMods) || (!real && t != 'p'))) return "clamp";
  return {};
}

// FP_ROUND bits 1:0 govern f32 results, bits 3:2 those of f64. f16 results are rounded by their handlers;
// transcendental and dot instructions round to nearest.
Rounds rounding_of(const MicroOp& op) {
  if (op.unit != Unit::kValu || !(op.flags & kFloatMods) || (op.flags & kDot)) return Rounds::kNearest;
  const std::string_view name = op.row->mnemonic;
  if (name == "v_div_fmas_f32") return Rounds::kNearest;  // rounds by itself
  if (op.dst.type == 'd') return Rounds::kDouble;
  if (op.dst.type == 'f' || op.dst.type == 'p' || op.src[0].type == 'x') return Rounds::kSingle;
  const bool normal = name.starts_with("v_cvt_norm_") || name.starts_with("v_cvt_pknorm_");
  if (normal) return name.ends_with("_f16") ? Rounds::kDouble : Rounds::kSingle;
  const bool byte = name == "v_cvt_pk_u8_f32" || name == "v_cvt_pkaccum_u8_f32";
  return byte ? Rounds::kSingle : Rounds::kNearest;
}

}  // namespace

Refusal decode_modifiers(const InstText& inst, std::deque<DppControl>& dpps, MicroOp& op) {
  op.op_sel_hi = op.flags & kPacked ? 7 : 0;
  if (inst.mnemonic.starts_with("tbuffer_")) op.imm2 = 1;  // the format that is not printed: 8, unorm
  Reader reader{op};
  if (inst.mnemonic == "s_waitcnt" && inst.modifiers.size() == 1) {
    if (const auto raw = parse_integer(inst.modifiers[0].name)) {
      op.vmcnt = static_cast<u8>((*raw & 0xf) | ((*raw >> 10) & 0x30));
      op.lgkmcnt = static_cast<u8>((*raw >> 8) & 0xf);
      return {};
    }
  }
  for (const TextModifier& m : inst.modifiers)
    if (Refusal refusal = reader.read(m); !refusal.empty()) return refusal;
  if (Refusal refusal = check_fields(inst, op); !refusal.empty()) return refusal;

  if (reader.has_dpp) {
    if ((op.unit != Unit::kValu && op.unit != Unit::kTrans) || op.dst.type == 'm' ||
        (op.flags & (kLaneSwap | kReadlane)))
      return "DPP on this instruction";
    reader.dpp.write_mask = dpp_write_mask(reader.row_mask, reader.bank_mask);
    dpps.push_back(reader.dpp);
    op.dpp = &dpps.back();
    op.src[0].plain = false;
  }
  op.sdwa = inst.suffix == "sdwa";
  for (unsigned i = 0; i < op.sources; ++i)
    if (op.src[i].sel != Sel::kDword) op.src[i].plain = false;
  const bool vector = op.unit == Unit::kValu || op.unit == Unit::kTrans;
  // Handlers of f16 and f64 results apply their clamp and omod (lanes.h).
  const bool modifies_f32 = (op.dst.type == 'f' || op.dst.type == 'p') && (op.clamp || op.omod);
  op.rounds = rounding_of(op);
  op.post = vector && op.dst.kind == OperandKind::kVgpr &&
            (modifies_f32 || op.dpp != nullptr || (op.sdwa && op.dst_sel != Sel::kDword));
  return {};
}

}  // namespace zyfa::sim
