#include "regatta/runtime/comm/internal/engine/close_sequence.h"

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using Action = CloseSequence::Action;

TEST(CloseSequence, SaysGoodbyeWhenOperationsHaveEndedAndMessagesHaveLeft) {
  CloseSequence close;
  EXPECT_FALSE(close.has_begun());
  close.begin(Seconds{10});
  EXPECT_TRUE(close.has_begun());
  EXPECT_EQ(close.next(Seconds{1}, false, false), Action::kWait);
  EXPECT_EQ(close.next(Seconds{1}, true, false), Action::kEndOperations);
  EXPECT_EQ(close.next(Seconds{1}, true, false), Action::kWait);
  EXPECT_EQ(close.next(Seconds{1}, true, true), Action::kSayGoodbye);
  EXPECT_EQ(close.next(Seconds{1}, true, false), Action::kWait);
  EXPECT_EQ(close.next(Seconds{1}, true, true), Action::kShutDown);
}

TEST(CloseSequence, WaitsForNothingBeyondItsTime) {
  CloseSequence close;
  close.begin(Seconds{10});
  EXPECT_EQ(close.next(Seconds{10}, false, false), Action::kEndOperations);
  EXPECT_EQ(close.next(Seconds{11.9}, true, false), Action::kWait);
  EXPECT_EQ(close.next(Seconds{12}, true, false), Action::kSayGoodbye);
  EXPECT_EQ(close.next(Seconds{12}, true, false), Action::kShutDown);
}

TEST(CloseSequence, KeepsTheDeadlineOfTheFirstBegin) {
  CloseSequence close;
  close.begin(Seconds{1});
  close.begin(Seconds{10});
  EXPECT_EQ(close.next(Seconds{1}, false, false), Action::kEndOperations);
}

}  // namespace
}  // namespace regatta::comm
