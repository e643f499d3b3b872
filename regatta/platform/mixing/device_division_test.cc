#include "regatta/platform/mixing/device_division.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr Bytes kTenGib{10LL << 30};

TEST(DeviceDivider, GivesWorkWithATargetAllAndTheRestWhatItLeavesWherePreemptive) {
  const std::vector<DeviceDemand> demands = {{1, false, {}}, {0.4, true, {}}};
  DeviceDivider divider;
  int resident = -1;
  const DeviceDivision got =
      divider.divide(demands, {.mode = MixMode::kPreemptive, .interference = 0.5}, resident);
  // The service needs 0.4 (1 + 0.5 * 0.6) = 0.52; the training fills the device alone.
  EXPECT_THAT(got.served, ElementsAre(DoubleNear(0.48, 1e-9), DoubleNear(1, 1e-9)));
  EXPECT_THAT(got.is_met, ElementsAre(false, true));
}

TEST(DeviceDivider, NeedsWhatMixedDemandSaysWhereWorkIsShared) {
  const std::vector<DeviceDemand> demands = {{0.6, true, {}}, {0.3, true, {}}, {0.3, false, {}}};
  DeviceDivider divider;
  int resident = -1;
  const DeviceDivision got =
      divider.divide(demands, {.mode = MixMode::kShared, .interference = 0.2}, resident);
  const float need = mixed_demand(1.2F, 0.36F + 0.09F + 0.09F, 0.2F);
  for (const double served : got.served)
    EXPECT_NEAR(served, 1 / need, 1e-6);
}

TEST(DeviceDivider, PaysForMovingMemoryWhereTurnsChange) {
  const std::vector<DeviceDemand> demands = {{0.5, false, kTenGib}, {0.5, false, kTenGib}};
  DivisionRule rule{.mode = MixMode::kTimeSlice, .lease = {60}, .is_swapped = true};
  rule.link = {static_cast<double>(kTenGib.value)};  // a second for each way
  DeviceDivider divider;
  int resident = -1;
  const DeviceDivision got = divider.divide(demands, rule, resident);
  EXPECT_NEAR(got.swapped, 4.0 / 60, 1e-9);
  const double served = 1 - 4.0 / 60;
  EXPECT_THAT(got.served, ElementsAre(DoubleNear(served, 1e-9), DoubleNear(served, 1e-9)));
  EXPECT_EQ(resident, 1);
  const std::vector<DeviceDemand> same = {{0, true, kTenGib}, {0.5, true, kTenGib}};
  EXPECT_THAT(divider.divide(same, rule, resident).is_met, ElementsAre(true, true));
  const std::vector<DeviceDemand> other = {{0.5, true, kTenGib}, {0, true, kTenGib}};
  EXPECT_THAT(divider.divide(other, rule, resident).is_met, ElementsAre(false, true));
}

TEST(DivideByWeight, GivesNobodyMoreThanItNeedsAndLeavesNothingThatIsNeeded) {
  EXPECT_THAT(divide_by_weight(std::vector{0.2, 0.9, 0.9}, std::vector{1.0, 1.0, 3.0}, 1),
              ElementsAre(0.2, testing::DoubleNear(0.2, 1e-12), testing::DoubleNear(0.6, 1e-12)));
  packing::RandomSequence random(3);
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    std::vector<double> needs;
    std::vector<double> weights;
    for (std::size_t i = 0; i < 1 + random.below(6); ++i) {
      needs.push_back(random.uniform() < 0.2 ? 0 : random.uniform());
      weights.push_back(0.1 + random.uniform());
    }
    const std::vector<double> got = divide_by_weight(needs, weights, 1);
    const double needed = std::accumulate(needs.begin(), needs.end(), 0.0);
    EXPECT_NEAR(std::accumulate(got.begin(), got.end(), 0.0), std::min(1.0, needed), 1e-9);
    for (std::size_t i = 0; i < needs.size(); ++i) {
      EXPECT_LE(got[i], needs[i] + 1e-12);
      // Those that lack something have equal amounts for their weight, the most that anyone has.
      for (std::size_t j = 0; j < needs.size(); ++j)
        if (got[i] < needs[i] - 1e-9) {
          EXPECT_GE(got[i] / weights[i], got[j] / weights[j] - 1e-9);
        }
    }
  }
}

}  // namespace
}  // namespace regatta::mixing
