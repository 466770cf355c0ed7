// What becomes of an algorithm for one block of queries when a wave has two.
#include "schedules/attention/query_blocks.h"

#include <gmock/gmock.h>

#include "tests/unit/schedules/small_algorithm.h"

namespace zyfa::schedules {
namespace {

using testing::ElementsAre;

Algorithm split(const std::string& text, const QueryTiles& tiles) {
  Algorithm algorithm = small_algorithm();
  const Placement placement = parse_placement(text).value();
  split_queries(algorithm, tiles, placement, placement.loop);
  return algorithm;
}

std::vector<std::string> tiles(const Algorithm& algorithm) {
  std::vector<std::string> names;
  for (const Tile& tile : algorithm.tiles) names.push_back(tile.name);
  return names;
}

// "use_q0: t r_q0": a stage and what it touches.
std::vector<std::string> stages(const Algorithm& algorithm) {
  std::vector<std::string> texts;
  for (const Stage& stage : algorithm.stages) {
    std::string text = stage.name + ":";
    for (const Access& access : stage.accesses) text += " " + access.tile;
    texts.push_back(text);
  }
  return texts;
}

const QueryTiles kState{.own = {"s"}, .agprs = {"s", "r"}};

TEST(QueryBlocks, OneBlockLeavesTheAlgorithmAlone) {
  const Algorithm algorithm = split("name=p;waves=4;loop=load|use,sum", kState);
  EXPECT_THAT(tiles(algorithm), ElementsAre("t", "r", "s"));
  EXPECT_THAT(stages(algorithm), ElementsAre("load: t", "use: t r", "sum: r s"));
  EXPECT_THAT(algorithm.legal_waves, ElementsAre(4, 8));
  for (const Tile& tile : algorithm.tiles) EXPECT_EQ(tile.shape.bank, jit::Bank::kVgpr) << tile.name;
}

TEST(QueryBlocks, TwoBlocksShareLoadsAndFragments) {
  const Algorithm algorithm = split("name=p;waves=4;queries=64;loop=load|use,sum_q0,sum_q1", kState);
  EXPECT_THAT(tiles(algorithm), ElementsAre("t", "r", "s_q0", "s_q1"));
  EXPECT_THAT(stages(algorithm), ElementsAre("load: t", "use: t r", "sum_q0: r s_q0", "sum_q1: r s_q1"));
  EXPECT_THAT(algorithm.legal_waves, ElementsAre(4));
  EXPECT_EQ(algorithm.find_tile("r")->shape.bank, jit::Bank::kAgpr);
  EXPECT_EQ(algorithm.find_tile("s_q1")->shape.bank, jit::Bank::kAgpr);
  EXPECT_EQ(algorithm.find_tile("t")->shape.bank, jit::Bank::kVgpr);
}

TEST(QueryBlocks, APlacementMayReadFragmentsForEachBlock) {
  const Algorithm algorithm =
      split("name=p;waves=4;queries=64;loop=load|use_q0,sum_q0,use_q1,sum_q1", {.own = {"s"}, .agprs = {}});
  EXPECT_THAT(tiles(algorithm), ElementsAre("t", "r_q0", "r_q1", "s_q0", "s_q1"));
  EXPECT_THAT(stages(algorithm),
              ElementsAre("load: t", "use_q0: t r_q0", "use_q1: t r_q1", "sum_q0: r_q0 s_q0", "sum_q1: r_q1 s_q1"));
  EXPECT_EQ(algorithm.find_tile("r_q0")->shape.bank, jit::Bank::kVgpr);
}

// What a variant has nothing to do in, and a scratch tile of a block.
TEST(QueryBlocks, StagesThatTouchNothingBelongToBlocks) {
  Algorithm algorithm = small_algorithm();
  algorithm.stages.push_back({"nothing", {}, Speculation::kHarmless, {}});
  const Placement placement = parse_placement("name=p;waves=4;queries=64;loop=load").value();
  split_queries(algorithm, {.own = {"r", "s"}, .agprs = {}}, placement, placement.loop);
  EXPECT_THAT(stages(algorithm), ElementsAre("load: t", "use_q0: t r_q0", "use_q1: t r_q1", "sum_q0: r_q0 s_q0",
                                             "sum_q1: r_q1 s_q1", "nothing_q0:", "nothing_q1:"));
}

TEST(QueryBlocks, Suffixes) {
  const Placement one = parse_placement("name=p;loop=a").value();
  const Placement two = parse_placement("name=p;queries=64;loop=a").value();
  EXPECT_EQ(query_blocks(one), 1U);
  EXPECT_EQ(query_suffix(one, 0), "");
  EXPECT_EQ(query_blocks(two), 2U);
  EXPECT_EQ(query_suffix(two, 1), "_q1");
}

}  // namespace
}  // namespace zyfa::schedules
