#include "regatta/platform/mixing/device_assignment.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"
#include "regatta/platform/mixing/duty_tables.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

const std::filesystem::path kTrace =
    std::filesystem::path(REGATTA_TESTDATA "/../../../../../shared/data/cluster/gentd")
        .lexically_normal();
constexpr DeviceCapacity kPlain{.interference = 0};

MixedWorkload workload_of(std::vector<float> demand) {
  return {"w", WorkloadClass::kOnline, Bytes{1LL << 30}, std::move(demand)};
}

std::vector<MixedWorkload> random_workloads(std::size_t count, std::uint64_t seed) {
  packing::RandomSequence random(seed);
  std::vector<MixedWorkload> workloads;
  for (std::size_t i = 0; i < count; ++i) {
    workloads.push_back(workload_of({}));
    const double busy = 0.05 + 0.2 * random.uniform();
    for (int t = 0; t < 240; ++t)
      workloads.back().demand.push_back(
          random.uniform() < busy ? static_cast<float>(0.6 * random.uniform()) : 0.0F);
  }
  return workloads;
}

int devices_of(const std::vector<int>& homes) {
  std::vector<int> sorted = homes;
  std::sort(sorted.begin(), sorted.end());
  return static_cast<int>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}

TEST(JudgeAssignment, CountsIntervalsAboveCapacityAndDevicesInUse) {
  const std::vector<MixedWorkload> workloads = {workload_of({0.5F, 0.9F, 0.2F, kAbsent}),
                                                workload_of({0.4F, 0.3F, 0.2F, kAbsent}),
                                                workload_of({1, 1, kAbsent, 0.1F})};
  const std::vector<int> homes = {0, 0, 1};
  const MixingUse use = judge_assignment(workloads, homes, {0, 4}, kPlain);
  EXPECT_EQ(use.device_intervals, 6);  // 2, 2, 1 and 1
  EXPECT_EQ(use.workload_intervals, 9);
  EXPECT_DOUBLE_EQ(use.above_share, 1.0 / 6);
  EXPECT_DOUBLE_EQ(use.missed_share, 2.0 / 9);
  EXPECT_EQ(use.most_devices, 2);
  // With interference 0.5 + 0.4 becomes 0.9 + 0.9 * 0.9 - 0.41 = 1.3.
  EXPECT_DOUBLE_EQ(judge_assignment(workloads, homes, {0, 1}, {.interference = 1}).above_share,
                   0.5);
}

TEST(AssignByPercentile, NeverAddsUpToMoreThanADevice) {
  std::vector<MixedWorkload> workloads = random_workloads(30, 3);
  for (MixedWorkload& workload : workloads)
    for (float& demand : workload.demand)
      demand /= 2;
  const std::vector<int> homes = assign_by_percentile(workloads, {0, 240}, 1, kPlain);
  EXPECT_EQ(judge_assignment(workloads, homes, {0, 240}, kPlain).above_share, 0);
  EXPECT_LT(devices_of(homes), 30);
}

TEST(AssignJointly, KeepsTheBudgetOnItsOwnRangeWithFewerDevicesThanPercentiles) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<MixedWorkload> workloads = random_workloads(30, seed);
    const auto homes = assign_jointly(workloads, {0, 240}, kPlain, {}, seed);
    ASSERT_TRUE(homes);
    EXPECT_LE(judge_assignment(workloads, *homes, {0, 240}, kPlain).above_share, 0.01);
    EXPECT_LT(devices_of(*homes),
              devices_of(assign_by_percentile(workloads, {0, 240}, 0.99, kPlain)));
    EXPECT_EQ(*homes, *assign_jointly(workloads, {0, 240}, kPlain, {}, seed));
  }
}

TEST(AssignJointly, RefusesARangeThatTheSeriesDoNotHold) {
  const auto homes = assign_jointly(random_workloads(2, 1), {0, 241}, kPlain, {}, 1);
  ASSERT_FALSE(homes);
  EXPECT_EQ(homes.error().message,
            "workload w: 240 intervals, of which 0 to 241 are asked for; give series that hold a "
            "range of at least one");
}

TEST(ReplayElastic, DecidesFromThePastAlone) {
  std::vector<MixedWorkload> workloads = random_workloads(12, 5);
  const auto use = replay_elastic(workloads, {60, 120}, {}, kPlain, {});
  ASSERT_TRUE(use) << use.error().message;
  for (MixedWorkload& workload : workloads)
    std::fill(workload.demand.begin() + 110, workload.demand.end(), 1.0F);
  const auto changed = replay_elastic(workloads, {60, 110}, {}, kPlain, {});
  const auto same = replay_elastic(random_workloads(12, 5), {60, 110}, {}, kPlain, {});
  EXPECT_EQ(changed->device_intervals, same->device_intervals);
  EXPECT_EQ(changed->above_share, same->above_share);
  EXPECT_FALSE(replay_elastic(workloads, {59, 120}, {}, kPlain, {}));
  EXPECT_FALSE(replay_elastic(workloads, {60, 120}, {.every = 0}, kPlain, {}));
  EXPECT_FALSE(replay_elastic(workloads, {60, 120}, {.every = 2, .move_intervals = 2}, kPlain, {}));
}

TEST(ReplayElastic, GivesUpDevicesWhenDemandFallsAndTakesThemBack) {
  std::vector<MixedWorkload> workloads = random_workloads(12, 6);
  for (MixedWorkload& workload : workloads)
    for (std::size_t t = 100; t < 200; ++t)
      workload.demand[t] = 0.01F;
  const auto busy = replay_elastic(workloads, {60, 100}, {}, kPlain, {});
  const auto quiet = replay_elastic(workloads, {150, 200}, {}, kPlain, {});
  EXPECT_GT(quiet->workloads_per_device(), 1.5 * busy->workloads_per_device());
}

TEST(MixingOfThePublicTrace, ManyPodsShareAGpuWithinTheBudget) {
  if (!std::filesystem::exists(kTrace)) GTEST_SKIP() << "no " << kTrace;
  auto trace = read_duty_trace(read_test_file(kTrace / "gpu_duty_cycle.csv"), "duty");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->workloads.size(), 143U);
  // The fullest hours; 4 pods on a GPU need the quiet ones too, which take too long for a test.
  const IntervalRange full{380, 560};
  const auto use = replay_elastic(trace->workloads, full, {}, {}, {});
  ASSERT_TRUE(use);
  EXPECT_GE(use->workloads_per_device(), 1.9);
  EXPECT_LE(use->above_share, 0.01);
  EXPECT_LE(use->workloads_per_device(),
            most_workloads_per_device(trace->workloads, full, 0, true));
}

}  // namespace
}  // namespace regatta::mixing
