// The schedule cannot change values: 200 random legal placements of attention and 60 of a GEMM compile, pass strict
// mode and give the bits of the reference placement.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "schedules/attention/forward.h"
#include "schedules/compile.h"
#include "schedules/dsl/lower.h"
#include "schedules/select/placements.h"
#include "tests/correctness/schedules/attention_probe.h"
#include "tests/correctness/schedules/gemm_tile.h"
#include "tests/correctness/schedules/random_placement.h"
#include "tests/reference/attention.h"

namespace zyfa::tests {
namespace {

using schedules::Plan;

TEST(RandomPlacements, AttentionKeepsItsBits) {
  AttentionProbe probe;
  std::mt19937 random(20260101);
  const auto reference = schedules::compile_kernel(probe_spec(std::string(schedules::kNaivePlacement)));
  ASSERT_TRUE(reference) << to_string(reference.error());
  const auto expected = probe.run(reference->object, reference->info.symbol, reference->info.waves);
  ASSERT_TRUE(expected) << to_string(expected.error());

  const auto algorithm = schedules::attention_forward(probe_spec({}));
  std::set<std::string> seen;
  std::uint64_t draws = 0, too_big = 0;
  while (seen.size() < 200) {
    ASSERT_LT(++draws, 100000U) << "only " << seen.size() << " legal placements found";
    const std::optional<Plan> plan = draw_placement(*algorithm, random);
    if (!plan) continue;
    const std::string text = schedules::unparse(plan->placement);
    const auto again = schedules::parse_placement(text);
    ASSERT_TRUE(again && *again == plan->placement) << text;
    if (seen.contains(text)) continue;
    const auto kernel = schedules::compile_kernel(probe_spec(text));
    if (!kernel && kernel.error().code == ErrorCode::kScheduleError) {
      ++too_big;  // does not fit the registers: refused, as a user would see it
      continue;
    }
    ASSERT_TRUE(kernel) << text << "\n" << to_string(kernel.error());
    const auto words = probe.run(kernel->object, kernel->info.symbol, kernel->info.waves);
    ASSERT_TRUE(words) << text << "\n" << to_string(words.error());
    ASSERT_EQ(*words, *expected) << text;
    seen.insert(text);
  }
  RecordProperty("draws", std::to_string(draws));
  RecordProperty("refused_for_registers", std::to_string(too_big));
}

// fp64 product of the same inputs, and all placements with the same bits.
TEST(RandomPlacements, GemmIsRightAndKeepsItsBits) {
  constexpr std::int32_t kM = 150, kN = 100, kK = 200;
  const auto device = strict_device();
  const std::vector<std::uint16_t> a = gaussian(std::size_t{kM} * kK, 1.0, 1),
                                   b = gaussian(std::size_t{kN} * kK, 1.0, 2);
  const DeviceAddress da = upload(*device, a).value(), db = upload(*device, b).value();
  std::mt19937 random(7);
  std::vector<float> first;
  std::set<std::string> seen;
  for (std::uint64_t draws = 0; seen.size() < 60; ++draws) {
    ASSERT_LT(draws, 20000U);
    const std::uint32_t waves = draws % 2 == 0 ? 4 : 8;
    const schedules::Algorithm algorithm = gemm_tile(waves);
    const std::optional<Plan> plan = draw_placement(algorithm, random);
    if (!plan || !seen.insert(schedules::unparse(plan->placement)).second) continue;
    const auto kernel =
        schedules::lower(*plan, {.symbol = "gemm", .kernarg_bytes = sizeof(GemmArgs), .arguments = gemm_arguments()});
    ASSERT_TRUE(kernel) << schedules::unparse(plan->placement) << "\n" << to_string(kernel.error());
    std::vector<float> c(std::size_t{kM} * kN, NAN);
    const GemmArgs args{da, db, upload(*device, c).value(), 2 * kK, 2 * kK, 4 * kN, kM, kN, kK};
    const auto loaded = device->load(kernel->object, "gemm");
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    const Status ran =
        device->launch(**loaded, {.grid = {(kM + 32 * waves - 1) / (32 * waves), 2, 1}, .block = {64 * waves, 1, 1}},
                       std::as_bytes(std::span(&args, 1)), nullptr);
    ASSERT_TRUE(ran) << schedules::unparse(plan->placement) << "\n" << to_string(ran.error());
    ASSERT_TRUE(device->read(std::as_writable_bytes(std::span(c)), args.c));
    device->release(args.c);
    if (first.empty()) {
      for (std::int32_t m = 0; m < kM; ++m) {
        for (std::int32_t n = 0; n < kN; ++n) {
          double sum = 0;
          for (std::int32_t k = 0; k < kK; ++k) {
            sum += reference::bf16_to_double(a[static_cast<std::size_t>(m * kK + k)]) *
                   reference::bf16_to_double(b[static_cast<std::size_t>(n * kK + k)]);
          }
          // fp32 accumulation over 200 terms of size about 1.
          ASSERT_NEAR(c[static_cast<std::size_t>(m * kN + n)], sum, 2e-4) << m << "," << n;
        }
      }
      first = c;
    }
    ASSERT_EQ(c, first) << schedules::unparse(plan->placement);
  }
}

}  // namespace
}  // namespace zyfa::tests
