#include "regatta/model/workload/strategy.h"

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
  model.seq = 16;
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
    counts.push_back(stage_layers(model, {.pp = 4}, pp).count);
  EXPECT_THAT(counts, ElementsAre(2, 3, 3, 2));
  EXPECT_EQ(stage_layers(model, {.pp = 4}, 2).first, 5);
  const auto counts_of = [](int layers, int pp) {
    std::vector<int> all;
    for (int stage = 0; stage < pp; ++stage)
      all.push_back(stage_layers(model_of(layers, 8, 64, 256), {.pp = pp}, stage).count);
    return all;
  };
  EXPECT_THAT(counts_of(9, 4), ElementsAre(2, 3, 2, 2));
  EXPECT_THAT(counts_of(11, 4), ElementsAre(3, 3, 3, 2));
  EXPECT_THAT(counts_of(6, 5), ElementsAre(1, 1, 2, 1, 1));
  EXPECT_THAT(counts_of(7, 5), ElementsAre(1, 2, 2, 1, 1));
  EXPECT_THAT(counts_of(9, 5), ElementsAre(2, 2, 2, 2, 1));
}

TEST(StageLayers, CoverEveryLayerOnceAndEvenly) {
  for (int layers = 1; layers <= 20; ++layers) {
    for (int pp = 1; pp <= layers; ++pp) {
      int next = 0;
      for (int stage = 0; stage < pp; ++stage) {
        const LayerRange range = stage_layers(model_of(layers, 8, 64, 256), {.pp = pp}, stage);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, layers / pp);
        for (int i = 0; i < range.count; ++i)
          EXPECT_EQ(part_of_layer(model_of(layers, 8, 64, 256), pp, range.first + i), stage);
        EXPECT_LE(range.count, (layers + pp - 1) / pp);
        next += range.count;
      }
      EXPECT_EQ(next, layers);
    }
  }
}

TEST(StageLayers, AreThoseOfTheStrategy) {
  const ModelShape model = model_of(10, 8, 64, 256);
  const Strategy strategy{.pp = 3, .stage_layers = {2, 5, 3}};
  EXPECT_EQ(stage_layers(model, strategy, 0).count, 2);
  EXPECT_EQ(stage_layers(model, strategy, 1).first, 2);
  EXPECT_EQ(stage_layers(model, strategy, 2).first, 7);
  EXPECT_EQ(stage_layers(model, strategy, 2).count, 3);
}

std::vector<int> counts_of_parts(const ModelShape& model, const Strategy& strategy) {
  std::vector<int> counts;
  int next = 0;
  for (int part = 0; part < strategy.pp * parts_per_stage(strategy); ++part) {
    const LayerRange range = part_layers(model, strategy, part);
    EXPECT_EQ(range.first, next);
    next += range.count;
    counts.push_back(range.count);
  }
  EXPECT_EQ(next, model.layers);
  return counts;
}

TEST(PartLayers, DivideThoseOfAStageEquallyAmongItsParts) {
  const ModelShape model = model_of(16, 8, 64, 256);
  Strategy strategy{.pp = 3, .stage_layers = {6, 8, 2}};
  EXPECT_THAT(counts_of_parts(model, strategy), ElementsAre(6, 8, 2));
  strategy.schedule = PipelineSchedule::kInterleaved;
  strategy.virtual_stages = 2;
  EXPECT_THAT(counts_of_parts(model, strategy), ElementsAre(3, 4, 1, 3, 4, 1));
  strategy.schedule = PipelineSchedule::kZbV;
  strategy.virtual_stages = 1;
  EXPECT_THAT(counts_of_parts(model, strategy), ElementsAre(3, 4, 1, 1, 4, 3));
  strategy.stage_layers.clear();
  EXPECT_THAT(counts_of_parts(model, strategy), ElementsAre(2, 3, 3, 3, 3, 2));
}

TEST(PartLayers, AreThoseOfTheStrategyWhereItListsThem) {
  const ModelShape model = model_of(16, 8, 64, 256);
  Strategy strategy{.pp = 3,
                    .schedule = PipelineSchedule::kInterleaved,
                    .virtual_stages = 2,
                    .stage_layers = {3, 4, 2, 3, 4, 0}};
  EXPECT_THAT(counts_of_parts(model, strategy), ElementsAre(3, 4, 2, 3, 4, 0));
  EXPECT_EQ(layers_on_stage(model, strategy, 0), 6);
  EXPECT_EQ(layers_on_stage(model, strategy, 2), 2);
  strategy.schedule = PipelineSchedule::kZbV;
  strategy.virtual_stages = 1;
  EXPECT_THAT(counts_of_parts(model, strategy), ElementsAre(3, 4, 2, 3, 4, 0));
  EXPECT_EQ(layers_on_stage(model, strategy, 0), 3) << "its second part is the last of the model";
  EXPECT_EQ(layers_on_stage(model, strategy, 2), 5);
}

TEST(StageLayers, MustBeThoseOfTheModel) {
  const ModelShape model = model_of(12, 8, 64, 256);
  const auto refusal = [&](Strategy strategy, std::vector<int> layers) {
    strategy.stage_layers = std::move(layers);
    const auto count = micro_batches(model, strategy, 16);
    return count ? std::string("none") : count.error().message;
  };
  EXPECT_EQ(refusal({.pp = 3}, {3, 5, 4}), "none");
  EXPECT_EQ(refusal({.pp = 2}, {3, 5, 4}),
            "stage_layers: 3 stages are given, pp is 2; give one number a stage, or leave pp out");
  EXPECT_EQ(refusal({.pp = 3}, {12, 0, 0}),
            "stage_layers: stage 1 has 0 layers; a stage needs a layer");
  EXPECT_EQ(refusal({.pp = 3}, {4, 4, 5}),
            "stage_layers: they sum to 13, the model has 12 layers; give every layer to one stage");
  const Strategy interleaved{
      .pp = 3, .schedule = PipelineSchedule::kInterleaved, .virtual_stages = 2};
  EXPECT_EQ(refusal(interleaved, {4, 6, 2}), "none");
  EXPECT_EQ(refusal(interleaved, {4, 5, 3}),
            "stage_layers: the 5 layers of stage 1 do not divide into its 2 parts; choose "
            "multiples of 2, or give a number for each part");
  EXPECT_EQ(refusal(interleaved, {2, 2, 2, 2, 3, 1}), "none");
  EXPECT_EQ(refusal(interleaved, {2, 2, 2, 2, 4, 0}), "none");
  EXPECT_EQ(refusal(interleaved, {2, 2, 0, 4, 4, 0}),
            "stage_layers: stage 2 has 0 layers; a stage needs a layer");
  EXPECT_EQ(refusal(interleaved, {2, 2, 2, 2, 5, -1}),
            "stage_layers: -1 layers; give numbers of layers");
  EXPECT_EQ(refusal(interleaved, {2, 2, 2, 2, 4}),
            "stage_layers: 5 stages are given, pp is 3; give one number a stage, or with "
            "virtual_stages one a part, or leave pp out");
  const Strategy dual{.pp = 2, .schedule = PipelineSchedule::kDualPipe};
  EXPECT_EQ(refusal(dual, {6, 6}), "none");
  EXPECT_EQ(refusal(dual, {7, 5}),
            "stage_layers: dualpipe has part i and part pp - 1 - i on stage i; write the same "
            "numbers from both ends");
}

TEST(Strategy, NamesRunsOfEqualStages) {
  EXPECT_EQ(to_string(Strategy{.pp = 5, .stage_layers = {7, 8, 8, 8, 5}}),
            "tp1 pp5 dp1 mb1 recompute=none layers=7,3x8,5");
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
      {{.pp = 5}, "pp 5 exceeds layers 4; a stage needs a layer"},
      {{.dp = 3, .micro_batch = 2},
       "dp 3 x micro_batch 2 does not divide global_batch 16; choose a product that divides it"},
      {{.tp = 0}, "tp0 pp1 dp1 mb1 recompute=none: every degree must be at least 1"},
      {{.cp = 3},
       "cp 3: a ring gives each rank two parts of a sequence, and 6 parts do not divide seq 16; "
       "choose a divisor of 8"},
      {{.tp = 4, .cp = 4, .context = ContextParallelism::kAllToAll},
       "tp x cp 16 does not divide kv_heads 8; choose a divisor of 8"},
      {{.dp = 2, .ep = 2}, "ep 2: the model has no experts; use ep 1"},
      {{.virtual_stages = 2},
       "schedule 1f1b with virtual_stages 2: interleaved needs at least 2, the others 1; change "
       "one of them"},
      {{.pp = 3, .schedule = PipelineSchedule::kInterleaved, .virtual_stages = 2},
       "pp 3 x virtual_stages 2 exceeds layers 4; a part needs a layer, so choose a product "
       "of at most 4"},
      {{.pp = 3, .schedule = PipelineSchedule::kDualPipe},
       "dualpipe needs an even pp, not 3; micro-batches enter at both ends"},
  };
  for (const BadStrategy& bad : cases) {
    const auto count = micro_batches(model, bad.strategy, 16);
    ASSERT_FALSE(count.has_value()) << bad.message;
    EXPECT_EQ(count.error().message, bad.message);
  }
}

TEST(CheckRequest, RefusesKeysThatContradictEachOther) {
  const auto message_of = [](const StrategyRequest& request) {
    const Status known = check_request(request);
    return known ? "" : known.error().message;
  };
  EXPECT_EQ(message_of({.zero = 0, .shard_ranks = 16}),
            "strategy: shard_ranks 16, but with zero 0 replicas share nothing; set zero 1 to 3, or "
            "leave shard_ranks out");
  EXPECT_EQ(message_of({.zero = 1, .shard_ranks = 16}), "");
  EXPECT_EQ(message_of({.zero = 0, .shard_ranks = 0}), "");
  EXPECT_EQ(message_of({.shard_ranks = 16}), "");
  StrategyRequest request{.tp = 1};
  EXPECT_EQ(message_of(request), "");
  request.sequence_parallel = true;
  EXPECT_NE(message_of(request), "");
  request.tp = 2;
  EXPECT_EQ(message_of(request), "");
  request.pp = 1;
  request.schedule = PipelineSchedule::kZbV;
  EXPECT_NE(message_of(request), "");
  request.schedule = PipelineSchedule::k1F1B;
  EXPECT_EQ(message_of(request), "");
}

TEST(Strategy, ReadsAsOneLine) {
  EXPECT_EQ(to_string(Strategy{.tp = 2, .pp = 4}), "tp2 pp4 dp1 mb1 recompute=none");
  EXPECT_EQ(to_string(Strategy{.recompute = Recompute::kFull, .overlap = false}),
            "tp1 pp1 dp1 mb1 recompute=full overlap=off");
  EXPECT_EQ(to_string(Strategy{.pp = 4,
                               .schedule = PipelineSchedule::kInterleaved,
                               .virtual_stages = 2,
                               .sequence_parallel = true,
                               .cp = 2,
                               .ep = 4,
                               .zero = 3,
                               .shard_ranks = 8,
                               .offload = Offload::kOptimizer}),
            "tp1 pp4 dp1 mb1 recompute=none cp2 ep4 vp2 sp zero3/8 offload=optimizer");
}

TEST(MicroBatches, LeaveTheVocabularyToThoseWhoPadIt) {
  EXPECT_TRUE(micro_batches(model_of(4, 8, 64, 50257), {.tp = 4}, 16).has_value());
}

TEST(StrategyRequest, IsFilledUpWithDefaultsOrAnotherRequest) {
  StrategyRequest flag;
  flag.tp = 2;
  flag.zero = 3;
  StrategyRequest file;
  file.tp = 4;
  file.schedule = PipelineSchedule::kZbV;
  file.overlap = false;
  EXPECT_EQ(requested(merged(flag, file)),
            (Strategy{.tp = 2, .overlap = false, .schedule = PipelineSchedule::kZbV, .zero = 3}));
  EXPECT_EQ(requested({}), Strategy{});
  file.stage_layers = {{3, 4, 3}};
  EXPECT_EQ(requested(merged(flag, file)).pp, 3);
  EXPECT_EQ(requested(file).stage_layers, (std::vector<int>{3, 4, 3}));
}

TEST(MicroBatches, NameExpertsThatDoNotDivide) {
  ModelShape model = model_of(4, 8, 64, 256);
  model.experts = {.count = 8, .top_k = 2, .ffn_hidden = 16};
  EXPECT_EQ(micro_batches(model, {.dp = 3, .ep = 3}, 12).error().message,
            "ep 3 does not divide experts 8; choose a divisor of 8");
  EXPECT_EQ(micro_batches(model, {.dp = 2, .ep = 4}, 12).error().message,
            "ep 4 x etp 1 (as tp) does not divide tp x cp x dp 2; take ep 2");
  EXPECT_EQ(*micro_batches(model, {.dp = 2, .cp = 2, .ep = 4}, 12), 6);
}

// Qwen3 235B on 256 devices: tp 2 x dp 16 are the 32 ranks that ep needs.
TEST(ExpertFold, HasRanksOfATensorGroupInTheGroupOfExperts) {
  Strategy strategy{.tp = 2, .pp = 8, .dp = 16, .sequence_parallel = true, .ep = 32, .etp = 1};
  ModelShape model = model_of(8, 64, 64, 256);
  model.experts = {.count = 128, .top_k = 8, .ffn_hidden = 48};
  EXPECT_EQ(*micro_batches(model, strategy, 32), 2);
  ExpertFold fold = expert_fold(strategy);
  EXPECT_EQ(fold.edp, 1);
  EXPECT_EQ(fold.ep_stride(), 1);
  strategy.ep = 8;
  fold = expert_fold(strategy);
  EXPECT_EQ(fold.edp, 4);
  EXPECT_EQ(fold.edp_stride(), 8);
  EXPECT_TRUE(is_folded(strategy));
  EXPECT_EQ(to_string(strategy), "tp2 pp8 dp16 mb1 recompute=none ep8 etp1 sp");
}

TEST(ExpertFold, IsThatOfTheBlockWhereNoneIsGiven) {
  Strategy strategy{.tp = 4, .dp = 8, .cp = 2, .ep = 8};
  EXPECT_FALSE(is_folded(strategy));
  const ExpertFold fold = expert_fold(strategy);
  EXPECT_EQ(fold.etp, 4);
  EXPECT_EQ(fold.edp, 2);
  EXPECT_EQ(fold.edp_stride(), 32);
  strategy.etp = 4;
  EXPECT_FALSE(is_folded(strategy));
}

TEST(ExpertFold, ThatCannotBeIsRefusedWithTheNearestThatCan) {
  ModelShape model = model_of(8, 64, 64, 256);
  model.experts = {.count = 128, .top_k = 8, .ffn_hidden = 48};
  const auto message = [&](const Strategy& strategy) {
    return micro_batches(model, strategy, 32).error().message;
  };
  Strategy strategy{.tp = 2, .dp = 16, .sequence_parallel = true, .ep = 32};
  EXPECT_EQ(message(strategy),
            "ep 32 x etp 2 (as tp) does not divide tp x cp x dp 32; take ep 16, or etp 1");
  strategy.ep = 64;
  EXPECT_EQ(message(strategy), "ep 64 x etp 2 (as tp) does not divide tp x cp x dp 32; take ep 16");
  strategy.etp = 3;
  EXPECT_EQ(message(strategy), "ep 64 x etp 3 does not divide tp x cp x dp 32; take etp 1");
  strategy.etp = 5;
  EXPECT_EQ(message(strategy),
            "etp 5 does not divide expert_ffn_hidden 48; choose a divisor of 48");
  strategy.ep = 8;
  strategy.etp = 1;
  strategy.sequence_parallel = false;
  EXPECT_EQ(message(strategy),
            "etp 1 with tp 2: tensor ranks that hold the same tokens would send each of them 2 "
            "times; set sequence_parallel, or leave etp out");
  EXPECT_EQ(micro_batches(model_of(4, 8, 64, 256), {.etp = 2}, 4).error().message,
            "etp 2: the model has no experts; leave etp out");
}

TEST(Names, OfAKeyAreReadBack) {
  for (const PipelineSchedule schedule : kPipelineSchedules)
    EXPECT_EQ(schedule_named(to_string(schedule)), schedule);
  for (const Recompute one : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
    EXPECT_EQ(recompute_named(to_string(one)), one);
  for (const Precision one :
       {Precision::kFp32, Precision::kTf32, Precision::kFp16, Precision::kBf16, Precision::kFp8})
    EXPECT_EQ(precision_named(to_string(one)), one);
  EXPECT_EQ(schedule_named("gpipe"), std::nullopt);
}

TEST(MicroBatches, RecomputePartsOfExpertsOnlyWhereThereAreSome) {
  const ModelShape& dense = find_model_preset("llama3-8b")->model;
  const auto refused = micro_batches(dense, {.recompute = Recompute::kPointwise}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "recompute pointwise: the model has no experts; take none, selective or full");
  const ModelShape& mixture = find_model_preset("qwen3-30b-a3b")->model;
  EXPECT_TRUE(micro_batches(mixture, {.recompute = Recompute::kExperts}, 1));
}

}  // namespace
}  // namespace regatta::workload
