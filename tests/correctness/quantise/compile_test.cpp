// Every quantise kernel that the runtime may ask for compiles, and what the family does not hold is refused by name.
#include <gmock/gmock.h>

#include "schedules/compile.h"
#include "schedules/select/placement.h"
#include "schedules/select/select.h"

namespace zyfa::schedules {
namespace {

KernelSpec with_placement(KernelSpec spec) {
  const Row* row = select_row(kernel_table(), spec);
  if (row != nullptr) spec.placement = row->placement;
  return spec;
}

std::vector<KernelSpec> all_specs() {
  std::vector<KernelSpec> specs;
  for (const Family family : {Family::kQuantiseStatistics, Family::kQuantise}) {
    for (const Operand operand : {Operand::kQuery, Operand::kKey, Operand::kValue}) {
      for (const ElementType element : {ElementType::kFp8E4M3, ElementType::kInt8}) {
        for (const std::uint32_t dims : {128U, 192U}) {
          for (const Rotation rotation : {Rotation::kNone, Rotation::kHadamard}) {
            for (const Smoothing smoothing : {Smoothing::kNone, Smoothing::kMean}) {
              if (operand == Operand::kValue && (element == ElementType::kInt8 || dims == 192 ||
                                                 rotation != Rotation::kNone || smoothing != Smoothing::kNone)) {
                continue;
              }
              if (operand == Operand::kQuery && smoothing == Smoothing::kMean) continue;
              specs.push_back({.family = family,
                               .element = element,
                               .head_dim_qk = dims,
                               .operand = operand,
                               .rotation = rotation,
                               .smoothing = smoothing});
              if (family == Family::kQuantise && operand == Operand::kQuery && element == ElementType::kFp8E4M3) {
                specs.push_back(specs.back());
                specs.back().feeds = ScoreForm::kFolded;
              }
            }
          }
        }
      }
    }
  }
  return specs;
}

TEST(QuantiseKernels, AllCompile) {
  std::set<std::string> symbols;
  for (const KernelSpec& spec : all_specs()) {
    const auto kernel = compile_kernel(with_placement(spec));
    ASSERT_TRUE(kernel) << name_of(spec.family) << " " << name_of(spec.operand) << " " << name_of(spec.element) << " "
                        << spec.head_dim_qk << "\n"
                        << to_string(kernel.error());
    EXPECT_TRUE(symbols.insert(kernel->info.symbol).second) << kernel->info.symbol;
    EXPECT_EQ(kernel->info.query_tile, 16U);
    EXPECT_EQ(kernel->info.waves, 1U);
    EXPECT_EQ(kernel->info.lds_bytes, 0U);
    std::printf("%s: %u instructions, %u VGPRs\n", kernel->info.symbol.c_str(), kernel->info.instructions,
                kernel->info.vgprs);
  }
}

TEST(QuantiseKernels, OthersAreRefused) {
  const KernelSpec base{.family = Family::kQuantise, .element = ElementType::kFp8E4M3};
  const auto refuses = [&](auto change, const char* why) {
    KernelSpec spec = base;
    change(spec);
    spec.placement = "name=stream;waves=1;groups=1;loop=load,convert";
    if (spec.family == Family::kQuantiseStatistics) spec.placement = "name=stream;waves=1;groups=1;loop=load,reduce";
    const auto kernel = compile_kernel(spec);
    ASSERT_FALSE(kernel) << why;
    EXPECT_EQ(kernel.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(kernel.error().message, testing::HasSubstr(why));
  };
  refuses([](KernelSpec& s) { s.element = ElementType::kBf16; }, "writes bf16; codes are fp8e4m3 or int8");
  refuses([](KernelSpec& s) { s.head_dim_qk = 64; }, "has head dim 64; q and k take 128 and 192, v 128");
  refuses([](KernelSpec& s) { s.operand = Operand::kValue, s.head_dim_qk = 192; }, "quantise of v has head dim 192");
  refuses([](KernelSpec& s) { s.operand = Operand::kValue, s.element = ElementType::kInt8; }, "not rotated");
  refuses([](KernelSpec& s) { s.operand = Operand::kValue, s.rotation = Rotation::kHadamard; }, "not rotated");
  refuses([](KernelSpec& s) { s.smoothing = Smoothing::kMean; }, "smooths an operand other than k");
  refuses([](KernelSpec& s) { s.operand = Operand::kKey, s.feeds = ScoreForm::kFolded; }, "other than q");
  refuses([](KernelSpec& s) { s.element = ElementType::kInt8, s.feeds = ScoreForm::kFolded; }, "other than q");
  refuses([](KernelSpec& s) { s.mask = MaskKind::kCausal; }, "sets fields of attention kernels");
  refuses([](KernelSpec& s) { s.family = Family::kQuantiseStatistics, s.scales = ScaleScope::kTensor; },
          "a scale that it does not compute");
}

}  // namespace
}  // namespace zyfa::schedules
