#include "regatta/planning/plan/internal/search/stage_split.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"

namespace regatta::plan {
namespace {

using testing::ElementsAre;
using workload::PipelineSchedule;
using workload::Strategy;

// Blocks and ends of given seconds, so that slots can be counted by hand.
MicroBatchWork work_of(double dense, double expert, double output) {
  MicroBatchWork work;
  work.blocks[0].time.matmul = {dense};
  work.blocks[1].time.matmul = {expert};
  work.blocks[1].time.ep_comm = {expert / 8};
  work.embedding_and_head.matmul = {output};
  return work;
}

struct Case {
  workload::ModelShape model = workload::find_model_preset("llama2-7b")->model;
  Strategy strategy;
  topo::ServerType server = *topo::find_server_preset("dgx-a100-80g");
  const cost::SoftwareStack& stack = *cost::find_software_stack("megatron-core");

  EstimateInput input() const {
    return {
        .model = model, .strategy = strategy, .global_batch = 64, .server = server, .stack = stack};
  }
  std::vector<int> balanced(const MicroBatchWork& work) const {
    return balanced_layers(input(), work);
  }
  double slowest(const std::vector<int>& layers, const MicroBatchWork& work) const {
    Case given = *this;
    given.strategy.stage_layers = layers;
    const StageSplit split = stage_split(given.input(), work, 1);
    double most = 0;
    for (std::size_t stage = 0; stage < layers.size(); ++stage) {
      const workload::BlockCounts& blocks = split.blocks[stage];
      const double output = stage + 1 == layers.size() ? work.embedding_and_head.total().value : 0;
      most = std::max(most, work.blocks[0].time.total().value * blocks[0] +
                                work.blocks[1].time.total().value * blocks[1] + output);
    }
    return most;
  }
  std::vector<int> even() const {
    std::vector<int> layers;
    for (int stage = 0; stage < strategy.pp; ++stage)
      layers.push_back(workload::stage_layers(model, strategy, stage).count);
    return layers;
  }
};

TEST(BalancedLayers, GiveTheLastStageRoomForTheOutputLayer) {
  Case one;
  one.model.layers = 32;
  one.strategy.pp = 4;
  EXPECT_THAT(one.balanced(work_of(1, 0, 2)), ElementsAre(8, 8, 9, 7));
  EXPECT_THAT(one.balanced(work_of(1, 0, 5)), ElementsAre(9, 9, 9, 5));
  EXPECT_THAT(one.balanced(work_of(1, 0, 0)), ElementsAre());
  one.strategy.schedule = PipelineSchedule::kInterleaved;
  one.strategy.virtual_stages = 2;
  EXPECT_THAT(one.balanced(work_of(1, 0, 4)), ElementsAre(8, 8, 10, 6));
  // A stage more on another is no faster than the output layer on the last.
  EXPECT_THAT(one.balanced(work_of(1, 0, 2)), ElementsAre());
  one.strategy = {.pp = 4, .schedule = PipelineSchedule::kZbV};
  EXPECT_THAT(one.balanced(work_of(1, 0, 5)), ElementsAre());
  one.strategy = {.pp = 1};
  EXPECT_THAT(one.balanced(work_of(1, 0, 5)), ElementsAre());
}

TEST(BalancedLayers, CountBlocksWithoutExpertsAsTheyAre) {
  Case one;
  one.model.layers = 12;
  one.model.experts = {.count = 8, .top_k = 2, .ffn_hidden = 64, .dense_layers = 2};
  one.strategy.pp = 3;
  // 2 x 1 + 3 x 2, 4 x 2, 3 x 2 + 2
  EXPECT_THAT(one.balanced(work_of(1, 16.0 / 9, 2)), ElementsAre(5, 4, 3));
}

// Every split of the layers into stages.
void for_each_split(std::vector<int>& layers, std::size_t stage, int left,
                    const std::function<void()>& visit) {
  const int behind = static_cast<int>(layers.size() - stage) - 1;
  if (behind == 0) {
    layers[stage] = left;
    visit();
    return;
  }
  for (layers[stage] = 1; left - layers[stage] >= behind; ++layers[stage])
    for_each_split(layers, stage + 1, left - layers[stage], visit);
}

TEST(BalancedLayers, AreAsFastAsTheBestOfAllSplits) {
  std::mt19937 random(5);
  const auto number = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int balanced = 0;
  for (int i = 0; i < 2000; ++i) {
    Case one;
    one.strategy.pp = number(2, 5);
    one.model.layers = number(one.strategy.pp, 14);
    const bool has_experts = number(0, 2) == 0;
    if (has_experts) {
      one.model.experts = {.count = 8, .top_k = 2, .ffn_hidden = 64};
      one.model.experts.dense_layers = number(0, one.model.layers / one.strategy.pp);
    }
    const MicroBatchWork work = work_of(number(1, 20), number(20, 40), number(0, 60));
    std::vector<int> layers(static_cast<std::size_t>(one.strategy.pp));
    double best = std::numeric_limits<double>::infinity();
    for_each_split(layers, 0, one.model.layers,
                   [&] { best = std::min(best, one.slowest(layers, work)); });
    EXPECT_LE(mean_slot(one.input(), work).value, best);
    EXPECT_NEAR(balanced_slot(one.input(), work)->value, best, 1e-8 * best);
    const std::vector<int> found = one.balanced(work);
    SCOPED_TRACE("case " + std::to_string(i));
    if (found.empty()) {
      EXPECT_NEAR(one.slowest(one.even(), work), best, 1e-9 * best);
      continue;
    }
    ++balanced;
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0), one.model.layers);
    EXPECT_GE(found.front(), one.model.layers / one.strategy.pp);
    EXPECT_NEAR(one.slowest(found, work), best, 1e-9 * best);
    EXPECT_LT(best, one.slowest(one.even(), work));
  }
  EXPECT_GT(balanced, 200);
}

TEST(StageSplit, NamesEveryStageThatCanNeedTheMostMemory) {
  std::mt19937 random(6);
  const auto number = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto kinds = static_cast<int>(workload::kPipelineSchedules.size());
  for (int i = 0; i < 1000; ++i) {
    Case one;
    if (number(0, 1) == 0) one.model = workload::find_model_preset("deepseek-v2-lite")->model;
    one.strategy = {.tp = 1, .pp = 2 * number(1, 4), .dp = 2};
    one.strategy.schedule = at(workload::kPipelineSchedules, number(0, kinds - 1));
    if (one.strategy.schedule == PipelineSchedule::kInterleaved) one.strategy.virtual_stages = 2;
    one.strategy.zero = number(0, 3);
    one.model.layers = 0;
    for (int stage = 0; stage < one.strategy.pp; ++stage) {
      auto& layers = one.strategy.stage_layers;
      const bool is_mirror =
          one.strategy.schedule == PipelineSchedule::kDualPipe && 2 * stage >= one.strategy.pp;
      layers.push_back(is_mirror ? at(layers, one.strategy.pp - 1 - stage) : 2 * number(1, 5));
      one.model.layers += layers.back();
    }
    const EstimateInput input = one.input();
    const auto count = workload::micro_batches(one.model, one.strategy, input.global_batch);
    ASSERT_TRUE(count) << count.error().message;
    const MachineModel machine = machine_model(input);
    const MicroBatchWork work = micro_batch_work(input, machine);
    StageSplit split = stage_split(input, work, *count);
    const double known = assemble_estimate(input, machine, work, *count, &split).memory.total();
    split.fullest.resize(static_cast<std::size_t>(one.strategy.pp));
    std::iota(split.fullest.begin(), split.fullest.end(), 0);
    EXPECT_EQ(known, assemble_estimate(input, machine, work, *count, &split).memory.total())
        << to_string(one.strategy);
  }
}

}  // namespace
}  // namespace regatta::plan
