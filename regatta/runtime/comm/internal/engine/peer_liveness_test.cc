#include "regatta/runtime/comm/internal/engine/peer_liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Seconds kLivenessTimeout{1.0};

TEST(PeerLiveness, FindsThePeerWithTheLongestSilenceFirst) {
  PeerLiveness peers(0, 4, kLivenessTimeout, Seconds{0});
  peers.hear(1, Seconds{0.5});
  peers.hear(2, Seconds{0.2});
  EXPECT_THAT(peers.silent(Seconds{0.9}), IsEmpty());
  EXPECT_THAT(peers.silent(Seconds{1.4}), ElementsAre(3, 2));
  EXPECT_THAT(peers.silent(Seconds{1.6}), ElementsAre(3, 2, 1));
}

TEST(PeerLiveness, ExpectsNothingOfPeersThatLeft) {
  PeerLiveness peers(0, 3, kLivenessTimeout, Seconds{0});
  EXPECT_FALSE(peers.any_departed());
  peers.mark_goodbye(1);
  peers.mark_departed(2);
  EXPECT_THAT(peers.silent(Seconds{9}), IsEmpty());
  EXPECT_TRUE(peers.any_departed());
  EXPECT_TRUE(peers.has_departed(2));
  EXPECT_FALSE(peers.has_departed(1));
  EXPECT_TRUE(peers.said_goodbye(1));
}

TEST(PeerLiveness, IgnoresTheSilenceOfATimeInWhichThisProcessStoodStill) {
  PeerLiveness peers(0, 2, kLivenessTimeout, Seconds{0});
  peers.restart_silence_timeouts(Seconds{5});
  EXPECT_THAT(peers.silent(Seconds{5.5}), IsEmpty());
  EXPECT_THAT(peers.silent(Seconds{6.5}), ElementsAre(1));
}

TEST(PeerLiveness, AsksForFiveHeartbeatsInATimeout) {
  PeerLiveness peers(1, 3, kLivenessTimeout, Seconds{0});
  EXPECT_THAT(peers.due_heartbeats(Seconds{0.1}), IsEmpty());
  EXPECT_THAT(peers.due_heartbeats(Seconds{0.2}), ElementsAre(0, 2));
  EXPECT_THAT(peers.due_heartbeats(Seconds{0.3}), IsEmpty());
  peers.mark_departed(0);
  EXPECT_THAT(peers.due_heartbeats(Seconds{0.5}), ElementsAre(2));
}

}  // namespace
}  // namespace regatta::comm
