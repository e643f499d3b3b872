#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/planning/plan/stage_timeline.h"
#include "regatta/planning/plan/test_heterogeneous.h"
#include "regatta/planning/plan/test_plans.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;
using workload::PipelineSchedule;

// Servers of eight A100 under one leaf.
topo::Cluster a100_cluster(int servers) {
  topo::Cluster cluster = heterogeneous_cluster({{"dgx-a100-80g", servers}});
  cluster.fabric = {.tiers = 1, .servers_per_leaf = servers};
  return cluster;
}

workload::Job llama_job(const workload::StrategyRequest& request) {
  workload::Job job{.name = "llama"};
  job.model = workload::find_model_preset("llama2-7b")->model;
  job.global_batch = 64;
  job.strategy = request;
  return job;
}

TEST(PlanJobStep, HasMeansThatFillThePipelineWhereItHasOneStage) {
  const workload::Job job = llama_job({.tp = 8, .pp = 1, .dp = 2, .micro_batch = 1});
  const topo::Cluster cluster = a100_cluster(2);
  const auto step = plan_job_step(job, cluster, 1);
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(step->shape.tp, 8);
  EXPECT_EQ(step->shape.pp, 1);
  EXPECT_EQ(step->shape.dp, 2);
  EXPECT_EQ(step->shape.micro_batches, 32);
  EXPECT_THAT(step->strategy, HasSubstr("tp8"));
  const cost::SoftwareStack& stack = **choose_software_stack("", job, cluster);
  const auto problem = planning_problem(job, cluster, stack);
  ASSERT_TRUE(problem) << problem.error().message;
  const workload::Strategy strategy = fastest_plan(*problem)->strategy;
  const auto timeline = stage_timeline(input_of(*problem, strategy), problem->machine);
  ASSERT_TRUE(timeline) << timeline.error().message;
  const double micro_batch = step->shape.forward.value + step->shape.backward.value;
  EXPECT_NEAR(32 * micro_batch, timeline->pipeline_end.value, 1e-6 * timeline->pipeline_end.value);
  EXPECT_LT(step->shape.forward, step->shape.backward);
  EXPECT_GT(step->shape.optimizer.value, 0);
  // Those of an eighth of 6.7e9 parameters, each once.
  const double gradients = stack.traits.gradient_bytes * 6.74e9 / 8;
  EXPECT_NEAR(static_cast<double>(step->shape.gradients.value), gradients, 0.05 * gradients);
}

TEST(PlanJobStep, LeavesOutTheMessagesThatAStageWaitsFor) {
  const workload::Job job = llama_job({.tp = 8, .pp = 2, .dp = 1, .micro_batch = 1});
  topo::Cluster cluster = a100_cluster(2);
  const auto fast = plan_job_step(job, cluster, 1);
  ASSERT_TRUE(fast) << fast.error().message;
  topo::ServerType& server = cluster.server_types["dgx-a100-80g"];
  server.nic_rate = server.nic_rate / 1000;
  const auto slow = plan_job_step(job, cluster, 1);
  ASSERT_TRUE(slow) << slow.error().message;
  const Seconds forward = fast->shape.forward;
  const Seconds backward = fast->shape.backward;
  EXPECT_GT(forward.value, 0);
  // Stragglers stretch all work a little, by their share of the step.
  EXPECT_NEAR(slow->shape.forward.value, forward.value, 0.01 * forward.value);
  EXPECT_NEAR(slow->shape.backward.value, backward.value, 0.01 * backward.value);
  EXPECT_EQ(slow->shape.activations, fast->shape.activations);
  EXPECT_GT(slow->shape.activations.value, 0);
}

TEST(PlanJobStep, CountsRanksThatShareSequencesAsTensorParallel) {
  const auto step = plan_job_step(llama_job({.tp = 4, .pp = 1, .dp = 2, .cp = 2, .micro_batch = 1}),
                                  a100_cluster(2), 1);
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(step->shape.tp, 8);
  EXPECT_EQ(step->shape.dp, 2);
}

TEST(PlanJobStep, TakesTheFastestPlanOf1F1BWhereTheJobNamesNoStrategy) {
  const topo::Cluster cluster = a100_cluster(2);
  const auto step = plan_job_step(llama_job({}), cluster, 2);
  ASSERT_TRUE(step) << step.error().message;
  const workload::Job job = llama_job({.schedule = PipelineSchedule::k1F1B});
  const auto problem = planning_problem(job, cluster, **choose_software_stack("", job, cluster));
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(step->strategy, to_string(fastest_plan(*problem)->strategy));
}

TEST(PlanJobStep, RejectsOtherSchedulesAndClustersThatItDoesNotKnow) {
  const auto interleaved = plan_job_step(llama_job({.tp = 8,
                                                    .pp = 2,
                                                    .dp = 1,
                                                    .micro_batch = 1,
                                                    .virtual_stages = 2,
                                                    .schedule = PipelineSchedule::kInterleaved}),
                                         a100_cluster(2), 1);
  ASSERT_FALSE(interleaved);
  EXPECT_EQ(interleaved.error().code, Code::kUnsupported);
  EXPECT_THAT(interleaved.error().message, HasSubstr("job llama: its schedule is interleaved"));
  const auto without = plan_job_step(llama_job({}), example_cluster(), 1);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, Code::kUnsupported);
  EXPECT_THAT(without.error().message, HasSubstr("cluster lab has none"));
  topo::Cluster mixed = heterogeneous_cluster({{"dgx-a100-80g", 1}, {"dgx-h100", 1}});
  mixed.fabric = {.tiers = 1, .servers_per_leaf = 2};
  EXPECT_THAT(plan_job_step(llama_job({}), mixed, 1).error().message,
              HasSubstr("those of cluster test are of several types"));
}

}  // namespace
}  // namespace regatta::plan
