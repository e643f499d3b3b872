#include "regatta/bench/own_ranks.h"

#include <gtest/gtest.h>

namespace regatta::bench {
namespace {

class OwnRanks : public testing::TestWithParam<Op> {};

INSTANTIATE_TEST_SUITE_P(Ops, OwnRanks, testing::ValuesIn(kOps),
                         [](const auto& op) { return to_string(op.param); });

TEST_P(OwnRanks, GiveRightResultsWithPrivateAndSharedBuffers) {
  const Task task{.op = GetParam(), .sizes = {1024, 3000001}, .ranks = 3, .batches = 2};
  const auto run = run_own_ranks(task, {});
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->contenders.size(), 2U);
  EXPECT_FALSE(run->choices.empty());
  for (const Contender& contender : run->contenders) {
    ASSERT_EQ(contender.timings.size(), 2U);
    for (const Timing& timing : contender.timings) {
      EXPECT_EQ(timing.wrong, 0) << contender.name;
      ASSERT_EQ(timing.batches_s.size(), 2U);
      EXPECT_GT(timing.least().value, 0);
    }
  }
}

}  // namespace
}  // namespace regatta::bench
