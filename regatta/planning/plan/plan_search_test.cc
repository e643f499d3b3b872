#include "regatta/planning/plan/plan_search.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/internal/search/plan_families.h"
#include "regatta/planning/plan/internal/search/strategy_space.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;
using workload::Precision;
using workload::StrategyRequest;

// Owns what a PlanningProblem refers to.
struct Case {
  workload::ModelShape model;
  int global_batch = 64;
  Precision precision = Precision::kBf16;
  StrategyRequest request;
  topo::ServerType server = *topo::find_server_preset("dgx-a100-80g");
  const cost::SoftwareStack* stack = cost::find_software_stack("megatron-core");
  int devices = 64;
  bool every_form = false;

  PlanningProblem problem() const {
    const workload::Strategy none;
    return {.model = model,
            .global_batch = global_batch,
            .precision = precision,
            .request = request,
            .server = server,
            .stack = *stack,
            .machine = machine_model({.model = model,
                                      .strategy = none,
                                      .precision = precision,
                                      .server = server,
                                      .stack = *stack}),
            .devices = devices,
            .every_form = every_form};
  }
};

Case case_of(const char* preset) {
  Case one;
  one.model = workload::find_model_preset(preset)->model;
  return one;
}

TEST(SearchPlans, PrunedFindsWhatExhaustiveFindsForRandomModelsAndClusters) {
  std::mt19937 random(7);
  const auto pick = [&](const auto& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
  };
  const std::vector<const char*> models = {"gpt3-6.7b",    "gpt3-13b", "llama2-7b",    "llama3-8b",
                                           "mixtral-8x7b", "gpt2-xl",  "qwen3-30b-a3b"};
  const std::vector<const char*> servers = {"dgx-a100-80g", "dgx-h100", "h20-8", "l20-8"};
  int found = 0;
  int balanced = 0;
  int given = 0;
  int folded = 0;
  for (int i = 0; i < 140; ++i) {
    Case one = case_of(pick(models));
    one.model.layers = pick(std::vector<int>{4, 6, 8, 12, 20});
    one.model.vocab = pick(std::vector<int>{one.model.vocab, 262144, 1048576});
    one.model.experts.dense_layers =
        has_experts(one.model) ? std::min(pick(std::vector<int>{0, 1, 5}), one.model.layers) : 0;
    // At times the last of four stages holds fewer.
    const int fourth = one.model.layers / 4;
    const int least = std::max(1, fourth - 1);
    if (pick(std::vector<int>{0, 1, 2, 3, 4, 5}) == 0)
      one.request.stage_layers = {{fourth, fourth, one.model.layers - 2 * fourth - least, least}};
    // Or the inner two do, the same from both ends: dualpipe takes no other.
    const int inner = one.model.layers / 2 - fourth - 1;
    if (one.model.layers >= 8 && pick(std::vector<int>{0, 1, 2, 3, 4, 5}) == 0)
      one.request.stage_layers = {{fourth + 1, inner, inner, fourth + 1}};
    one.global_batch = pick(std::vector<int>{8, 12, 16, 32, 64});
    one.server = *topo::find_server_preset(pick(servers));
    one.devices = pick(std::vector<int>{8, 16, 24, 32, 64});
    one.stack = cost::find_software_stack(pick(std::vector<const char*>{"megatron-core", "fsdp"}));
    one.every_form = i % 2 == 0;
    const auto all = search_plans(one.problem(), SearchMode::kExhaustive, 5, 1);
    const auto pruned = search_plans(one.problem(), SearchMode::kPruned, 5, 2);
    ASSERT_EQ(all.has_value(), pruned.has_value()) << i;
    if (!all) {
      EXPECT_EQ(all.error().message, pruned.error().message);
      continue;
    }
    ++found;
    for (const Plan& plan : all->ranked) {
      (one.request.stage_layers ? given : balanced) += plan.strategy.stage_layers.empty() ? 0 : 1;
      folded += is_folded(plan.strategy) ? 1 : 0;
    }
    ASSERT_EQ(all->ranked.size(), pruned->ranked.size()) << i;
    for (std::size_t k = 0; k < all->ranked.size(); ++k) {
      EXPECT_EQ(all->ranked[k].strategy, pruned->ranked[k].strategy)
          << i << ": " << to_string(all->ranked[k].strategy);
      EXPECT_EQ(all->ranked[k].estimate.step.total(), pruned->ranked[k].estimate.step.total());
    }
    EXPECT_LE(pruned->evaluated, all->evaluated);
  }
  EXPECT_GT(found, 70);
  EXPECT_GT(balanced, 35);
  EXPECT_GT(given, 14);
  EXPECT_GT(folded, 14);
}

TEST(SearchPlans, BalancesStagesAroundTheOutputLayer) {
  Case one = case_of("llama3-8b");
  one.request.tp = 2;
  one.request.pp = 4;
  one.request.schedule = workload::PipelineSchedule::k1F1B;
  const PlanningProblem problem = one.problem();
  const auto result = search_plans(problem, SearchMode::kPruned, 1);
  ASSERT_TRUE(result) << result.error().message;
  workload::Strategy best = result->ranked.front().strategy;
  ASSERT_EQ(best.stage_layers.size(), 4U) << to_string(best);
  EXPECT_LT(best.stage_layers.back(), 8);
  EXPECT_GT(best.stage_layers[2], 8);
  best.stage_layers.clear();
  EXPECT_GT(exact_plan(problem, best)->estimate.step.total(),
            result->ranked.front().estimate.step.total());
}

TEST(SearchPlans, KeepsTheLayersThatStagesAreGiven) {
  Case one = case_of("llama3-8b");
  one.request.stage_layers = {{12, 8, 8, 4}};
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 20);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(result->ranked.size(), 3U);
  bool has_parts = false;
  for (const Plan& plan : result->ranked) {
    EXPECT_EQ(plan.strategy.stage_layers, *one.request.stage_layers);
    EXPECT_EQ(plan.strategy.pp, 4);
    has_parts = has_parts || plan.strategy.virtual_stages > 1;
  }
  EXPECT_TRUE(has_parts);
  one.request.pp = 2;
  one.request.virtual_stages = 2;
  const auto parts = search_plans(one.problem(), SearchMode::kPruned, 3);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->ranked.front().strategy.stage_layers, *one.request.stage_layers);
  EXPECT_EQ(parts->ranked.front().strategy.pp, 2);
  one.request.pp.reset();
  one.request.virtual_stages.reset();
  one.request.stage_layers = {{12, 8, 8}};
  EXPECT_THAT(search_plans(one.problem(), SearchMode::kPruned, 1).error().message,
              HasSubstr("stage_layers: they sum to 28, the model has 32 layers"));
}

TEST(SearchPlans, FrontierHoldsWhatNoOtherPlanBeatsInTimeAndMemory) {
  Case one = case_of("llama2-7b");
  one.devices = 16;
  one.model.layers = 8;
  const PlanningProblem problem = one.problem();
  const StrategySpaceInput space{.model = one.model,
                                 .global_batch = one.global_batch,
                                 .request = one.request,
                                 .devices = one.devices};
  std::vector<workload::Strategy> strategies;
  for (const workload::Strategy& work : work_strategies(space))
    for (const workload::Strategy& staged : stage_counts(space, work))
      add_completions(space, staged, strategies);
  for (const int threads : {1, 3}) {
    const auto all = search_plans(problem, SearchMode::kExhaustive, 1, threads);
    ASSERT_TRUE(all);
    const auto& frontier = all->frontier;
    ASSERT_GT(frontier.size(), 2U);
    for (std::size_t i = 1; i < frontier.size(); ++i) {
      EXPECT_GE(frontier[i].estimate.step.total(), frontier[i - 1].estimate.step.total());
      EXPECT_LT(frontier[i].estimate.memory.total(), frontier[i - 1].estimate.memory.total());
    }
    for (const workload::Strategy& strategy : strategies) {
      const auto exact = exact_plan(problem, strategy);
      ASSERT_TRUE(exact);
      const Estimate& estimate = exact->estimate;
      if (memory_fit(problem, *exact) != MemoryFit::kFits) continue;
      EXPECT_TRUE(std::any_of(frontier.begin(), frontier.end(), [&](const Plan& plan) {
        return plan.estimate.step.total() <= estimate.step.total() &&
               plan.estimate.memory.total() <= estimate.memory.total();
      })) << to_string(strategy);
    }
  }
}

TEST(SearchPlans, RanksOnePlanOfEachFamily) {
  const Case one = case_of("llama3-8b");
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 10);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->ranked.size(), 10U);
  std::vector<PlanFamily> families;
  for (const Plan& plan : result->ranked)
    families.push_back(family_of(plan.strategy));
  std::sort(families.begin(), families.end());
  EXPECT_EQ(std::adjacent_find(families.begin(), families.end()), families.end());
}

// With long sequences context parallelism takes exactly the time of as many replicas.
TEST(SearchPlans, TakesThePlanWithTheFewestParallelFormsWhereTimesAreTheSame) {
  for (const int devices : {8, 32}) {
    Case one = case_of("llama3-8b");
    one.model.layers = 12;
    one.model.seq = 8192;
    one.devices = devices;
    one.server = *topo::find_server_preset("dgx-h100");
    const PlanningProblem problem = one.problem();
    const auto result = search_plans(problem, SearchMode::kPruned, 20);
    ASSERT_TRUE(result);
    const Plan& best = result->ranked.front();
    EXPECT_EQ(best.strategy.dp, devices) << to_string(best.strategy);
    EXPECT_THAT(same_plans(problem, best),
                testing::Contains(testing::Field(&workload::Strategy::cp, 4)));
    for (const Plan& plan : result->ranked) {
      if (plan.strategy.cp == 1 || plan.strategy.tp * plan.strategy.pp > 1) continue;
      EXPECT_GT(plan.estimate.step.total() / best.estimate.step.total(), 1 + kSameTime);
    }
  }
}

TEST(SamePlans, DifferInWhatDoesNotMatterAndRespectWhatIsGiven) {
  Case one = case_of("llama2-7b");
  one.request = {.tp = 8, .pp = 1, .dp = 8, .micro_batch = 8};
  const PlanningProblem problem = one.problem();
  const auto result = search_plans(problem, SearchMode::kPruned, 1);
  ASSERT_TRUE(result);
  const Plan& plan = result->ranked.front();
  const auto same = same_plans(problem, plan);
  for (workload::Strategy strategy : same) {
    EXPECT_NEAR(exact_plan(problem, strategy)->estimate.step.total() / plan.estimate.step.total(),
                1, 1e-3);
    EXPECT_NE(strategy, plan.strategy);
    strategy.zero = plan.strategy.zero;
    strategy.overlap = plan.strategy.overlap;
    EXPECT_EQ(strategy, plan.strategy);
  }
  // One micro-batch: its gradients are scattered once, whether they are kept or not.
  EXPECT_THAT(same, testing::Contains(testing::Field(&workload::Strategy::zero, 2)));
  one.request.zero = plan.strategy.zero;
  for (const workload::Strategy& strategy : same_plans(one.problem(), plan))
    EXPECT_EQ(strategy.zero, plan.strategy.zero);
}

TEST(SearchPlans, RespectsWhatTheUserFixes) {
  Case one = case_of("llama2-7b");
  one.request.tp = 4;
  one.request.zero = 1;
  one.request.recompute = workload::Recompute::kFull;
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 20);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(result->ranked.size(), 5U);
  for (const Plan& plan : result->ranked) {
    EXPECT_EQ(plan.strategy.tp, 4);
    EXPECT_EQ(plan.strategy.zero, 1);
    EXPECT_EQ(plan.strategy.recompute, workload::Recompute::kFull);
    EXPECT_EQ(plan.strategy.world_size(), 64);
    EXPECT_EQ(memory_fit(plan.estimate.memory, one.server.device.memory), MemoryFit::kFits);
  }
}

TEST(SearchPlans, RankedPlansAreThoseOfTheirOwnEstimates) {
  const Case one = case_of("llama3-8b");
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 10);
  ASSERT_TRUE(result);
  Seconds before;
  for (const Plan& plan : result->ranked) {
    const auto alone = estimate_step({.model = one.model,
                                      .strategy = plan.strategy,
                                      .global_batch = one.global_batch,
                                      .precision = one.precision,
                                      .server = one.server,
                                      .stack = *one.stack});
    ASSERT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(alone->step.total(), plan.estimate.step.total());
    EXPECT_EQ(alone->memory.total(), plan.estimate.memory.total());
    EXPECT_GE(alone->step.total().value, before.value * (1 - 2 * kSameTime));
    before = alone->step.total();
  }
}

// The job fits on the advised number of devices, and not without the advice.
TEST(SearchPlans, AdvisesANumberOfDevicesThatFits) {
  Case one = case_of("gpt3-175b");
  one.every_form = true;
  one.request.offload = workload::Offload::kNone;
  one.request.recompute = workload::Recompute::kNone;
  one.devices = 16;
  const auto freed = search_plans(one.problem(), SearchMode::kPruned, 1);
  ASSERT_FALSE(freed);
  EXPECT_THAT(freed.error().message, HasSubstr("leave zero, recompute and offload open"));
  one.request = {};
  one.model.layers = 960;
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 1);
  ASSERT_FALSE(result);
  const std::string& message = result.error().message;
  const auto at = message.find("; ");
  ASSERT_NE(at, std::string::npos);
  one.devices = std::atoi(message.c_str() + at + 2);
  EXPECT_GT(one.devices, 16) << message;
  EXPECT_TRUE(search_plans(one.problem(), SearchMode::kPruned, 1)) << message;
  one.server.device.memory = Bytes{1 << 20};
  EXPECT_THAT(search_plans(one.problem(), SearchMode::kPruned, 1).error().message,
              HasSubstr("more of these devices do not help"));
}

TEST(SearchPlans, SaysWhatWouldMakeAModelFit) {
  Case one = case_of("gpt3-175b");
  one.devices = 8;
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kInvalidInput);
  EXPECT_THAT(result.error().message, HasSubstr("no strategy fits 80 GiB of a100-sxm4-80g"));
  EXPECT_THAT(result.error().message, HasSubstr("; 48 of these devices fit it"));
  one.devices = 7 * 8;
  one.request.tp = 5;
  EXPECT_THAT(search_plans(one.problem(), SearchMode::kPruned, 1).error().message,
              HasSubstr("tp 5 does not divide heads 96"));
  one.request.tp = 3;
  EXPECT_THAT(search_plans(one.problem(), SearchMode::kPruned, 1).error().message,
              HasSubstr("tp 3 x cp 1 x pp 1 x dp 1 cannot fill 56 devices"));
  one.request = {};
  one.devices = 101 * 8;
  one.model.layers = 5;
  one.global_batch = 7;
  EXPECT_THAT(search_plans(one.problem(), SearchMode::kPruned, 1).error().message,
              HasSubstr("no strategy of 808 devices divides the job"));
}

// Calculon's space of the same problem has 7,126,368 points.
TEST(StrategySpace, OfGpt3On4096DevicesIsNoSmallerThanThatOfOthers) {
  const Case one = case_of("gpt3-175b");
  const StrategySpaceInput input{.model = one.model,
                                 .global_batch = 4096,
                                 .request = one.request,
                                 .devices = 4096,
                                 .every_form = true};
  std::size_t points = 0;
  std::vector<workload::Strategy> completions;
  for (const workload::Strategy& work : work_strategies(input)) {
    for (const workload::Strategy& staged : stage_counts(input, work)) {
      completions.clear();
      add_completions(input, staged, completions);
      points += completions.size();
    }
  }
  EXPECT_GE(points, 7'126'368U);
}

TEST(StrategySpace, HoldsEveryStrategyOnce) {
  Case one = case_of("mixtral-8x7b");
  one.model.layers = 4;
  const StrategySpaceInput input{.model = one.model,
                                 .global_batch = 8,
                                 .request = one.request,
                                 .devices = 16,
                                 .every_form = true};
  std::vector<workload::Strategy> all;
  for (const workload::Strategy& work : work_strategies(input))
    for (const workload::Strategy& staged : stage_counts(input, work))
      add_completions(input, staged, all);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_GT(all.size(), 1000U);
  for (const workload::Strategy& strategy : all) {
    EXPECT_EQ(strategy.world_size(), 16);
    EXPECT_TRUE(workload::micro_batches(one.model, strategy, 8));
  }
}

TEST(PlanMetrics, SumsUpAndKnowsWhatMoreOfAnythingBrings) {
  const Case one = case_of("llama3-8b");
  const PlanningProblem problem = one.problem();
  const auto result = search_plans(problem, SearchMode::kPruned, 1);
  ASSERT_TRUE(result);
  const Plan& plan = result->ranked.front();
  const PlanMetrics is = plan_metrics(problem, plan);
  EXPECT_GT(is.mfu, 0.2);
  EXPECT_LT(is.mfu, 0.9);
  EXPECT_NEAR(is.tokens_per_s * plan.estimate.step.total().value, 64.0 * one.model.seq, 1e-6);
  EXPECT_LT(is.interval.low, plan.estimate.step.total());
  EXPECT_GT(is.interval.high, plan.estimate.step.total());
  ASSERT_EQ(is.sensitivities.size(), 4U);
  for (const Sensitivity& change : is.sensitivities) {
    EXPECT_LE(change.step_change, 0) << change.what;
    EXPECT_GT(change.step_change, -0.1) << change.what;
  }
  double sum = 0;
  for (const NamedStepPart& part : named_step_parts(plan.estimate.step))
    sum += part.time.value;
  EXPECT_NEAR(sum / plan.estimate.step.total().value, 1, 1e-9);
}

// The step on a machine with ten per cent more of one quantity, estimated directly.
TEST(PlanMetrics, SensitivitiesAreFiniteDifferences) {
  Case one = case_of("llama3-8b");
  const PlanningProblem problem = one.problem();
  const auto result = search_plans(problem, SearchMode::kPruned, 1);
  ASSERT_TRUE(result);
  const Plan& plan = result->ranked.front();
  PlanningProblem wider = problem;
  wider.machine.network.link = wider.machine.network.link * 1.1;
  const auto step = exact_plan(wider, plan.strategy);
  ASSERT_TRUE(step);
  for (const Sensitivity& change : plan_metrics(problem, plan).sensitivities) {
    if (change.what != "link_bandwidth") continue;
    EXPECT_NEAR(change.step_change, step->estimate.step.total() / plan.estimate.step.total() - 1,
                1e-12);
  }
}

// As Megatron-Core runs it: tp 2, pp 8, ep 32 on 256 devices.
TEST(SearchPlans, FoldsExpertsOverTensorRanksWhereEpNeedsThem) {
  Case one = case_of("qwen3-235b-a22b");
  one.server = *topo::find_server_preset("dgx-h100");
  one.devices = 256;
  one.global_batch = 2048;
  one.request.tp = 2;
  one.request.pp = 8;
  one.request.ep = 32;
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 10);
  ASSERT_TRUE(result) << result.error().message;
  for (const Plan& plan : result->ranked) {
    const workload::ExpertFold fold = expert_fold(plan.strategy);
    EXPECT_EQ(fold.etp * fold.ep * fold.edp * plan.strategy.pp, 256);
    EXPECT_TRUE(plan.strategy.cp > 1 || is_folded(plan.strategy)) << to_string(plan.strategy);
    EXPECT_EQ(plan.strategy.ep, 32);
  }
  one.request.etp = 2;
  EXPECT_THAT(search_plans(one.problem(), SearchMode::kPruned, 1).error().message,
              HasSubstr("ep 32 x etp 2 does not divide tp x cp x dp"));
}

TEST(ExactPlan, NamesARankCountThatIsNotTheClusters) {
  const Case one = case_of("llama3-8b");
  EXPECT_THAT(exact_plan(one.problem(), {.tp = 8, .dp = 4}).error().message,
              HasSubstr("makes 32 ranks, the cluster has 64 devices"));
}

TEST(ExactStrategy, TakesTheRestOfTheDevicesAsReplicasAndDefaultsForAllElse) {
  StrategyRequest request;
  request.tp = 8;
  request.pp = 2;
  request.virtual_stages = 4;
  workload::Strategy strategy = exact_strategy(request, 64);
  EXPECT_EQ(strategy.dp, 4);
  EXPECT_EQ(strategy.micro_batch, 1);
  EXPECT_EQ(strategy.recompute, workload::Recompute::kNone);
  EXPECT_EQ(strategy.schedule, workload::PipelineSchedule::kInterleaved);
  request.dp = 3;
  strategy = exact_strategy(request, 64);
  EXPECT_EQ(strategy.world_size(), 48);
}

// All degrees and the micro-batch are given, and 1F1B without recomputation does not fit.
TEST(SearchPlans, SearchesWhatIsOpenWhereAllDegreesAreGiven) {
  Case one = case_of("llama3-70b");
  one.request = {.tp = 8, .pp = 4, .dp = 2, .cp = 1, .micro_batch = 2};
  const PlanningProblem problem = one.problem();
  const auto as_it_stands = exact_plan(problem, exact_strategy(one.request, one.devices));
  ASSERT_TRUE(as_it_stands);
  EXPECT_NE(memory_fit(problem, *as_it_stands), MemoryFit::kFits);
  const auto result = search_plans(problem, SearchMode::kPruned, 5);
  ASSERT_TRUE(result) << result.error().message;
  for (const Plan& plan : result->ranked) {
    EXPECT_EQ(workload::merged(one.request, {}).tp, plan.strategy.tp);
    EXPECT_EQ(plan.strategy.pp, 4);
    EXPECT_EQ(plan.strategy.dp, 2);
    EXPECT_EQ(plan.strategy.micro_batch, 2);
    EXPECT_EQ(memory_fit(plan.estimate.memory, one.server.device.memory), MemoryFit::kFits);
  }
}

TEST(SearchPlans, NamesTheNearestPlanAndAChangeThatFits) {
  Case one = case_of("llama3-70b");
  one.request = {.tp = 8,
                 .pp = 1,
                 .dp = 8,
                 .micro_batch = 1,
                 .zero = 0,
                 .recompute = workload::Recompute::kFull};
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 1);
  ASSERT_FALSE(result);
  const std::string& message = result.error().message;
  EXPECT_THAT(message, HasSubstr("the nearest, tp8 pp1 dp8 mb1"));
  EXPECT_THAT(message, HasSubstr("; leave zero open: tp8 pp1 dp8 mb1"));
  one.request.zero.reset();
  EXPECT_TRUE(search_plans(one.problem(), SearchMode::kPruned, 1)) << message;
}

TEST(SearchPlans, BlamesNoDegreeThatNobodyGave) {
  Case one = case_of("mixtral-8x7b");
  one.request.tp = 2;
  one.request.pp = 8;
  one.request.ep = 4;
  EXPECT_TRUE(search_plans(one.problem(), SearchMode::kPruned, 1));
  one.global_batch = 63;
  one.devices = 16 * 4;
  one.request.cp = 1;
  EXPECT_THAT(
      search_plans(one.problem(), SearchMode::kPruned, 1).error().message,
      HasSubstr("no strategy of 64 devices with cp 1, ep 4, pp 8, tp 2 divides the job: dp 4 "
                "x micro_batch 1 does not divide global_batch 63"));
}

TEST(SearchPlans, PlansExpertsOverMoreRanksThanTheReplicasOfAStage) {
  Case one = case_of("qwen3-235b-a22b");
  one.server = *topo::find_server_preset("dgx-h100");
  one.devices = 256;
  one.global_batch = 1024;
  one.request = {.tp = 2, .pp = 8, .ep = 32};
  const auto result = search_plans(one.problem(), SearchMode::kPruned, 1);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->ranked.front().strategy.ep, 32);
  EXPECT_EQ(result->ranked.front().strategy.etp, 1);
}

TEST(ExactStrategy, FoldsExpertsThatCannotBeSplitAsTheBlock) {
  StrategyRequest request{.tp = 2, .pp = 8, .ep = 32, .micro_batch = 1};
  const workload::Strategy folded = exact_strategy(request, 256);
  EXPECT_EQ(folded.etp, 1);
  EXPECT_TRUE(folded.sequence_parallel);
  request.sequence_parallel = false;
  EXPECT_EQ(exact_strategy(request, 256).etp, 0);
  request.sequence_parallel.reset();
  request.ep = 16;
  EXPECT_EQ(exact_strategy(request, 256).etp, 0);
  request.ep = 64;
  EXPECT_EQ(exact_strategy(request, 256).etp, 0);
}

}  // namespace
}  // namespace regatta::plan
