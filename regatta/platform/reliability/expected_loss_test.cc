#include "regatta/platform/reliability/expected_loss.h"

#include <gtest/gtest.h>

namespace regatta::reliability {
namespace {

JobAtRisk job_of(int devices) {
  return {.devices = 1.0 * devices,
          .interval = {600},
          .save = {5},
          .restart = {240},
          .planned_restart = {100},
          .since_checkpoint = {300}};
}

TEST(ExpectedLoss, IsTheFailuresTimesHalfAnIntervalAndARestartOnEachDevice) {
  EXPECT_DOUBLE_EQ(failure_loss(job_of(8)), 8 * 540);
  EXPECT_DOUBLE_EQ(expected_loss(job_of(8), rate_of(2, kDay), kHour), 2.0 / 24 * 8 * 540);
}

TEST(StopLoss, CountsWhatTheStopUndoesUnlessACheckpointIsSavedForIt) {
  EXPECT_DOUBLE_EQ(stop_loss(job_of(8)), 8 * 400);
  EXPECT_DOUBLE_EQ(saved_stop_loss(job_of(8)), 8 * 105);
}

TEST(DecideDrain, KeepsANodeThatHardlyFailsAndDrainsOneThatFailsDaily) {
  const JobAtRisk job = job_of(16384);
  EXPECT_EQ(decide_drain(job, rate_of(1, 1000 * kDay), kDay).time, DrainTime::kLater);
  EXPECT_EQ(decide_drain(job, rate_of(1, kDay), 7 * kDay).time, DrainTime::kNextCheckpoint);
  EXPECT_EQ(decide_drain(job, rate_of(1, Seconds{60}), 7 * kDay).time, DrainTime::kNow);
}

TEST(DecideDrain, KeepsTheSameNodeInASmallJobWhereItsAbsenceCostsMore) {
  const double repair = 8 * kDay.value;
  const FailureRate rate = rate_of(1, 10 * kDay);
  EXPECT_EQ(decide_drain(job_of(64), rate, 7 * kDay, repair).time, DrainTime::kLater);
  EXPECT_NE(decide_drain(job_of(16384), rate, 7 * kDay, repair).time, DrainTime::kLater);
}

TEST(DecideDrain, TakesTheLeastOfTheLossesThatItReports) {
  for (const double days : {0.0005, 0.01, 0.3, 2.0, 30.0, 400.0})
    for (const int devices : {8, 512, 16384})
      for (const double drained : {0.0, 1e5}) {
        const DrainDecision decision =
            decide_drain(job_of(devices), rate_of(1, days * kDay), kDay, drained);
        const double chosen = decision.time == DrainTime::kNow     ? decision.now
                              : decision.time == DrainTime::kLater ? decision.later
                                                                   : decision.next_checkpoint;
        EXPECT_LE(chosen, decision.now);
        EXPECT_LE(chosen, decision.next_checkpoint);
        EXPECT_LE(chosen, decision.later);
      }
}

}  // namespace
}  // namespace regatta::reliability
