#include "regatta/workload/strategy.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::workload {
namespace {

using ::testing::ElementsAre;

std::vector<int> values(const std::vector<Rank>& ranks) {
  std::vector<int> values;
  values.reserve(ranks.size());
  for (const Rank rank : ranks)
    values.push_back(rank.value);
  return values;
}

ModelShape model_of(int layers, int heads, int ffn_hidden, int vocab) {
  ModelShape model;
  model.layers = layers;
  model.heads = heads;
  model.hidden = heads * 8;
  model.ffn_hidden = ffn_hidden;
  model.vocab = vocab;
  return model;
}

TEST(Strategy, PutsTensorParallelNeighboursNextToEachOther) {
  const Strategy strategy{.tp = 2, .pp = 2, .dp = 3};
  EXPECT_THAT(values(tp_group(strategy, Rank{3})), ElementsAre(2, 3));
  EXPECT_THAT(values(dp_group(strategy, Rank{3})), ElementsAre(1, 3, 5));
  EXPECT_THAT(values(pp_group(strategy, Rank{3})), ElementsAre(3, 9));
}

TEST(Strategy, CoordinatesAndRanksAreInverse) {
  const Strategy strategy{.tp = 2, .pp = 3, .dp = 4};
  for (int rank = 0; rank < strategy.world_size(); ++rank) {
    const RankCoordinates at = coordinates_of(strategy, Rank{rank});
    EXPECT_LT(at.tp, 2);
    EXPECT_LT(at.pp, 3);
    EXPECT_LT(at.dp, 4);
    EXPECT_EQ(rank_at(strategy, at), Rank{rank});
    const std::vector<Rank> group = dp_group(strategy, Rank{rank});
    EXPECT_NE(std::find(group.begin(), group.end(), Rank{rank}), group.end());
  }
}

TEST(StageLayers, GiveTheRemainderToTheMiddle) {
  const ModelShape model = model_of(10, 8, 64, 256);
  std::vector<int> counts;
  counts.reserve(4);
  for (int pp = 0; pp < 4; ++pp)
    counts.push_back(stage_layers(model, 4, pp).count);
  EXPECT_THAT(counts, ElementsAre(2, 3, 3, 2));
  EXPECT_EQ(stage_layers(model, 4, 2).first, 5);
}

TEST(StageLayers, CoverEveryLayerOnceAndEvenly) {
  for (int layers = 1; layers <= 20; ++layers) {
    for (int pp = 1; pp <= layers; ++pp) {
      int next = 0;
      for (int stage = 0; stage < pp; ++stage) {
        const LayerRange range = stage_layers(model_of(layers, 8, 64, 256), pp, stage);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, layers / pp);
        EXPECT_LE(range.count, (layers + pp - 1) / pp);
        next += range.count;
      }
      EXPECT_EQ(next, layers);
    }
  }
}

TEST(MicroBatches, DivideTheGlobalBatch) {
  const ModelShape model = model_of(8, 8, 64, 256);
  EXPECT_EQ(*micro_batches(model, {.tp = 2, .pp = 2, .dp = 2, .micro_batch = 2}, 16), 4);
}

struct BadStrategy {
  Strategy strategy;
  const char* message;
};

TEST(MicroBatches, NameTheTwoNumbersThatDoNotDivide) {
  const ModelShape model = model_of(4, 8, 36, 258);
  const BadStrategy cases[] = {
      {{.tp = 3}, "tp 3 does not divide heads 8; choose a divisor of 8"},
      {{.tp = 8}, "tp 8 does not divide ffn_hidden 36; choose a divisor of 36"},
      {{.tp = 4}, "tp 4 does not divide vocab 258; choose a divisor of 258"},
      {{.pp = 5}, "pp 5 exceeds layers 4; a stage needs a layer"},
      {{.dp = 3, .micro_batch = 2},
       "dp 3 x micro_batch 2 does not divide global_batch 16; choose a product that divides it"},
      {{.tp = 0}, "tp0 pp1 dp1 mb1 recompute=none: every degree must be at least 1"},
  };
  for (const BadStrategy& bad : cases) {
    const auto count = micro_batches(model, bad.strategy, 16);
    ASSERT_FALSE(count.has_value()) << bad.message;
    EXPECT_EQ(count.error().message, bad.message);
  }
}

TEST(Strategy, ReadsAsOneLine) {
  EXPECT_EQ(to_string(Strategy{.tp = 2, .pp = 4}), "tp2 pp4 dp1 mb1 recompute=none");
  EXPECT_EQ(to_string(Strategy{.recompute = Recompute::kFull, .overlap = false}),
            "tp1 pp1 dp1 mb1 recompute=full overlap=off");
}

}  // namespace
}  // namespace regatta::workload
