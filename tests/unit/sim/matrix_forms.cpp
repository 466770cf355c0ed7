#include "tests/unit/sim/matrix_forms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string_view>

#include "jit/object/code_object.h"

namespace zyfa::sim_test {
namespace {

using enum Element;

struct Float {
  int exponent, fraction, bias;
  enum { kIeee, kNoInfinity, kFinite } specials;
};
Float float_of(Element e) {
  switch (e) {
    case kF64:
      return {11, 52, 1023, Float::kIeee};
    case kF32:
      return {8, 23, 127, Float::kIeee};
    case kF16:
      return {5, 10, 15, Float::kIeee};
    case kBf16:
      return {8, 7, 127, Float::kIeee};
    case kFp8:
      return {4, 3, 7, Float::kNoInfinity};
    case kBf8:
      return {5, 2, 15, Float::kIeee};
    case kFp6:
      return {2, 3, 1, Float::kFinite};
    case kBf6:
      return {3, 2, 3, Float::kFinite};
    default:
      return {2, 1, 1, Float::kFinite};
  }
}

}  // namespace

int bits_of(Element e) {
  if (e == kI8) return 8;
  const Float f = float_of(e);
  return 1 + f.exponent + f.fraction;
}

double decode(Element e, std::uint64_t code) {
  if (e == kI8) return static_cast<std::int8_t>(code);
  if (e == kF64) return std::bit_cast<double>(code);
  const Float f = float_of(e);
  const int field = static_cast<int>((code >> f.fraction) & ((1u << f.exponent) - 1));
  const auto fraction = static_cast<double>(code & ((1ull << f.fraction) - 1));
  const bool minus = (code >> (f.exponent + f.fraction)) & 1, top = field == (1 << f.exponent) - 1;
  double magnitude = field == 0 ? std::ldexp(fraction, 1 - f.bias - f.fraction)
                                : std::ldexp(1 + std::ldexp(fraction, -f.fraction), field - f.bias);
  if (f.specials == Float::kIeee && top) magnitude = fraction == 0 ? INFINITY : NAN;
  if (f.specials == Float::kNoInfinity && top && fraction == 7) magnitude = NAN;
  return minus ? -magnitude : magnitude;
}

std::uint64_t encode(Element e, double value) {
  if (e == kI8) return static_cast<std::uint8_t>(static_cast<std::int8_t>(value));
  if (e == kF64) return std::bit_cast<std::uint64_t>(value);
  if (e == kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (e == kBf16) return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
  if (e == kF16 && std::fabs(value) >= 1) {
    const auto x = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return (x >> 16 & 0x8000) | ((x >> 13 & 0x3ffff) - (112 << 10));
  }
  for (std::uint64_t code = 0; code < (1ull << bits_of(e)); ++code)
    if (decode(e, code) == value && std::signbit(decode(e, code)) == std::signbit(value)) return code;
  ADD_FAILURE() << value << " is no number of the format";
  return 0;
}

int largest_integer(Element e) {
  if (e == kI8) return 127;
  if (e == kFp6) return 7;
  if (e == kBf6) return 8;
  if (e == kFp4) return 4;
  return 2 << float_of(e).fraction % 16;
}

bool Form::f8f6f4() const { return std::string_view(mnemonic).ends_with("f8f6f4"); }

const std::vector<Form>& all_forms() {
  static const std::vector<Form> forms = [] {
    std::vector<Form> f{
        {"v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, kF32, kF32, 16},
        {"v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, kF32, kF32, 8},
        {"v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, kF32, kF32, 2},
        {"v_mfma_f32_32x32x2_f32", 32, 2, 1, kF32, kF32, 16},
        {"v_mfma_f32_16x16x4_f32", 16, 4, 1, kF32, kF32, 8},
        {"v_mfma_f64_16x16x4_f64", 16, 4, 1, kF64, kF64, 16},
        {"v_mfma_f64_4x4x4_4b_f64", 4, 4, 4, kF64, kF64, 4},
        {"v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, kI8, kI8, 16},
        {"v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, kI8, kI8, 8},
        {"v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, kI8, kI8, 2},
        {"v_mfma_i32_32x32x16_i8", 32, 16, 1, kI8, kI8, 8},
        {"v_mfma_i32_16x16x32_i8", 16, 32, 1, kI8, kI8, 4},
        {"v_mfma_i32_32x32x32_i8", 32, 32, 1, kI8, kI8, 8},
        {"v_mfma_i32_16x16x64_i8", 16, 64, 1, kI8, kI8, 4},
        {"v_smfmac_i32_16x16x64_i8", 16, 64, 1, kI8, kI8, 4, true},
        {"v_smfmac_i32_32x32x32_i8", 32, 32, 1, kI8, kI8, 8, true},
        {"v_smfmac_i32_16x16x128_i8", 16, 128, 1, kI8, kI8, 4, true},
        {"v_smfmac_i32_32x32x64_i8", 32, 64, 1, kI8, kI8, 8, true},
        {"v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, kF16, kF16, 16},
        {"v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, kF16, kF16, 8},
        {"v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, kF16, kF16, 2},
        {"v_mfma_f32_32x32x8_f16", 32, 8, 1, kF16, kF16, 8},
        {"v_mfma_f32_16x16x16_f16", 16, 16, 1, kF16, kF16, 4},
        {"v_mfma_f32_32x32x16_f16", 32, 16, 1, kF16, kF16, 8},
        {"v_mfma_f32_16x16x32_f16", 16, 32, 1, kF16, kF16, 4},
        {"v_smfmac_f32_16x16x32_f16", 16, 32, 1, kF16, kF16, 4, true},
        {"v_smfmac_f32_32x32x16_f16", 32, 16, 1, kF16, kF16, 8, true},
        {"v_smfmac_f32_16x16x64_f16", 16, 64, 1, kF16, kF16, 4, true},
        {"v_smfmac_f32_32x32x32_f16", 32, 32, 1, kF16, kF16, 8, true},
        {"v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, kBf16, kBf16, 16},
        {"v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, kBf16, kBf16, 8},
        {"v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, kBf16, kBf16, 2},
        {"v_mfma_f32_32x32x8_bf16", 32, 8, 1, kBf16, kBf16, 8},
        {"v_mfma_f32_16x16x16_bf16", 16, 16, 1, kBf16, kBf16, 4},
        {"v_mfma_f32_32x32x16_bf16", 32, 16, 1, kBf16, kBf16, 8},
        {"v_mfma_f32_16x16x32_bf16", 16, 32, 1, kBf16, kBf16, 4},
        {"v_smfmac_f32_16x16x32_bf16", 16, 32, 1, kBf16, kBf16, 4, true},
        {"v_smfmac_f32_32x32x16_bf16", 32, 16, 1, kBf16, kBf16, 8, true},
        {"v_smfmac_f32_16x16x64_bf16", 16, 64, 1, kBf16, kBf16, 4, true},
        {"v_smfmac_f32_32x32x32_bf16", 32, 32, 1, kBf16, kBf16, 8, true},
    };
    struct Bytes {
      const char* name;
      Element a, b;
    };
    static std::vector<std::string> names;
    names.reserve(64);
    const auto name = [&](std::string text) { return names.emplace_back(std::move(text)).c_str(); };
    for (const Bytes& t :
         {Bytes{"fp8_fp8", kFp8, kFp8}, {"fp8_bf8", kFp8, kBf8}, {"bf8_fp8", kBf8, kFp8}, {"bf8_bf8", kBf8, kBf8}}) {
      f.push_back({name(fmt::format("v_mfma_f32_32x32x16_{}", t.name)), 32, 16, 1, t.a, t.b, 8});
      f.push_back({name(fmt::format("v_mfma_f32_16x16x32_{}", t.name)), 16, 32, 1, t.a, t.b, 4});
      f.push_back({name(fmt::format("v_smfmac_f32_16x16x64_{}", t.name)), 16, 64, 1, t.a, t.b, 4, true});
      f.push_back({name(fmt::format("v_smfmac_f32_32x32x32_{}", t.name)), 32, 32, 1, t.a, t.b, 8, true});
      f.push_back({name(fmt::format("v_smfmac_f32_16x16x128_{}", t.name)), 16, 128, 1, t.a, t.b, 4, true});
      f.push_back({name(fmt::format("v_smfmac_f32_32x32x64_{}", t.name)), 32, 64, 1, t.a, t.b, 8, true});
    }
    constexpr Element kFormats[] = {kFp8, kBf8, kFp6, kBf6, kFp4};
    for (int a = 0; a < 5; ++a) {
      for (int b = 0; b < 5; ++b) {
        const char* fields = name(fmt::format(" cbsz:{} blgp:{}", a, b));
        const int slow = a < 2 || b < 2 ? 2 : 1;
        f.push_back({"v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, kFormats[a], kFormats[b], 8 * slow, false, fields});
        f.push_back({"v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, kFormats[a], kFormats[b], 4 * slow, false, fields});
      }
    }
    return f;
  }();
  return forms;
}

namespace {

// Guide 7.1.4.1, and the tables of 7.1.5.1 and 7.5.1.3 for byte and 16-bit operands of eight registers: registers 0-3
// hold the first half of k, registers 4-7 the second, each half as an operand of four registers.
Place place_input(const Form& f, Element e, int block, int index, int k, int all_k) {
  const int items = all_k * f.dim * f.blocks / 64, words = items * bits_of(e) / 32;
  if (words == 8 && (bits_of(e) == 8 || bits_of(e) == 16)) {
    const int half = all_k / 2, per_half = items / 2;
    return {index + f.dim * (k % half / per_half), k % per_half + (k >= half ? per_half : 0)};
  }
  return {index + f.dim * (block + f.blocks * (k / items)), k % items};
}

}  // namespace

Place place_a(const Form& f, int block, int row, int k) { return place_input(f, f.a, block, row, k, f.k_of_a()); }
Place place_b(const Form& f, int block, int k, int col) { return place_input(f, f.b, block, col, k, f.k); }

// Guide 7.1.4.2, except for four blocks of f64: lanes 0-15 hold row 0 of the four blocks, lanes 16-31 row 1, ...
// (amd-lab-notes, dgemm_4x4x4_batch).
Place place_d(const Form& f, int block, int row, int col) {
  if (f.f64() && f.blocks == 4) return {16 * row + 4 * block + col, 0};
  const int h = f.f64() ? 1 : 4, per_item = f.dim * f.dim / h;
  const int b_i = (64 + per_item - 1) / per_item, m_i = 64 / b_i / f.dim, g = f.dim / (h * m_i);
  return {col + f.dim * (row / h % m_i + m_i * (block % b_i)), row % h + h * (row / (h * m_i) + g * (block / b_i))};
}

Instruction::Instruction(const std::string& text) {
  const auto object = jit::read_code_object(assemble_kernel(text, {.vgprs = 256, .agprs = 256}));
  if (!object) {
    ADD_FAILURE() << text;
    return;
  }
  auto program =
      sim::decode_program(object->text, object->kernels.at(0).entry_offset, {.accum_offset = kAgprs, .rows = kRows});
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return;
  }
  program_ = std::move(*program);
  for (const sim::MicroOp& op : program_.ops)
    if (op.unit == sim::Unit::kMfma) op_ = &op;
  if (op_ == nullptr) ADD_FAILURE() << text << " holds no matrix instruction";
}

void Instruction::run(Registers& registers, SimAccumulation model, std::uint32_t mode) const {
  sim::Group group;
  sim::Wave wave;
  wave.v = registers.data();
  wave.group = &group;
  wave.rules.accumulation = model;
  sim::apply_mode(wave, mode);
  wave.set_scalar64(sim::kExecLo, 0);  // matrix instructions ignore EXEC
  op_->run(wave, *op_);
}

std::string text_of(const Form& f, const std::string& modifiers, const std::string& c) {
  const auto tuple = [](int first, int count) {
    return count == 1 ? fmt::format("v{}", first) : fmt::format("v[{}:{}]", first, first + count - 1);
  };
  const std::string last = f.sparse ? tuple(kIndex, 1) : !c.empty() ? c : tuple(kC, f.words_d());
  return fmt::format("{} {}, {}, {}, {}{}{}", f.mnemonic, tuple(kD, f.words_d()), tuple(kA, f.words_a()),
                     tuple(kB, f.words_b()), last, f.modifiers, modifiers);
}

// Elements straddle two registers when they are wider than one or 6 bits wide, never three.
std::uint64_t get(const Registers& r, int first, int bits, Place place) {
  const int at = place.item * bits, shift = at % 32;
  const auto word = static_cast<std::size_t>(first + at / 32);
  std::uint64_t both = r[word].lane[place.lane];
  if (shift + bits > 32) both |= static_cast<std::uint64_t>(r[word + 1].lane[place.lane]) << 32;
  return both >> shift & (bits == 64 ? ~0ull : (1ull << bits) - 1);
}

void set(Registers& r, int first, int bits, Place place, std::uint64_t code) {
  const int at = place.item * bits, shift = at % 32;
  const auto word = static_cast<std::size_t>(first + at / 32);
  const std::uint64_t mask = (bits == 64 ? ~0ull : (1ull << bits) - 1) << shift, value = code << shift;
  std::uint32_t& low = r[word].lane[place.lane];
  low = (low & ~static_cast<std::uint32_t>(mask)) | static_cast<std::uint32_t>(value & mask);
  if (shift + bits <= 32) return;
  std::uint32_t& high = r[word + 1].lane[place.lane];
  high = (high & ~static_cast<std::uint32_t>(mask >> 32)) | static_cast<std::uint32_t>((value & mask) >> 32);
}

}  // namespace zyfa::sim_test
