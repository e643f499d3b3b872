#include "regatta/runtime/comm/internal/shm/peer_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/comm/internal/shm/test_shm_ranks.h"

namespace regatta::comm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PeerCounters, AreReachedWhenEveryRankHasCountedThatFar) {
  const TestShmRanks ranks(3);
  const CounterTarget target{PeerCounter::kFilled, 5};
  for (int rank = 0; rank < 3; ++rank)
    ranks.region(rank).filled.rounds = 5;
  EXPECT_TRUE(have_reached(ranks.peers(0), target));
  EXPECT_THAT(ranks_below(ranks.peers(0), target), IsEmpty());
  ranks.region(1).filled.rounds = 4;
  EXPECT_FALSE(have_reached(ranks.peers(0), target));
  EXPECT_THAT(ranks_below(ranks.peers(2), target), ElementsAre(1));
}

TEST(PeerCounters, OfOneKindSayNothingAboutAnother) {
  const TestShmRanks ranks(1);
  ranks.region(0).filled.rounds = 5;
  EXPECT_TRUE(have_reached(ranks.peers(0), {PeerCounter::kFilled, 5}));
  EXPECT_FALSE(have_reached(ranks.peers(0), {PeerCounter::kCombined, 5}));
  EXPECT_FALSE(have_reached(ranks.peers(0), {PeerCounter::kPosts, 5}));
}

TEST(AnnouncedReport, SaysWhichCallAPeerHasEntered) {
  const TestShmRanks ranks(2);
  ranks.announce(1, 6, 77, 4096);
  const MemberReport entered = announced_report(ranks.peers(0), 1, 6);
  EXPECT_EQ(entered.state, MemberState::kEntered);
  EXPECT_TRUE(entered.knows_call);
  EXPECT_EQ(entered.call, 77U);
  EXPECT_EQ(entered.bytes, 4096U);
  EXPECT_EQ(announced_report(ranks.peers(0), 1, 7).state, MemberState::kNotCalled);
}

TEST(AnnouncedReport, DoesNotKnowACallWhoseEntryWasUsedAgain) {
  const TestShmRanks ranks(2);
  ranks.announce(1, 6 + kSlots, 77, 4096);
  const MemberReport report = announced_report(ranks.peers(0), 1, 6);
  EXPECT_EQ(report.state, MemberState::kCompleted);
  EXPECT_FALSE(report.knows_call);
}

}  // namespace
}  // namespace regatta::comm
