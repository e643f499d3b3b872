#include "regatta/planning/plan/internal/search/heterogeneous_split.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/planning/plan/test_heterogeneous.h"

namespace regatta::plan {
namespace {

using workload::Recompute;
using workload::Strategy;

struct Problem {
  topo::Cluster cluster;
  workload::ModelShape model;
  Strategy strategy;
  int global_batch = 0;
};

HeterogeneousInput input_of(const Problem& problem) {
  return {.model = problem.model,
          .strategy = problem.strategy,
          .global_batch = problem.global_batch,
          .precision = workload::Precision::kFp16,
          .cluster = problem.cluster,
          .stack = *cost::find_software_stack("megatron-core")};
}

TEST(MicroBatchShares, EndAsSoonAsAnyShares) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::vector<MicroBatchTime>> slots(3);
    std::uniform_real_distribution<double> time(0.5, 3);
    for (auto& replica : slots)
      for (int s = 0; s < 3; ++s)
        replica.push_back({Seconds{time(random)}, Seconds{time(random)}});
    std::vector<ReplicaClass> classes = {{slots[0], {0}}, {slots[1], {1}}, {slots[2], {2}}};
    if (i % 2 == 0) {
      slots[2] = slots[0];
      classes = {{slots[0], {0, 2}}, {slots[1], {1}}};
    }
    const int count = 3 + i % 9;
    const auto end = [&](const std::vector<int>& shares) {
      double last = 0;
      for (std::size_t r = 0; r < 3; ++r)
        last = std::max(last, pipeline_time(slots[r], shares[r]).value);
      return last;
    };
    double least = std::numeric_limits<double>::infinity();
    for (int a = 1; a < count; ++a)
      for (int b = 1; a + b < count; ++b)
        least = std::min(least, end({a, b, count - a - b}));
    const std::vector<int> shares = micro_batch_shares(classes, count);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), count);
    EXPECT_NEAR(end(shares), least, 1e-9) << "case " << i;
  }
}

TEST(BestSplit, IsEvenOnEqualServers) {
  const Problem problem{.cluster = heterogeneous_cluster({{"dgx-a100-80g", 32}}),
                        .model = workload::find_model_preset("gpt3-175b")->model,
                        .strategy = {.tp = 8, .pp = 8, .dp = 4, .recompute = Recompute::kFull},
                        .global_batch = 1536};
  const auto job = heterogeneous_job(input_of(problem));
  ASSERT_TRUE(job) << job.error().message;
  const auto split = best_split(*job, true);
  ASSERT_TRUE(split);
  const Seconds step = estimate_heterogeneous(*job, *split).step.total();
  const Seconds even = estimate_heterogeneous(*job, even_split(input_of(problem))).step.total();
  EXPECT_LE(step, even);
  EXPECT_GT(step, even * 0.98);  // the output layer takes a block's place
  EXPECT_EQ(split->micro_batches, std::vector<int>(4, 384));
}

TEST(BestSplit, GivesFasterServersMore) {
  const Problem problem{.cluster = heterogeneous_cluster({{"dgx-a100-80g", 16}, {"dgx-h100", 16}}),
                        .model = workload::find_model_preset("gpt3-175b")->model,
                        .strategy = {.tp = 8, .pp = 8, .dp = 4, .recompute = Recompute::kFull},
                        .global_batch = 1536};
  const auto job = heterogeneous_job(input_of(problem));
  ASSERT_TRUE(job);
  const auto split = best_split(*job, true);
  ASSERT_TRUE(split);
  EXPECT_GT(split->layers[4], split->layers[3]);
  EXPECT_LT(estimate_heterogeneous(*job, *split).step.total(),
            estimate_heterogeneous(*job, even_split(input_of(problem))).step.total() * 0.85);
}

bool fits(const HeterogeneousEstimate& estimate) {
  return std::all_of(
      estimate.stages.begin(), estimate.stages.end(), [](const HeterogeneousStage& stage) {
        return stage.memory.total() <= kUsableMemory * static_cast<double>(stage.capacity.value);
      });
}

// The least time of all splits over four stages and one replica.
double least_of_all(const HeterogeneousJob& job) {
  const int layers = job.model.layers;
  double least = std::numeric_limits<double>::infinity();
  for (int a = 1; a < layers; ++a) {
    for (int b = 1; a + b < layers; ++b) {
      for (int c = 1; a + b + c < layers; ++c) {
        const HeterogeneousEstimate estimate = estimate_heterogeneous(
            job, {.layers = {a, b, c, layers - a - b - c}, .micro_batches = {job.micro_batches}});
        if (fits(estimate)) least = std::min(least, estimate.step.total().value);
      }
    }
  }
  return least;
}

// A model of 10 to 14 layers, its least step by trying every split.
TEST(BestSplit, FindsWhatTryingAllSplitsFinds) {
  const char* servers[] = {"dgx-v100", "dgx-a100-80g", "dgx-h100"};
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int equal = 0;
  int cases = 0;
  for (int i = 0; i < 60; ++i) {
    Problem problem{
        .cluster = heterogeneous_cluster({{servers[pick(0, 2)], 2}, {servers[pick(0, 2)], 2}}),
        .model = workload::find_model_preset("gpt3-175b")->model,
        .strategy = {.tp = 8, .pp = 4, .dp = 1, .recompute = Recompute::kFull},
        .global_batch = pick(4, 40)};
    problem.model.layers = pick(10, 14);
    const auto job = heterogeneous_job(input_of(problem));
    ASSERT_TRUE(job) << job.error().message;
    const double least = least_of_all(*job);
    const auto found = best_split(*job, true);
    ASSERT_EQ(found.has_value(), least < 1e9);
    if (!found) continue;
    ++cases;
    const double step = estimate_heterogeneous(*job, *found).step.total().value;
    EXPECT_GE(step, least * (1 - 1e-9));
    if (step <= least * (1 + 1e-9)) ++equal;
    EXPECT_LE(step, least * 1.005) << "case " << i;
  }
  EXPECT_GT(cases, 30);
  EXPECT_GE(equal, cases * 9 / 10);
}

}  // namespace
}  // namespace regatta::plan
