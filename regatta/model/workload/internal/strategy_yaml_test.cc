#include "regatta/model/workload/internal/strategy_yaml.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

StrategyRequest good_request(const std::string& text) {
  const auto request = parse_strategy(text, "--strategy");
  EXPECT_TRUE(request) << request.error().message;
  return request ? *request : StrategyRequest{};
}

TEST(ReadStrategy, ReadsEveryKey) {
  const StrategyRequest request = good_request(
      "{tp: 2, pp: 4, dp: 8, cp: 2, ep: 16, micro_batch: 3, schedule: interleaved, "
      "virtual_stages: 5, sequence_parallel: true, zero: 3, shard_ranks: 8, context: all-to-all, "
      "offload: activations, recompute: selective, compression: auto, overlap: false, "
      "stage_layers: [10, 5, 15, 20]}");
  EXPECT_EQ(requested(request), (Strategy{.tp = 2,
                                          .pp = 4,
                                          .dp = 8,
                                          .micro_batch = 3,
                                          .recompute = Recompute::kSelective,
                                          .overlap = false,
                                          .compression = GradientCompression::kAutomatic,
                                          .schedule = PipelineSchedule::kInterleaved,
                                          .virtual_stages = 5,
                                          .sequence_parallel = true,
                                          .cp = 2,
                                          .context = ContextParallelism::kAllToAll,
                                          .ep = 16,
                                          .zero = 3,
                                          .shard_ranks = 8,
                                          .offload = Offload::kActivations,
                                          .stage_layers = {10, 5, 15, 20}}));
}

TEST(ReadStrategy, LeavesToThePlannerWhatSaysAuto) {
  const StrategyRequest request = good_request(
      "{tp: auto, cp: auto, ep: auto, virtual_stages: auto, sequence_parallel: auto, zero: auto, "
      "shard_ranks: auto, context: auto, offload: auto, schedule: auto, recompute: auto, "
      "overlap: auto, micro_batch: auto, stage_layers: auto}");
  EXPECT_EQ(requested(request), Strategy{});
  EXPECT_EQ(request.sequence_parallel, std::nullopt);
  EXPECT_EQ(request.overlap, std::nullopt);
  EXPECT_EQ(request.recompute, std::nullopt);
}

TEST(ReadStrategy, TakesVirtualStagesForInterleaving) {
  EXPECT_EQ(good_request("{virtual_stages: 2}").schedule, PipelineSchedule::kInterleaved);
  EXPECT_EQ(good_request("{virtual_stages: 1}").schedule, std::nullopt);
}

TEST(ReadStrategy, TakesAsManyStagesAsHaveTheirLayersGiven) {
  EXPECT_EQ(good_request("{stage_layers: [3, 4, 3]}").pp, 3);
  EXPECT_EQ(good_request("{stage_layers: [3, 4, 3], pp: 2}").pp, 2);
  EXPECT_EQ(parse_strategy("{stage_layers: []}", "--strategy").error().message,
            "--strategy:1: stage_layers: empty; give one number a stage, or leave the key out");
}

}  // namespace
}  // namespace regatta::workload
