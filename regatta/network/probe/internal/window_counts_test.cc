#include "regatta/network/probe/internal/window_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WindowCountsTest : public testing::Test {
 protected:
  void send(std::int64_t round) {
    counts_.note(round, [](WindowCounts::Slot& one) { ++one.sent[0]; });
  }
  void answer(std::int64_t round) {
    counts_.note(round, [](WindowCounts::Slot& one) { ++one.answered[0]; });
  }
  std::vector<diag::Window> due(std::int64_t round) {
    std::vector<diag::Window> windows;
    for (const WindowCounts::Slot* one : counts_.consume_due(round))
      windows.push_back(one->window);
    return windows;
  }

  WindowCounts counts_{1, 1, 3};
};

TEST_F(WindowCountsTest, AreReportedOnceWhenTheirWindowHasEnded) {
  counts_.begin_after(29);
  for (std::int64_t round = 30; round < 36; ++round)
    send(round);
  EXPECT_THAT(due(32), IsEmpty());
  EXPECT_THAT(due(33), ElementsAre(10));
  EXPECT_THAT(due(35), IsEmpty());
  EXPECT_THAT(due(36), ElementsAre(11));
}

TEST_F(WindowCountsTest, AreReportedAgainBeforeTheNextWindowEnds) {
  counts_.begin_after(29);
  send(30);
  EXPECT_THAT(due(33), ElementsAre(10));
  answer(30);
  EXPECT_THAT(due(34), ElementsAre(10));
  EXPECT_THAT(due(35), IsEmpty());
  EXPECT_THAT(due(36), ElementsAre(11));
}

TEST_F(WindowCountsTest, AreReportedAgainWithTheNextWindowWhenMoreIsKnown) {
  counts_.begin_after(29);
  send(30);
  EXPECT_THAT(due(33), ElementsAre(10));
  answer(30);
  EXPECT_THAT(due(36), ElementsAre(10, 11));
  EXPECT_THAT(due(39), ElementsAre(12));
}

TEST_F(WindowCountsTest, ForgetWindowsThatAreTooOld) {
  counts_.begin_after(0);
  const auto newest = static_cast<std::int64_t>(3 * WindowCounts::kSlots + 3);
  send(newest);
  bool was_noted = false;
  counts_.note(3, [&](WindowCounts::Slot&) { was_noted = true; });
  EXPECT_FALSE(was_noted);
}

TEST_F(WindowCountsTest, KnowTheLargestGapSinceAWindow) {
  counts_.note(30, [](WindowCounts::Slot& one) { one.worst_gap_ns = 5; });
  counts_.note(36, [](WindowCounts::Slot& one) { one.worst_gap_ns = 9; });
  EXPECT_EQ(counts_.worst_gap_ns(10, 38), 9);
  EXPECT_EQ(counts_.worst_gap_ns(10, 33), 5);
  EXPECT_EQ(counts_.worst_gap_ns(13, 60), 0);
}

}  // namespace
}  // namespace regatta::probe
