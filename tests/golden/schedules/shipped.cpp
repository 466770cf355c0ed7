#include "tests/golden/schedules/shipped.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/select/placement.h"

namespace zyfa::schedules::golden {
namespace {

std::vector<KernelSpec> attention_specs(const Row& row) {
  std::vector<KernelSpec> variants;
  if (row.element.takes(ElementType::kBf16)) {
    KernelSpec spec;
    spec.placement = row.placement;
    variants.assign(4, spec);
  } else {
    for (const std::uint32_t dim : {128U, 192U}) {
      const std::vector<KernelSpec> some = eight_bit_variants(row, dim);
      variants.insert(variants.end(), some.begin(), some.end());
    }
  }
  if (row.form.has_value()) {  // few variants: each with both masks
    const std::vector<KernelSpec> once = variants;
    variants.insert(variants.end(), once.begin(), once.end());
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    variants[i].mask = i % 2 == 0 ? MaskKind::kFull : MaskKind::kCausal;
    variants[i].lse = i / 2 % 2 == 0 ? LseOutput::kNone : LseOutput::kWritten;
  }
  return variants;
}

// Those that the table gives to the row; kernels that do not exist are left out.
std::vector<KernelSpec> quantise_specs(const Row& row) {
  std::vector<KernelSpec> specs;
  for (const Operand operand : {Operand::kQuery, Operand::kKey, Operand::kValue}) {
    for (const std::uint32_t dim : {128U, 192U}) {
      for (const Rotation rotation : {Rotation::kNone, Rotation::kHadamard}) {
        for (const Smoothing smoothing : {Smoothing::kNone, Smoothing::kMean}) {
          if (operand == Operand::kValue && (rotation == Rotation::kHadamard || dim != 128)) continue;
          if (operand != Operand::kKey && smoothing == Smoothing::kMean) continue;
          KernelSpec spec;
          spec.family = row.family;
          spec.element = dim == 192 ? ElementType::kInt8 : ElementType::kFp8E4M3;
          spec.head_dim_qk = dim;
          spec.operand = operand;
          spec.rotation = rotation;
          spec.smoothing = smoothing;
          const bool folds = row.family == Family::kQuantise && operand == Operand::kQuery && dim == 128;
          spec.feeds = folds ? ScoreForm::kFolded : ScoreForm::kMultiplyAdd;
          const Row* chosen = select_row(kernel_table(), spec);
          if (chosen == nullptr || chosen->name != row.name) continue;
          spec.placement = row.placement;
          specs.push_back(spec);
        }
      }
    }
  }
  return specs;
}

std::string base_of(const std::string& stage) { return stage.substr(0, stage.find_first_of("@#")); }

}  // namespace

std::vector<KernelSpec> eight_bit_variants(const Row& row, std::uint32_t head_dim_qk) {
  std::vector<KernelSpec> specs;
  for (const ElementType element : {ElementType::kFp8E4M3, ElementType::kInt8}) {
    for (const ProbabilityRule rule : {ProbabilityRule::kLean, ProbabilityRule::kExact}) {
      for (const ScoreForm form : {ScoreForm::kMultiplyAdd, ScoreForm::kFolded}) {
        for (const BlockExponents exponents : {BlockExponents::kUsed, BlockExponents::kNone}) {
          KernelSpec spec;
          spec.element = element;
          spec.head_dim_qk = head_dim_qk;
          spec.probability = rule;
          spec.form = form;
          spec.block_exponents = exponents;
          spec.near_keys = row.near_keys.takes(NearKeys::kSame) ? NearKeys::kSame : NearKeys::kBf16;
          spec.placement = row.placement;
          const bool folds = element == ElementType::kFp8E4M3 && rule == ProbabilityRule::kLean;
          if ((form == ScoreForm::kMultiplyAdd || folds) && row.mismatch(spec).empty()) specs.push_back(spec);
        }
      }
    }
  }
  return specs;
}

std::vector<KernelSpec> specs_of(const Row& row) {
  return row.family == Family::kAttentionForward ? attention_specs(row) : quantise_specs(row);
}

std::string variant_name(const KernelSpec& spec) {
  std::string name = std::string(name_of(spec.element)) + "_d" + std::to_string(spec.head_dim_qk);
  const auto add = [&name](std::string_view word) { name += "_" + std::string(word); };
  if (spec.family != Family::kAttentionForward) {
    add(name_of(spec.operand));
    if (spec.rotation == Rotation::kHadamard) add("hadamard");
    if (spec.smoothing == Smoothing::kMean) add("mean");
    if (spec.feeds == ScoreForm::kFolded) add("folded");
    return name;
  }
  if (spec.element != ElementType::kBf16) {
    add(name_of(spec.probability));
    add(name_of(spec.block_exponents));
    add(name_of(spec.form));
    if (spec.row_sum != RowSum::kAuto) add(name_of(spec.row_sum));
  }
  add(name_of(spec.mask));
  if (spec.lse == LseOutput::kWritten) add("lse");
  return name;
}

std::string_view Line::opcode() const {
  std::string_view text = code.mnemonic;
  if (text.ends_with("_e32") || text.ends_with("_e64")) text.remove_suffix(4);
  return text;
}

std::vector<Loop> KernelCode::loops() const {
  std::vector<Loop> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::int64_t target = lines[i].code.branch_target;
    if (target >= 0 && static_cast<std::uint64_t>(target) <= lines[i].code.offset)
      found.push_back({index_at(target), i});
  }
  return found;
}

std::size_t KernelCode::index_at(std::int64_t offset) const {
  const auto at = std::lower_bound(lines.begin(), lines.end(), static_cast<std::uint64_t>(offset),
                                   [](const Line& line, std::uint64_t o) { return line.code.offset < o; });
  EXPECT_TRUE(at != lines.end() && at->code.offset == static_cast<std::uint64_t>(offset)) << offset;
  return static_cast<std::size_t>(at - lines.begin());
}

KernelCode read_code(const CompiledKernel& kernel) {
  KernelCode code;
  const auto object = jit::read_code_object(kernel.object);
  EXPECT_TRUE(object) << to_string(object.error());
  if (!object) return code;
  const jit::KernelImage* image = object->find(kernel.info.symbol);
  EXPECT_NE(image, nullptr);
  if (image == nullptr) return code;
  auto decoded = jit::disassemble(object->text.subspan(image->entry_offset, image->code_bytes));
  EXPECT_TRUE(decoded) << to_string(decoded.error());
  if (!decoded) return code;
  EXPECT_EQ(decoded->size(), object->listing.size());
  if (decoded->size() != object->listing.size()) return code;
  code.address = object->text_address + image->entry_offset;
  code.lines.reserve(decoded->size());
  for (std::size_t i = 0; i < decoded->size(); ++i) {
    const jit::ListingNote& note = object->listing[i];
    code.lines.push_back({std::move((*decoded)[i]), base_of(note.stage), note.comment});
  }
  return code;
}

}  // namespace zyfa::schedules::golden
