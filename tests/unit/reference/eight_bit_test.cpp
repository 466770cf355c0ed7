// The 8-bit formats: values written out from the OCP definition, and rounding against an exhaustive search.
#include "tests/reference/eight_bit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace zyfa::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(E4m3, ValuesOfTheDefinition) {
  const std::pair<int, double> values[] = {{0x00, 0.0},    {0x01, 1.0 / 512}, {0x07, 7.0 / 512}, {0x08, 1.0 / 64},
                                           {0x37, 0.9375}, {0x38, 1.0},       {0x39, 1.125},     {0x40, 2.0},
                                           {0x7d, 416.0},  {0x7e, 448.0},     {0x77, 240.0},     {0x78, 256.0}};
  for (const auto& [code, value] : values) {
    EXPECT_EQ(e4m3_to_double(static_cast<std::uint8_t>(code)), value) << code;
    EXPECT_EQ(e4m3_to_double(static_cast<std::uint8_t>(code | 0x80)), -value) << code;
    EXPECT_EQ(double_to_e4m3(value), code) << code;
    EXPECT_EQ(double_to_e4m3(-value), code | 0x80) << code;
  }
  EXPECT_TRUE(std::signbit(e4m3_to_double(0x80)));
  EXPECT_TRUE(std::isnan(e4m3_to_double(0x7f)) && std::isnan(e4m3_to_double(0xff)));
}

// What Lean probabilities rest on: codes ascend with the value, and 8 more doubles it, from code 8 on.
TEST(E4m3, EightCodesADoubling) {
  for (int code = 0; code < kE4m3MaxCode; ++code) {
    const double value = e4m3_to_double(static_cast<std::uint8_t>(code));
    EXPECT_LT(value, e4m3_to_double(static_cast<std::uint8_t>(code + 1)));
    if (code >= 8 && code + 8 <= kE4m3MaxCode) {
      EXPECT_EQ(e4m3_to_double(static_cast<std::uint8_t>(code + 8)), 2.0 * value);
    }
  }
}

// The nearest of all 127 magnitudes, the even code where two are as near.
std::uint8_t search(double value) {
  int best = 0;
  for (int code = 1; code <= kE4m3MaxCode; ++code) {
    const double distance = std::abs(e4m3_to_double(static_cast<std::uint8_t>(code)) - std::abs(value));
    const double least = std::abs(e4m3_to_double(static_cast<std::uint8_t>(best)) - std::abs(value));
    best = distance < least || (distance == least && code % 2 == 0) ? code : best;
  }
  return static_cast<std::uint8_t>(std::signbit(value) ? best | 0x80 : best);
}

TEST(E4m3, RoundsToNearestEvenOnTiesAndBesideThem) {
  for (int code = 0; code < kE4m3MaxCode; ++code) {
    const double low = e4m3_to_double(static_cast<std::uint8_t>(code)),
                 high = e4m3_to_double(static_cast<std::uint8_t>(code + 1)), tie = (low + high) / 2;
    for (const double value : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, kInfinity), low, high}) {
      EXPECT_EQ(double_to_e4m3(value), search(value)) << value;
      EXPECT_EQ(double_to_e4m3(-value), search(-value)) << -value;
    }
    EXPECT_EQ(double_to_e4m3(tie), code + code % 2) << tie;
  }
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-12.0, 9.0);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::exp2(exponent(random)) * (i % 2 == 0 ? 1 : -1);
    EXPECT_EQ(double_to_e4m3(value), search(value)) << value;
  }
}

TEST(E4m3, SaturatesAndKeepsWhatIsNoNumber) {
  for (const double value : {449.0, 464.0, 465.0, 480.0, 1e300}) {
    EXPECT_EQ(double_to_e4m3(value), 0x7e);
    EXPECT_EQ(double_to_e4m3(-value), 0xfe);
  }
  EXPECT_EQ(double_to_e4m3(kInfinity), 0x7f);
  EXPECT_EQ(double_to_e4m3(-kInfinity), 0xff);
  EXPECT_EQ(double_to_e4m3(std::nan("")) & 0x7f, 0x7f);
  EXPECT_EQ(double_to_e4m3(-0.0), 0x80);
  EXPECT_EQ(double_to_e4m3(std::ldexp(1.0, -10)), 0);  // half of the smallest: even
  EXPECT_EQ(double_to_e4m3(std::nextafter(std::ldexp(1.0, -10), 1.0)), 1);
}

TEST(Int8, NearestEvenAndSymmetric) {
  const std::pair<double, int> values[] = {
      {0.5, 0},      {1.5, 2},     {2.5, 2},       {-0.5, 0},      {-1.5, -2},     {126.5, 126},     {127.0, 127},
      {127.49, 127}, {300.0, 127}, {-128.0, -127}, {-127.6, -127}, {-126.5, -126}, {kInfinity, 127}, {-1e30, -127}};
  for (const auto& [value, code] : values) {
    EXPECT_EQ(double_to_int8(value), code) << value;
  }
}

TEST(Byte, RoundsOrTruncatesAndClamps) {
  const std::tuple<double, int, int> values[] = {{-3.0, 0, 0},       {-0.6, 0, 0},         {0.5, 0, 0},
                                                 {0.51, 1, 0},       {1.5, 2, 1},          {119.543, 120, 119},
                                                 {126.5, 126, 126},  {254.9, 255, 254},    {999.0, 255, 255},
                                                 {-kInfinity, 0, 0}, {kInfinity, 255, 255}};
  for (const auto& [value, nearest, truncated] : values) {
    EXPECT_EQ(double_to_byte(value, ByteRounding::kNearestEven), nearest) << value;
    EXPECT_EQ(double_to_byte(value, ByteRounding::kTruncate), truncated) << value;
  }
}

}  // namespace
}  // namespace zyfa::reference
