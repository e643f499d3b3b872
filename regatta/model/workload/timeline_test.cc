#include "regatta/model/workload/timeline.h"

#include <cstddef>

#include <gtest/gtest.h>

namespace regatta::workload {
namespace {

TEST(PhaseTimes, SumToTheStep) {
  PhaseTimes times;
  times[Phase::kForward] = Seconds{1};
  times[Phase::kOther] = Seconds{0.5};
  EXPECT_DOUBLE_EQ(times.total().value, 1.5);
}

TEST(LargestPhaseIncrease, IsThePhaseWithTheLargestDifferenceNotTheLargestTime) {
  PhaseTimes best;
  best[Phase::kBackward] = Seconds{10};
  PhaseTimes loser = best;
  loser[Phase::kBackward] = Seconds{11};
  loser[Phase::kDpComm] = Seconds{2};
  EXPECT_EQ(largest_phase_increase(best, loser), Phase::kDpComm);
  EXPECT_EQ(largest_phase_increase(loser, best), Phase::kForward)
      << "nothing has grown: the first phase";
}

}  // namespace
}  // namespace regatta::workload
