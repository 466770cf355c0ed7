// The tuned rows: the file is what the writer makes of it, and rows that are not sound are refused by name.
#include "schedules/select/tuned_rows.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <vector>

namespace zyfa::schedules {
namespace {

using testing::HasSubstr;

const std::string kFile = std::string(ZYFA_SOURCE_DIR) + "/schedules/select/tuned_rows.inc";

TEST(TunedRows, TheFileIsWhatTheWriterMakesOfIt) {
  std::ifstream file(kFile);
  ASSERT_TRUE(file) << kFile;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const Expected<std::string> written = write_tuned_rows(kTunedRows);
  ASSERT_TRUE(written) << to_string(written.error());
  EXPECT_EQ(*written, text);
}

TEST(TunedRows, StandInTheKernelTable) {
  for (const TunedRow& tuned : kTunedRows) {
    const Row* row = find_row(kernel_table(), tuned.row.name);
    ASSERT_NE(row, nullptr) << tuned.row.name;
    EXPECT_EQ(*row, tuned.row) << tuned.row.name;
  }
}

// By hand: e4m3 with lean P in two forms and exact P in one, int8 with either P in one, each with and without exponents
// of blocks, each with both row sums; folded scores alone; and BF16, which has no such options.
TEST(VariantsOf, AreAllThatARowServes) {
  const auto count = [](std::string_view row) { return variants_of(*find_row(kernel_table(), row)).size(); };
  EXPECT_EQ(count("fp8_pingpong"), 20U);
  EXPECT_EQ(count("fp8_pingpong_folded"), 4U);
  EXPECT_EQ(count("fp8_naive"), 40U);  // both head dims
  EXPECT_EQ(count("fp8_near_wide"), 20U);
  EXPECT_EQ(count("pingpong"), 1U);
  for (const Row& row : kernel_table()) {
    if (row.family != Family::kAttentionForward) continue;
    std::vector<KernelSpec> variants = variants_of(row);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      EXPECT_EQ(row.mismatch(variants[i]), "") << row.name;
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(variants[i] == variants[j]) << row.name;
    }
  }
}

// Every field of a row, in C++ that says the same: written down by hand.
TEST(TunedRows, EveryFieldIsWritten) {
  const std::vector<TunedRow> rows{{.row = {.name = "a", .placement = "name=a;waves=4;groups=1;loop=x|y"}},
                                   {.row = {.name = "b",
                                            .placement = "name=b;waves=8;groups=2;loop=x;math=scalar",
                                            .use = RowUse::kByName,
                                            .family = Family::kQuantise,
                                            .element = {ElementType::kFp8E4M3, ElementType::kInt8},
                                            .head_dim_qk = {128, 192},
                                            .head_dim_v = 128,
                                            .mask = MaskKind::kCausal,
                                            .lse = LseOutput::kWritten,
                                            .probability = ProbabilityRule::kExact,
                                            .block_exponents = BlockExponents::kNone,
                                            .form = ScoreForm::kFolded,
                                            .near_keys = NearKeys::kBf16,
                                            .smoothing = Smoothing::kMean,
                                            .length = SequenceLength::kShort},
                                    .problem = "bf16,d=128",
                                    .tokens = 512,
                                    .note = "why"}};
  const Expected<std::string> text = write_tuned_rows(rows);
  ASSERT_TRUE(text) << to_string(text.error());
  EXPECT_EQ(text->substr(text->find("TunedRow{")), R"x(TunedRow{
    .row = {.name = "a",
            .placement = "name=a;"
                         "waves=4;"
                         "groups=1;"
                         "loop=x|"
                         "y"},
},
TunedRow{
    .row = {.name = "b",
            .placement = "name=b;"
                         "waves=8;"
                         "groups=2;"
                         "loop=x;"
                         "math=scalar",
            .use = RowUse::kByName,
            .family = Family::kQuantise,
            .element = {ElementType::kFp8E4M3, ElementType::kInt8},
            .head_dim_qk = {128, 192},
            .head_dim_v = 128,
            .mask = MaskKind::kCausal,
            .lse = LseOutput::kWritten,
            .probability = ProbabilityRule::kExact,
            .block_exponents = BlockExponents::kNone,
            .form = ScoreForm::kFolded,
            .near_keys = NearKeys::kBf16,
            .smoothing = Smoothing::kMean,
            .length = SequenceLength::kShort},
    .problem = "bf16,d=128",
    .tokens = 512,
    .note = "why",
},
)x");
}

// Rows that share a placement share its kernels.
TEST(TunedRows, MayShareAPlacement) {
  constexpr std::string_view kShared = "name=a;waves=4;groups=1;loop=x";
  std::vector<TunedRow> rows{{.row = {.name = "a", .placement = kShared, .mask = MaskKind::kFull}},
                             {.row = {.name = "b", .placement = kShared, .mask = MaskKind::kCausal}}};
  EXPECT_TRUE(check_tuned_rows(rows));
  rows[0].row.placement = "name=a;waves=8;groups=1;loop=x";
  const Status alone = check_tuned_rows(rows);
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().message, HasSubstr("tuned row 'b': its placement is named 'a'"));
}

TEST(TunedRows, TamperedOnesAreRefusedByName) {
  const TunedRow sound{.row = {.name = "b", .placement = "name=b;waves=4;groups=1;loop=x", .mask = MaskKind::kFull},
                       .problem = "bf16,d=128",
                       .tokens = 512};
  const TunedRow first{.row = {.name = "a", .placement = "name=a;waves=4;groups=1;loop=x"}};
  ASSERT_TRUE(check_tuned_rows(std::vector{first, sound}));
  const auto refusal = [&](auto change) {
    std::vector<TunedRow> rows{first, sound};
    change(rows[1]);
    const Status status = check_tuned_rows(rows);
    EXPECT_FALSE(write_tuned_rows(rows));
    EXPECT_TRUE(status || status.error().code == ErrorCode::kScheduleError);
    return status ? "accepted" : status.error().message;
  };
  EXPECT_THAT(refusal([](TunedRow& t) { t.row.placement = "name=b;waves=5;groups=1;loop=x"; }),
              HasSubstr("tuned row 'b': "));
  EXPECT_EQ(refusal([](TunedRow& t) { t.row.placement = "name=b;groups=1;waves=4;loop=x"; }),
            "tuned row 'b': its placement is not in canonical form");
  EXPECT_EQ(refusal([](TunedRow& t) { t.row.placement = "name=c;waves=4;groups=1;loop=x"; }),
            "tuned row 'b': its placement is named 'c'");
  EXPECT_EQ(refusal([](TunedRow& t) { t.tokens = 0; }), "tuned row 'b': a problem needs tokens, and they it");
  EXPECT_EQ(refusal([](TunedRow& t) { t.note = "a \"word\""; }),
            "tuned row 'b': a text holds a quote, a backslash or a line break");
  EXPECT_EQ(refusal([](TunedRow& t) { t.row.mask = {}; }), "tuned row 'b': it has the conditions of 'a'");
  EXPECT_EQ(refusal([&](TunedRow& t) { t.row = first.row; }), "tuned row 'a': the name is there twice");
  EXPECT_EQ(refusal([](TunedRow& t) {
              t.row.name = "A";
              t.row.placement = "name=A;waves=4;groups=1;loop=x";
            }),
            "tuned row 'A': rows must be sorted by name");
}

}  // namespace
}  // namespace zyfa::schedules
