#include "regatta/planning/plan/internal/launch/launch_rules.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/planning/plan/internal/launch/test_launch_cases.h"
#include "regatta/planning/plan/internal/search/strategy_space.h"

namespace regatta::plan {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Owns what a problem refers to.
struct Planned {
  workload::Job job;
  topo::Cluster cluster;
  const cost::SoftwareStack* stack = nullptr;

  PlanningProblem problem() const { return *planning_problem(job, cluster, *stack); }
};

Planned planned(const std::string& model, int servers, int global_batch,
                const workload::StrategyRequest& request = {}) {
  Planned one;
  one.job = {.name = "a job",
             .model = preset(model),
             .data_text = {},
             .global_batch = global_batch,
             .precision = workload::Precision::kBf16,
             .strategy = request,
             .placement = {}};
  one.cluster = *topo::parse_cluster("name: c\nfabric: {tiers: [leaf]}\nservers: {count: " +
                                         std::to_string(servers) + ", type: dgx-h100}\n",
                                     "c.yaml");
  one.stack = *choose_software_stack("", one.job, one.cluster);
  return one;
}

Result<std::string> script_of(Launcher launcher, const PlanningProblem& problem,
                              const workload::Strategy& strategy) {
  return launch_arguments(launcher, {.model = problem.model,
                                     .strategy = strategy,
                                     .global_batch = problem.global_batch,
                                     .servers = problem.devices / 8,
                                     .devices_per_server = 8,
                                     .optimizer = {}});
}

// The best plan that a launcher can run, as a script.
Result<std::string> launched(Launcher launcher, PlanningProblem problem) {
  REGATTA_TRY_DO(check_launch_request(launcher, problem));
  problem.accepts = runnable_by(launcher, problem);
  REGATTA_TRY(found, search_plans(problem, SearchMode::kPruned, 1));
  return script_of(launcher, problem, found.ranked.front().strategy);
}

TEST(LaunchSearch, FindsAPlanForEveryFrameworkThatCanRunTheModel) {
  struct Asked {
    const char* model;
    int servers;
    int global_batch;
    std::vector<Launcher> launchers;
  };
  const std::vector<Launcher> all(kLaunchers.begin(), kLaunchers.end());
  const std::vector<Asked> asked = {
      {"llama3-70b", 16, 128, all},
      {"qwen2-72b", 16, 128, all},
      {"gpt3-175b", 64, 512, all},
      {"deepseek-v3", 64, 2048, {Launcher::kMegatron, Launcher::kMegatronBridge}},
      {"qwen3-235b-a22b", 32, 1024, {Launcher::kMegatron, Launcher::kMegatronBridge}}};
  for (const Asked& one : asked) {
    const Planned inputs = planned(one.model, one.servers, one.global_batch);
    for (const Launcher launcher : one.launchers) {
      SCOPED_TRACE(std::string(one.model) + " " + to_string(launcher));
      const auto script = launched(launcher, inputs.problem());
      EXPECT_TRUE(script) << script.error().message;
    }
  }
}

// The time of the fastest strategy with even stages that fits and for which there is a script.
Seconds fastest_launched(Launcher launcher, const PlanningProblem& problem) {
  const StrategySpaceInput space{.model = problem.model,
                                 .global_batch = problem.global_batch,
                                 .request = problem.request,
                                 .devices = problem.devices};
  Seconds fastest{std::numeric_limits<double>::infinity()};
  std::vector<workload::Strategy> strategies;
  for (const workload::Strategy& work : work_strategies(space))
    for (const workload::Strategy& staged : stage_counts(space, work))
      add_completions(space, staged, strategies);
  for (const workload::Strategy& strategy : strategies) {
    const Estimate estimate = exact_plan(problem, strategy)->estimate;
    if (memory_fit(estimate.memory, problem.server.device.memory) != MemoryFit::kFits) continue;
    if (estimate.step.total() < fastest && script_of(launcher, problem, strategy))
      fastest = estimate.step.total();
  }
  return fastest;
}

TEST(LaunchSearch, FindsTheBestOfThePlansThatTheFrameworkRuns) {
  const Planned inputs = planned("llama3-8b", 1, 16);
  for (const Launcher launcher : kLaunchers) {
    SCOPED_TRACE(to_string(launcher));
    PlanningProblem problem = inputs.problem();
    problem.accepts = runnable_by(launcher, problem);
    const auto bound = search_plans(problem, SearchMode::kPruned, 1);
    ASSERT_TRUE(bound) << bound.error().message;
    const Plan& best = bound->ranked.front();
    EXPECT_TRUE(script_of(launcher, problem, best.strategy));
    // Plans of the same time to a thousandth may stand in another order.
    EXPECT_LE(best.estimate.step.total(), fastest_launched(launcher, problem) * 1.001);
  }
}

TEST(LaunchRules, RefuseAScriptAndBindTheSearchAlike) {
  std::mt19937 random(5);
  for (int tried = 0; tried < 2000; ++tried) {
    const LaunchCase one = random_launch_case(
        random, tried % 2 == 0 ? random_launch_model(random) : random_special_model(random));
    if (!workload::micro_batches(one.model, one.strategy, one.global_batch)) continue;
    Planned inputs = planned("llama3-8b", 1, one.global_batch);
    inputs.job.model = one.model;
    PlanningProblem problem = inputs.problem();
    problem.precision = one.precision;
    for (const Launcher launcher : kLaunchers) {
      SCOPED_TRACE(to_string(launcher) + " " + to_string(one.strategy));
      EXPECT_EQ(runnable_by(launcher, problem)(one.strategy), one.script(launcher).has_value());
    }
  }
}

TEST(LaunchRules, RefuseARequestByTheKeysThatItGives) {
  const auto refused = [](Launcher launcher, const workload::StrategyRequest& request) {
    const Planned inputs = planned("llama3-70b", 4, 64, request);
    const Status status = check_launch_request(launcher, inputs.problem());
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(refused(Launcher::kDeepspeed, {.pp = 4}),
            "deepspeed: pp 4 is the program's, no configuration has it; set pp 1, or launch with "
            "megatron");
  EXPECT_EQ(refused(Launcher::kDeepspeed, {.tp = 8, .zero = 3}),
            "deepspeed: tp 8 goes with zero 0, 1 or 2; set zero 2, or tp 1");
  EXPECT_EQ(refused(Launcher::kDeepspeed, {.tp = 8}), "");
  EXPECT_THAT(refused(Launcher::kMegatron, {.zero = 3}), HasSubstr("zero 3 is FSDP"));
  EXPECT_THAT(refused(Launcher::kTorchtitan, {.zero = 1}), HasSubstr("set zero 2 or 3"));
  EXPECT_EQ(refused(Launcher::kMegatronBridge, {.tp = 8, .pp = 4}), "");
}

TEST(LaunchRules, SayWhichKeysTheyBind) {
  EXPECT_THAT(launch_bounds(Launcher::kMegatron, {}), Contains("zero 0 or 1"));
  EXPECT_THAT(launch_bounds(Launcher::kDeepspeed, {}), Contains("pp 1"));
  EXPECT_THAT(launch_bounds(Launcher::kDeepspeed, {.pp = 1}), Each(Not(StartsWith("pp "))));
}

}  // namespace
}  // namespace regatta::plan
