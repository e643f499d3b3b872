#include "regatta/model/cost/collective.h"

#include <gtest/gtest.h>

namespace regatta::cost {
namespace {

using namespace regatta::literals;

TEST(AllReduceCost, FollowsTheClosedForms) {
  const struct {
    Bytes size;
    int world_size;
    int steps;
    double bytes;
  } cases[] = {
      {1_MiB, 1, 0, 0},
      {1_MiB, 2, 2, 1048576.0},
      {1_MiB, 4, 6, 1.5 * 1048576},
      {1_MiB, 8, 14, 1.75 * 1048576},
      {8_B, 2, 1, 8},
      {8_B, 8, 1, 56},
      {8_KiB, 5, 3, 3 * 8192.0},
      {8_KiB, 8, 3, 3 * 8192.0},
  };
  for (const auto& one : cases) {
    const CollectiveCost cost = all_reduce_cost(one.size, one.world_size);
    EXPECT_EQ(cost.steps, one.steps);
    EXPECT_DOUBLE_EQ(cost.bytes, one.bytes);
  }
}

TEST(AllReduceCost, IsAReduceScatterAndAnAllGather) {
  for (int p = 2; p <= 64; ++p) {
    const CollectiveCost half = reduce_scatter_cost(64_MiB, p);
    const CollectiveCost whole = all_reduce_cost(64_MiB, p);
    EXPECT_EQ(whole.steps, 2 * half.steps);
    EXPECT_NEAR(whole.bytes, 2 * half.bytes, 1e-6);
  }
}

// The mean of the largest of n uniform numbers from 0 to 1 is n / (n + 1).
TEST(CpuThrottlingWait, IsTheLastPauseOverTheMeanOne) {
  EXPECT_EQ(cpu_throttling_wait(0.15, 1).value, 0);
  EXPECT_EQ(cpu_throttling_wait(0, 4).value, 0);
  EXPECT_EQ(cpu_throttling_wait(1, 4).value, 0);
  EXPECT_NEAR(cpu_throttling_wait(0.15, 2).value, 8.5e-3 / 6, 1e-12);
  EXPECT_GT(cpu_throttling_wait(0.15, 8), cpu_throttling_wait(0.15, 2));
  EXPECT_LT(cpu_throttling_wait(0.15, 1000).value, 8.5e-3 / 2);
}

}  // namespace
}  // namespace regatta::cost
