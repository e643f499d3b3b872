#include "regatta/runtime/comm/internal/watch/wait_history.h"

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

TEST(WaitHistory, LogsAStoppedRankAtOnce) {
  WaitHistory history;
  history.record(Seconds{20});
  EXPECT_EQ(history.log_after(Finding::kStopped).value, 0);
  EXPECT_EQ(history.log_after(Finding::kGone).value, 0);
}

TEST(WaitHistory, LetsARankComputeForTenSecondsBeforeAnyWaitIsKnown) {
  EXPECT_EQ(WaitHistory().log_after(Finding::kNotCalled).value, 10);
  EXPECT_EQ(WaitHistory().log_after(Finding::kBlocked).value, 3);
}

TEST(WaitHistory, TakesThreeTimesTheUsualBubbleOfAPipelineForUnusual) {
  WaitHistory history;
  for (int step = 0; step < 100; ++step)
    history.record(Seconds{step % 2 == 0 ? 0.7 : 6.0});
  EXPECT_EQ(history.log_after(Finding::kNotCalled).value, 18);
  EXPECT_EQ(history.log_after(Finding::kSilent).value, 18);
}

TEST(WaitHistory, ForgetsALongWaitAfterManyShortOnes) {
  WaitHistory history;
  history.record(Seconds{60});
  EXPECT_EQ(history.log_after(Finding::kNotCalled).value, 180);
  for (int step = 0; step < 50; ++step)
    history.record(Seconds{0.7});
  EXPECT_EQ(history.log_after(Finding::kNotCalled).value, 10);
}

}  // namespace
}  // namespace regatta::comm
