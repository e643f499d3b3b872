// The bars of docs/benchmarks.md, on rows that nothing was fitted to but the share of the peak that
// an H100 reaches in 16 bits, which those of MosaicML set; where the published tables
// lie beside the project.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/model/cost/software_stack.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/planning/replay/embedded_sets.h"
#include "regatta/planning/replay/internal/test_tables.h"
#include "regatta/planning/replay/replay.h"

namespace regatta::replay {
namespace {

struct Bar {
  const char* set;
  MeasuredQuantity quantity;
  double mape;
  double worst;
  double spearman;
};

class HeldOut : public testing::TestWithParam<Bar> {};

std::optional<std::vector<PublishedRun>> runs_of(const std::string& set) {
  const auto text = published_table_text(REGATTA_TESTDATA, set);
  if (!text) return std::nullopt;
  const auto runs = read_published(set, *text);
  EXPECT_TRUE(runs) << runs.error().message;
  return runs ? std::optional(*runs) : std::nullopt;
}

TEST_P(HeldOut, RowsArePredictedWithinTheBar) {
  const Bar& bar = GetParam();
  const auto runs = runs_of(bar.set);
  if (!runs) GTEST_SKIP() << "the published tables are not beside the project";
  const auto pairs = predict_runs(*runs);
  ASSERT_TRUE(pairs) << pairs.error().message;
  std::vector<PredictionPair> scored;
  for (std::size_t i = 0; i < runs->size(); ++i)
    if (runs->at(i).quantity == bar.quantity && !runs->at(i).is_calibration)
      scored.push_back(pairs->at(i));
  const PredictionScore result = score(scored);
  EXPECT_GT(result.rows, 2);
  EXPECT_LE(result.mape, bar.mape);
  EXPECT_LE(result.worst, bar.worst);
  EXPECT_GE(result.spearman.value_or(0), bar.spearman);
}

// MAPE as the project promises it, or, where it is better, what it reaches and half a point.
INSTANTIATE_TEST_SUITE_P(
    Sets, HeldOut,
    testing::Values(Bar{"vtrain_multi_a100_part", MeasuredQuantity::kStep, 0.088, 0.485, 0.95},
                    Bar{"bloom_176b_part", MeasuredQuantity::kStep, 0.03, 0.115, 0.8},
                    Bar{"bloom_176b_part", MeasuredQuantity::kMemory, 0.06, 0.3, 0.9},
                    Bar{"korthikanti_table5", MeasuredQuantity::kStep, 0.025, 0.06, 0.99},
                    Bar{"korthikanti_memory", MeasuredQuantity::kState, 0.01, 0.01, 0.9},
                    Bar{"korthikanti_memory", MeasuredQuantity::kActivations, 0.01, 0.02, 0.99},
                    Bar{"megatron_sc21_table1", MeasuredQuantity::kStep, 0.05, 0.1, 0.99},
                    Bar{"megatron_sc21_table2_zero3", MeasuredQuantity::kStep, 0.05, 0.15, 0.95},
                    Bar{"mosaic_fsdp", MeasuredQuantity::kStep, 0.07, 0.35, 0.95},
                    Bar{"nemo_2407_h100_fp8", MeasuredQuantity::kStep, 0.05, 0.12, 0.95},
                    Bar{"nemo_context_parallel", MeasuredQuantity::kStep, 0.047, 0.12, 0.95}),
    [](const testing::TestParamInfo<Bar>& bar) {
      return std::string(bar.param.set) + "_" + to_string(bar.param.quantity);
    });

// The fastest plan without context parallelism against the published one with it: measured, the
// second begins to win at 32 thousand tokens, on B200 and on H100.
TEST(HeldOutContext, ParallelismBeginsToWinWithinTwiceTheMeasuredLength) {
  const auto runs = runs_of("nemo_context_parallel");
  if (!runs) GTEST_SKIP() << "the published tables are not beside the project";
  std::map<std::string, int> first;
  for (const PublishedRun& run : *runs) {
    if (run.model.seq > 256 * 1024 || first.contains(run.server.device.name)) continue;
    const cost::SoftwareStack& stack = *cost::find_software_stack(run.stack);
    workload::StrategyRequest without;
    without.cp = 1;
    without.zero = 1;
    const plan::EstimateInput input{.model = run.model,
                                    .strategy = run.strategy,
                                    .global_batch = run.global_batch,
                                    .precision = run.precision,
                                    .server = run.server,
                                    .stack = stack};
    const plan::PlanningProblem problem{.model = run.model,
                                        .global_batch = run.global_batch,
                                        .precision = run.precision,
                                        .request = without,
                                        .server = run.server,
                                        .stack = stack,
                                        .machine = plan::machine_model(input),
                                        .devices = run.strategy.world_size()};
    const auto best = plan::search_plans(problem, plan::SearchMode::kPruned, 1);
    ASSERT_TRUE(best) << best.error().message;
    const auto with = plan::estimate_step(input);
    ASSERT_TRUE(with);
    const Seconds least = best->ranked.front().estimate.step.total();
    if (run.strategy.cp > 1 && with->step.total() < least * 0.99)
      first[run.server.device.name] = run.model.seq;
  }
  constexpr int kMeasured = 32 * 1024;
  ASSERT_EQ(first.size(), 2U);
  for (const auto& [device, seq] : first) {
    EXPECT_GE(seq, kMeasured / 2) << device;
    EXPECT_LE(seq, kMeasured * 2) << device;
  }
}

// Qwen3 30B on 16 H100 in releases of 2026, fitted: dropless experts wait for the host.
TEST(FittedExperts, AreWithinATenthWhereTheDeviceWaitsForTheHost) {
  const auto runs = runs_of("megatron_bridge_part");
  if (!runs) GTEST_SKIP() << "the published tables are not beside the project";
  const auto pairs = predict_runs(*runs);
  ASSERT_TRUE(pairs) << pairs.error().message;
  int found = 0;
  for (std::size_t i = 0; i < runs->size(); ++i) {
    const PublishedRun& run = runs->at(i);
    if (run.server.device.name != "h100-sxm" || run.model.preset != "qwen3-30b-a3b" ||
        run.strategy.micro_batch != 1)
      continue;
    EXPECT_NEAR(pairs->at(i).predicted / pairs->at(i).measured, 1, 0.1) << run.name;
    ++found;
  }
  EXPECT_EQ(found, 2);
}

// The rows of the other models, whose runs no scalar was fitted to.
TEST(HeldOutBridge, DenseModelsAndExpertsAreWithinTheirBarsAndIntervals) {
  const auto runs = runs_of("megatron_bridge_part");
  if (!runs) GTEST_SKIP() << "the published tables are not beside the project";
  const auto pairs = predict_runs(*runs);
  ASSERT_TRUE(pairs) << pairs.error().message;
  for (const bool of_experts : {false, true}) {
    std::vector<PredictionPair> scored;
    int held = 0;
    for (std::size_t i = 0; i < runs->size(); ++i) {
      const PublishedRun& run = runs->at(i);
      if (run.is_calibration || has_experts(run.model) != of_experts) continue;
      scored.push_back(pairs->at(i));
      const cost::PredictionErrorRange range =
          cost::prediction_error_range(*cost::find_software_stack(run.stack), run.model);
      const double ratio = pairs->at(i).measured / pairs->at(i).predicted;
      held += ratio >= range.low && ratio <= range.high ? 1 : 0;
    }
    const auto rows = static_cast<double>(scored.size());
    EXPECT_LE(score(scored).mape, of_experts ? 0.14 : 0.06);
    EXPECT_GE(held, 0.75 * rows) << (of_experts ? "experts" : "dense");
    EXPECT_LE(held, 0.9 * rows) << (of_experts ? "experts" : "dense");
  }
}

// An interval is what eight of ten steps are to be in.
TEST(HeldOutIntervals, HoldSevenToNineOfTenRows) {
  int held = 0;
  int rows = 0;
  for (const char* set : {"vtrain_multi_a100_part", "bloom_176b_part", "korthikanti_table5",
                          "megatron_sc21_table1", "megatron_sc21_table2_zero3", "mosaic_fsdp",
                          "nemo_2407_h100_fp8", "nemo_context_parallel"}) {
    const auto runs = runs_of(set);
    if (!runs) GTEST_SKIP() << "the published tables are not beside the project";
    const auto pairs = predict_runs(*runs);
    ASSERT_TRUE(pairs);
    for (std::size_t i = 0; i < runs->size(); ++i) {
      const PublishedRun& run = runs->at(i);
      if (run.quantity != MeasuredQuantity::kStep || run.is_calibration) continue;
      const cost::SoftwareStack& stack = *cost::find_software_stack(run.stack);
      const double ratio = pairs->at(i).measured / pairs->at(i).predicted;
      held += ratio >= stack.low && ratio <= stack.high ? 1 : 0;
      ++rows;
    }
  }
  EXPECT_GE(held, 0.7 * rows);
  EXPECT_LE(held, 0.9 * rows);
}

// The rows of the project's own set, whose errors shaped the model: none may be far off, and all
// may lie inside.
TEST(ShapedExperts, AreWithinTheBarAndTheInterval) {
  const auto sets = embedded_sets();
  const auto set = std::find_if(sets.begin(), sets.end(), [](const EmbeddedSet& one) {
    return std::string_view(one.name) == "experts";
  });
  ASSERT_NE(set, sets.end());
  const auto runs = read_published(std::string(set->name), std::string(set->text));
  ASSERT_TRUE(runs);
  const auto pairs = predict_runs(*runs);
  ASSERT_TRUE(pairs);
  int held = 0;
  for (std::size_t i = 0; i < runs->size(); ++i) {
    const cost::PredictionErrorRange spread = cost::prediction_error_range(
        *cost::find_software_stack(runs->at(i).stack), runs->at(i).model);
    const double ratio = pairs->at(i).measured / pairs->at(i).predicted;
    held += ratio >= spread.low && ratio <= spread.high ? 1 : 0;
  }
  const PredictionScore result = score(*pairs);
  EXPECT_LE(result.mape, 0.08);
  EXPECT_LE(result.worst, 0.2);
  EXPECT_GE(held, 0.75 * static_cast<double>(runs->size()));
}

// The kinds of runs that intervals count as compared are those of all sets.
TEST(WasCompared, HoldsForTheRunsOfEverySet) {
  std::vector<PublishedTable> tables;
  for (const EmbeddedSet& set : embedded_sets()) {
    auto table = read_published_table(std::string(set.name), std::string(set.text));
    ASSERT_TRUE(table) << table.error().message;
    tables.push_back(*std::move(table));
  }
  for (const char* set :
       {"vtrain_multi_a100_part", "bloom_176b_part", "mosaic_fsdp", "megatron_bridge_part"}) {
    if (const auto runs = runs_of(set)) tables.push_back({.runs = *runs, .left_out = {}});
  }
  for (const PublishedTable& table : tables) {
    for (const PublishedRun& run : table.runs) {
      if (run.quantity != MeasuredQuantity::kStep) continue;
      EXPECT_TRUE(cost::was_compared({.device = run.server.device.name,
                                      .precision = run.precision,
                                      .has_experts = has_experts(run.model)}))
          << run.name << " on " << run.server.device.name << " in " << to_string(run.precision);
    }
  }
}

// The head-count cliff of BLOOM: 128 heads of 108 instead of 64 of 216 at a hidden size of 13824.
TEST(HeldOutCliff, MisalignedHeadsOfBloomAreSlowByAsMuchAsMeasured) {
  const auto runs = runs_of("bloom_176b_part");
  if (!runs) GTEST_SKIP() << "the published tables are not beside the project";
  const auto pairs = predict_runs(*runs);
  ASSERT_TRUE(pairs);
  std::map<int, PredictionPair> by_heads;
  for (std::size_t i = 0; i < runs->size(); ++i) {
    const PublishedRun& run = runs->at(i);
    if (run.quantity == MeasuredQuantity::kStep && run.model.hidden == 13824 &&
        run.model.layers == 78)
      by_heads[run.model.heads] = pairs->at(i);
  }
  const double measured = by_heads.at(128).measured / by_heads.at(64).measured;
  const double predicted = by_heads.at(128).predicted / by_heads.at(64).predicted;
  EXPECT_NEAR(predicted / measured, 1, 0.08);
}

}  // namespace
}  // namespace regatta::replay
