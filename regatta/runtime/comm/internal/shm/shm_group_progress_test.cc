#include "regatta/runtime/comm/internal/shm/shm_group_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/comm/internal/shm/test_shm_ranks.h"

namespace regatta::comm {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kCall = 77;

TEST(ShmGroupProgress, IsIdleUntilAnOperationIsSubmittedAndAfterItsEnd) {
  const TestShmRanks ranks(2);
  ShmGroupProgress progress(ranks.peers(0), 9);
  EXPECT_TRUE(progress.is_idle());
  progress.count_submitted();
  EXPECT_FALSE(progress.is_idle());
  progress.count_ended();
  EXPECT_TRUE(progress.is_idle());
}

TEST(ShmGroupProgress, NamesTheRanksThatTheBlockedOperationWaitsFor) {
  const TestShmRanks ranks(3);
  ShmGroupProgress progress(ranks.peers(0), 9);
  ranks.announce(0, 3, kCall, 64);
  ranks.announce(2, 3, kCall, 64);
  progress.block(3, kCall, 64, {PeerCounter::kPosts, 3});
  EXPECT_THAT(progress.waited_for(), ElementsAre(1));
  const StalledCall stalled = progress.stalled_call();
  EXPECT_EQ(stalled.communicator, 9U);
  EXPECT_EQ(stalled.sequence, 3U);
  EXPECT_EQ(stalled.call, kCall);
  ASSERT_EQ(stalled.seen.size(), 2U);
  EXPECT_EQ(stalled.seen[0].state, MemberState::kNotCalled);
  EXPECT_EQ(stalled.seen[1].state, MemberState::kEntered);
}

TEST(ShmGroupProgress, HasNoStalledCallOnceTheOperationHasLeftItsEntry) {
  const TestShmRanks ranks(2);
  ShmGroupProgress progress(ranks.peers(0), 9);
  progress.block(3, kCall, 64, {PeerCounter::kPosts, 3});
  ranks.announce(0, 3 + kSlots, kCall, 64);
  EXPECT_EQ(progress.stalled_call().sequence, 0U);
}

TEST(ShmGroupProgress, ReportsThisRanksStateWithRespectToAnOperation) {
  const TestShmRanks ranks(2);
  ShmGroupProgress progress(ranks.peers(0), 9);
  EXPECT_EQ(progress.member_report(1).state, MemberState::kNotCalled);
  progress.count_submitted();
  ranks.announce(0, 1, kCall, 64);
  EXPECT_EQ(progress.member_report(1).state, MemberState::kEntered);
  EXPECT_EQ(progress.member_report(2).state, MemberState::kBehind);
  progress.count_ended();
  EXPECT_EQ(progress.member_report(1).state, MemberState::kCompleted);
}

}  // namespace
}  // namespace regatta::comm
