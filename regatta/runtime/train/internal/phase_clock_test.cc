#include "regatta/runtime/train/internal/phase_clock.h"

#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"

namespace regatta::train {
namespace {

using workload::Phase;

TEST(PhaseClock, SumsToTheStepTimeAndPutsAWaitBack) {
  PhaseClock clock(Rank{3});
  clock.start(5, true);
  clock.enter({Phase::kForward, 2, 1});
  const Activity was = clock.enter({.phase = Phase::kTpComm});
  EXPECT_EQ(was.phase, Phase::kForward);
  EXPECT_EQ(was.layer, 1);
  os::sleep_for(Seconds{0.002});
  clock.enter(was);
  clock.enter({});
  const StepTimes times = clock.finish_step(false);
  EXPECT_NEAR(times.phases.total().value, times.time.value, 1e-9);
  EXPECT_GE(times.phases[Phase::kTpComm].value, 0.002);
  ASSERT_FALSE(times.spans.empty());
  for (const workload::Span& span : times.spans) {
    EXPECT_EQ(span.rank, Rank{3});
    EXPECT_EQ(span.step, 5);
  }
}

TEST(PhaseClock, SplitsAWaitAtAGivenMoment) {
  PhaseClock clock(Rank{0});
  clock.start(0, false);
  clock.enter({.phase = Phase::kBubble});
  os::sleep_for(Seconds{0.002});
  const Seconds middle = os::monotonic_now();
  os::sleep_for(Seconds{0.002});
  clock.enter_at({.phase = Phase::kPpComm}, middle);
  clock.enter({});
  const StepTimes times = clock.finish_step(false);
  EXPECT_GE(times.phases[Phase::kBubble].value, 0.002);
  EXPECT_GE(times.phases[Phase::kPpComm].value, 0.002);
  EXPECT_TRUE(times.spans.empty());
}

TEST(PhaseClock, CountsNothingTwiceWhenTheMomentIsPast) {
  PhaseClock clock(Rank{0});
  const Seconds before = os::monotonic_now();
  clock.start(0, false);
  clock.enter({.phase = Phase::kBubble});
  clock.enter_at({.phase = Phase::kPpComm}, before);
  clock.enter({});
  const StepTimes times = clock.finish_step(false);
  EXPECT_EQ(times.phases[Phase::kBubble].value, 0);
  EXPECT_NEAR(times.phases.total().value, times.time.value, 1e-9);
}

TEST(PhaseClock, DrawsBackgroundTransfersWithoutCountingThem) {
  PhaseClock clock(Rank{0});
  clock.start(0, true);
  const Seconds now = os::monotonic_now();
  clock.background({.phase = Phase::kDpComm}, now, now + Seconds{5});
  const StepTimes times = clock.finish_step(false);
  EXPECT_EQ(times.phases[Phase::kDpComm].value, 0);
  ASSERT_EQ(times.spans.size(), 2U);
  EXPECT_TRUE(times.spans[0].background);
  EXPECT_EQ(times.spans[0].duration.value, (now + Seconds{5} - now).value);
}

TEST(PhaseClock, StartsTheNextStepWhereTheLastEnded) {
  PhaseClock clock(Rank{0});
  clock.start(0, true);
  os::sleep_for(Seconds{0.001});
  const StepTimes first = clock.finish_step(true);
  const StepTimes second = clock.finish_step(false);
  ASSERT_EQ(second.spans.size(), 1U);
  EXPECT_EQ(second.spans[0].step, 1);
  EXPECT_NEAR(second.spans[0].start.value, (first.spans[0].start + first.time).value, 1e-9);
}

}  // namespace
}  // namespace regatta::train
