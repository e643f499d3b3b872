#include "regatta/platform/mixing/mixed_workload.h"

#include <cmath>

#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr Seconds kMinute{60};

std::vector<float> noise(std::size_t count, double from, double to, std::uint64_t seed) {
  packing::RandomSequence random(seed);
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(from + (to - from) * random.uniform()));
  return values;
}

TEST(FindDutyPattern, ALowLevelIsALowAverage) {
  EXPECT_EQ(find_duty_pattern(noise(1440, 0, 0.15, 1), kMinute), DutyPattern::kLowAverage);
}

TEST(FindDutyPattern, AFewHighIntervalsAreShortSpikes) {
  std::vector<float> demand = noise(1440, 0, 0.1, 2);
  for (std::size_t i = 7; i < demand.size(); i += 97)
    demand[i] = 0.95F;
  EXPECT_EQ(find_duty_pattern(demand, kMinute), DutyPattern::kShortSpike);
}

TEST(FindDutyPattern, HighAndLowHoursArePeakAndValley) {
  std::vector<float> demand = noise(1440, 0, 0.05, 3);
  for (std::size_t i = 600; i < 900; ++i)
    demand[i] += 0.3F;
  EXPECT_EQ(find_duty_pattern(demand, kMinute), DutyPattern::kPeakValley);
}

TEST(FindDutyPattern, WorkEveryQuarterOfAnHourIsPeriodic) {
  std::vector<float> demand(1440, 0);
  for (std::size_t i = 0; i < demand.size(); ++i)
    if (i % 15 < 3) demand[i] = 0.6F;
  EXPECT_EQ(find_duty_pattern(demand, kMinute), DutyPattern::kPeriodic);
}

TEST(FindDutyPattern, AHighLevelIsSteadyAndAbsentIntervalsDoNotCount) {
  std::vector<float> demand = noise(400, 0.7, 1, 4);
  demand.resize(1440, kAbsent);
  EXPECT_EQ(find_duty_pattern(demand, kMinute), DutyPattern::kSteady);
  EXPECT_EQ(find_duty_pattern(std::vector<float>(11, 1), kMinute), DutyPattern::kLowAverage);
}

TEST(ClassOfPattern, OnlyServicesHaveALatencyTarget) {
  EXPECT_TRUE(has_latency_target(class_of_pattern(DutyPattern::kLowAverage)));
  EXPECT_TRUE(has_latency_target(class_of_pattern(DutyPattern::kPeakValley)));
  EXPECT_FALSE(has_latency_target(class_of_pattern(DutyPattern::kShortSpike)));
  EXPECT_FALSE(has_latency_target(class_of_pattern(DutyPattern::kPeriodic)));
  EXPECT_FALSE(has_latency_target(class_of_pattern(DutyPattern::kSteady)));
}

}  // namespace
}  // namespace regatta::mixing
