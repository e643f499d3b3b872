#include <algorithm>
#include <cstddef>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/platform/mixing/mix_decision.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

ProfiledWorkload workload(const std::string& name, WorkloadClass load_class, float low,
                          float high) {
  return {name, load_class, 4.0 * Bytes{1LL << 30}, {.shares = {low, low, low, high}, .day = {}}};
}

std::vector<ProfiledWorkload> random_workloads(packing::RandomSequence& random) {
  std::vector<ProfiledWorkload> made;
  const std::size_t count = 2 + random.below(4);
  for (std::size_t i = 0; i < count; ++i) {
    const float high = 0.1F * static_cast<float>(1 + random.below(4));
    made.push_back(workload("w" + std::to_string(i), static_cast<WorkloadClass>(random.below(4)),
                            0.02F, high));
  }
  return made;
}

TEST(DecideProfiledMix, OnlineWorkGoesOverBatchWork) {
  const std::vector<ProfiledWorkload> workloads = {
      workload("batch", WorkloadClass::kBatch, 1, 1),
      workload("online", WorkloadClass::kOnline, 0.1F, 0.6F)};
  const auto decision = decide_profiled_mix(workloads, {}, {});
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(decision->mode, MixMode::kPreemptive);
  EXPECT_TRUE(decision->is_within_budget);
  EXPECT_EQ(decision->slices[0].workload, "batch");
  EXPECT_EQ(decision->slices[1].slice.is_high_priority, true);
  EXPECT_EQ(decision->slices[1].expected_share, 1);
  // The online work needs 0.225 x 1.15 in the mean, and slows the batch work a little.
  EXPECT_NEAR(decision->slices[0].expected_share, 0.756, 0.005);
}

TEST(DecideProfiledMix, ServicesWithOnePeakDoNotShareADevice) {
  std::vector<ProfiledWorkload> workloads = {workload("a", WorkloadClass::kTidal, 0.3F, 0.3F),
                                             workload("b", WorkloadClass::kTidal, 0.3F, 0.3F)};
  workloads[0].duty.day = workloads[1].duty.day = {0.2F, 0.2F, 2.6F};
  const auto together = decide_profiled_mix(workloads, {}, {});
  ASSERT_TRUE(together);
  EXPECT_FALSE(together->is_within_budget);
  workloads[1].duty.day = {2.6F, 0.2F, 0.2F};
  const auto apart = decide_profiled_mix(workloads, {}, {});
  ASSERT_TRUE(apart);
  EXPECT_TRUE(apart->is_within_budget) << apart->reason;
}

TEST(DecideProfiledMix, TheOrderOfTheWorkloadsChangesTheOrderOfTheSlicesAlone) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    std::vector<ProfiledWorkload> workloads = random_workloads(random);
    const auto first = decide_profiled_mix(workloads, {}, {});
    std::reverse(workloads.begin(), workloads.end());
    const auto second = decide_profiled_mix(workloads, {}, {});
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->reason, second->reason);
    for (std::size_t i = 0; i < workloads.size(); ++i)
      EXPECT_EQ(second->slices[i].workload, workloads[i].name);
  }
}

TEST(DecideProfiledMix, AMixWithinTheBudgetStaysSoWithoutOneOfItsWorkloads) {
  int kept = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    std::vector<ProfiledWorkload> workloads = random_workloads(random);
    const auto all = decide_profiled_mix(workloads, {}, {});
    ASSERT_TRUE(all);
    if (!all->is_within_budget) continue;
    ++kept;
    workloads.erase(workloads.begin() +
                    static_cast<std::ptrdiff_t>(random.below(workloads.size())));
    const auto rest = decide_profiled_mix(workloads, {}, {});
    ASSERT_TRUE(rest);
    EXPECT_TRUE(rest->is_within_budget) << rest->reason;
  }
  EXPECT_GT(kept, 5);
}

TEST(MixMemo, GivesTheDecisionsThatAreMadeWithoutIt) {
  MixMemo memo;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    const std::vector<ProfiledWorkload> workloads = random_workloads(random);
    std::vector<int> kinds;
    for (const ProfiledWorkload& each : workloads)
      kinds.push_back(memo.kind_of(each));
    std::sort(kinds.begin(), kinds.end());
    for (const double interference : {0.15, 0.5}) {
      const DeviceCapacity device{.interference = interference};
      const auto& remembered = memo.decide(kinds, device, {});
      const auto made = decide_profiled_mix(workloads, device, {});
      ASSERT_TRUE(remembered && made);
      EXPECT_EQ(remembered->reason, made->reason);
      EXPECT_EQ(&remembered, &memo.decide(kinds, device, {}));
    }
  }
}

}  // namespace
}  // namespace regatta::mixing
