#include "regatta/platform/mixing/mix_decision.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/gpu/sharing/control.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Bytes kGiB{1LL << 30};

MixedWorkload steady(const std::string& name, WorkloadClass load_class, float demand,
                     std::size_t intervals = 600) {
  return {name, load_class, 8.0 * kGiB, std::vector<float>(intervals, demand)};
}

// Nearly nothing, but for `high` from `first` on.
MixedWorkload service(float high, std::size_t first, std::size_t last,
                      std::size_t intervals = 1200) {
  MixedWorkload workload{"service", WorkloadClass::kTidal, 8.0 * kGiB,
                         std::vector<float>(intervals, 0.02F)};
  // The rise takes an hour, as that of a day's curve does.
  for (std::size_t t = first; t < last; ++t)
    workload.demand[t] = std::min(high, 0.02F + high * static_cast<float>(t - first) / 60);
  return workload;
}

MixDecision decide(const std::vector<MixedWorkload>& workloads, const DeviceCapacity& device = {},
                   const ServiceBudget& budget = {}) {
  const auto decision = decide_mix(workloads, device, budget);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision ? *decision : MixDecision{};
}

TEST(DecideMix, LowUsersShareTheDeviceWithQuotas) {
  const MixDecision decision = decide(
      {steady("a", WorkloadClass::kOnline, 0.2F), steady("b", WorkloadClass::kOnline, 0.3F)});
  EXPECT_EQ(decision.mode, MixMode::kShared);
  EXPECT_TRUE(decision.is_within_budget);
  EXPECT_THAT(run_flags(decision.slices[1]), ElementsAre("--name", "b", "--memory", "8192MiB",
                                                         "--compute", "30", "--weight", "30"));
  EXPECT_THAT(daemon_flags(decision, {}),
              ElementsAre("--gpu", "81920MiB", "--policy", "burst-weight"));
}

TEST(DecideMix, OnlineWorkPreemptsBatchWork) {
  const MixDecision decision = decide(
      {steady("online", WorkloadClass::kOnline, 0.4F), steady("batch", WorkloadClass::kBatch, 1)});
  EXPECT_EQ(decision.mode, MixMode::kPreemptive);
  EXPECT_THAT(run_flags(decision.slices[0]), ElementsAre("--name", "online", "--memory", "8192MiB",
                                                         "--weight", "1000", "--priority", "high"));
  EXPECT_EQ(decision.slices[1].slice.is_high_priority, false);
  EXPECT_THAT(decision.reason, HasSubstr("shared: misses 100.00 %"));
}

TEST(DecideMix, WorkWithATargetGoesFirstWhereTheBudgetSaysSo) {
  const std::vector<MixedWorkload> jobs = {steady("online", WorkloadClass::kOnline, 0.2F),
                                           steady("notebook", WorkloadClass::kIntermittent, 0.3F)};
  EXPECT_EQ(decide(jobs).mode, MixMode::kShared);
  const MixDecision decision = decide(jobs, {}, {.targets_first = true});
  EXPECT_EQ(decision.mode, MixMode::kPreemptive);
  EXPECT_THAT(decision.reason, HasSubstr("shared: work with a latency target goes first"));
}

TEST(DecideMix, IntermittentJobsThatDoNotFitTogetherTakeLeases) {
  std::vector<MixedWorkload> jobs(3);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i] = {"job" + std::to_string(i), WorkloadClass::kIntermittent, 60.0 * kGiB,
               std::vector<float>(600, 0)};
    for (std::size_t t = 0; t < 600; ++t)
      if (t % 30 / 10 == i) jobs[i].demand[t] = 0.8F;
  }
  const auto refused = decide_mix(jobs, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  const MixDecision decision = decide(jobs, {.host_memory = 200.0 * kGiB});
  EXPECT_EQ(decision.mode, MixMode::kTimeSlice);
  EXPECT_THAT(run_flags(decision.slices[2]), testing::Contains("--overcommit"));
  EXPECT_THAT(run_flags(decision.slices[2]), testing::Contains("--lease"));
  // 60 changes move 60 GiB out and 60 GiB in at 25 GB/s, in intervals of 60 s: 60 * 5.15 / 60.
  EXPECT_NEAR(decision.modes[2].lost, 60 * 2 * 60 * 1.0737 / 25 / 60, 0.1);
}

TEST(DecideMix, TrainingLeavesAServiceByDayWhereItWouldDisturbIt) {
  std::vector<MixedWorkload> workloads = {service(0.8F, 600, 1100),
                                          steady("training", WorkloadClass::kBatch, 1, 1200)};
  EXPECT_EQ(decide(workloads, {.interference = 0}).mode, MixMode::kPreemptive);
  const MixDecision decision = decide(workloads, {.interference = 1.5});
  EXPECT_EQ(decision.mode, MixMode::kTidal);
  EXPECT_TRUE(decision.is_within_budget) << decision.reason;
  ASSERT_FALSE(decision.slices[1].runs.empty());
  for (const IntervalRange& run : decision.slices[1].runs)
    EXPECT_TRUE(run.last < 650 || run.first >= 1100) << run.first << " to " << run.last;
  EXPECT_TRUE(decision.slices[0].runs.empty());
}

TEST(DecideMix, WhereNoModeKeepsTheBudgetTheOneThatMissesLeastIsChosen) {
  const MixDecision decision = decide(
      {steady("a", WorkloadClass::kOnline, 0.7F), steady("b", WorkloadClass::kOnline, 0.7F)});
  EXPECT_FALSE(decision.is_within_budget);
}

TEST(DecideMix, WrongWorkloadsAreRefusedWithAReason) {
  EXPECT_EQ(decide_mix({}, {}, {}).error().message, "no workload to mix; give at least one");
  std::vector<MixedWorkload> workloads = {steady("a", WorkloadClass::kOnline, 0.1F),
                                          steady("b", WorkloadClass::kOnline, 0.1F, 3)};
  EXPECT_EQ(decide_mix(workloads, {}, {}).error().message,
            "workload b: 3 intervals, the first workload has 600; give series of one length, at "
            "least 1");
  workloads.pop_back();
  workloads[0].memory = 81.0 * kGiB;
  EXPECT_EQ(decide_mix(workloads, {}, {}).error().message,
            "workload a: 81 GiB of memory; give 2MiB to the device's 80 GiB");
}

TEST(DecideMix, TheSettingsAreThoseThatTheDaemonAccepts) {
  packing::RandomSequence random(5);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    std::vector<MixedWorkload> workloads;
    for (int i = 0; i < 4; ++i) {
      const auto load_class = static_cast<WorkloadClass>(random.below(4));
      workloads.push_back(steady("w" + std::to_string(i), load_class, 0));
      for (float& demand : workloads.back().demand)
        demand = random.uniform() < 0.2 ? static_cast<float>(random.uniform()) : 0.01F;
    }
    const DeviceCapacity device{.host_memory = 64.0 * kGiB};
    const MixDecision decision = decide(workloads, device);
    EXPECT_TRUE(sharing::parse_policy(decision.policy));
    unsigned compute = 0;
    for (const SliceSetting& setting : decision.slices) {
      const std::vector<std::string> flags = run_flags(setting);
      sharing::GpuSlice slice;
      for (std::size_t i = 0; i < flags.size(); ++i)
        for (const char* key : {"memory", "compute", "weight", "priority"})
          if (flags[i] == std::string("--") + key) {
            EXPECT_TRUE(sharing::set_limit(slice, key, flags[i + 1])) << flags[i + 1];
          }
      EXPECT_EQ(slice.memory, setting.slice.memory);
      EXPECT_EQ(slice.compute_ppm, setting.slice.compute_ppm);
      EXPECT_EQ(slice.weight, setting.slice.weight);
      EXPECT_EQ(slice.is_high_priority, setting.slice.is_high_priority);
      compute += slice.compute_ppm.value_or(0);
    }
    EXPECT_LE(compute, 1'000'000U);
    const ModeCost& chosen = decision.modes[static_cast<std::size_t>(decision.mode)];
    for (const ModeCost& mode : decision.modes) {
      if (!mode.obstacle.empty()) continue;
      if (decision.is_within_budget && mode.missed_share <= ServiceBudget{}.missed_share) {
        EXPECT_LE(chosen.cost, mode.cost);
      }
      if (!decision.is_within_budget) {
        EXPECT_LE(chosen.missed_share, mode.missed_share);
      }
    }
  }
}

}  // namespace
}  // namespace regatta::mixing
