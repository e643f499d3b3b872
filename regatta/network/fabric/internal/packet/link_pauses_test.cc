#include "regatta/network/fabric/internal/packet/link_pauses.h"

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

// One link of 1 ps per byte and 100 ps; its end holds 30 bytes, and asks for a pause above 10.
struct PausedLink {
  PausedLink() {
    network.links.push_back({.rate = 1U << 20U, .latency = 100, .end = 0});
    options.pauses = PfcOptions{.xoff = {10}, .xon = {5}, .headroom = Bytes{20}};
  }
  PacketNetwork network;
  PacketOptions options;
  CalendarQueue calendar{kLinkEvents, 1000};
};

TEST(PacketLinkPauses, AskForAPauseAboveXoffAndToResumeAtXon) {
  PausedLink one;
  LinkPauses pauses(one.network, one.options, one.calendar);
  EXPECT_TRUE(pauses.reserve(0, 10, 0));
  EXPECT_FALSE(pauses.is_asked(0));
  EXPECT_TRUE(pauses.reserve(0, 1, 0));
  EXPECT_TRUE(pauses.is_asked(0));
  EXPECT_FALSE(pauses.is_paused(0));  // the frame is in flight
  EXPECT_FALSE(pauses.is_calm());
  EXPECT_EQ(one.calendar.pop(kNever - 1).at, 100);
  EXPECT_FALSE(pauses.receive_frame(0, 100));
  EXPECT_EQ(pauses.paused(), std::vector<std::uint32_t>{0});
  pauses.release(0, 5, 150);
  EXPECT_TRUE(pauses.is_asked(0));
  pauses.release(0, 1, 160);
  EXPECT_FALSE(pauses.is_asked(0));
  EXPECT_EQ(pauses.paused_for(0, 160), 60);
  EXPECT_EQ(one.calendar.pop(kNever - 1).at, 260);
  EXPECT_TRUE(pauses.receive_frame(0, 260));
  EXPECT_TRUE(pauses.is_calm());
  EXPECT_EQ(pauses.longest_pause(), 160);
  EXPECT_EQ(pauses.counts(0).pauses, 1U);
}

TEST(PacketLinkPauses, RefuseAPacketBeyondTheHeadroom) {
  PausedLink one;
  LinkPauses pauses(one.network, one.options, one.calendar);
  EXPECT_TRUE(pauses.reserve(0, 30, 0));
  EXPECT_FALSE(pauses.reserve(0, 1, 0));
}

TEST(PacketLinkPauses, LetSeveralFramesOfALinkBeInFlight) {
  PausedLink one;
  LinkPauses pauses(one.network, one.options, one.calendar);
  pauses.send_frame(0, 0);
  pauses.send_frame(0, 30);
  EXPECT_EQ(one.calendar.pop(kNever - 1).at, 100);
  EXPECT_TRUE(one.calendar.empty());
  EXPECT_FALSE(pauses.receive_frame(0, 100));
  EXPECT_EQ(one.calendar.pop(kNever - 1).at, 130);
  EXPECT_TRUE(pauses.receive_frame(0, 130));
}

TEST(PacketLinkPauses, RepeatWhatWasCounted) {
  PausedLink one;
  LinkPauses pauses(one.network, one.options, one.calendar);
  const LinkPauses::Counts before = pauses.counts(0);
  pauses.send_frame(0, 0);
  pauses.send_frame(0, 0);
  pauses.receive_frame(0, 100);
  pauses.receive_frame(0, 140);
  pauses.repeat(0, before, 3);
  EXPECT_EQ(pauses.counts(0).pauses, 4U);
  EXPECT_EQ(pauses.paused_for(0, 500), 160);
}

}  // namespace
}  // namespace regatta::fabric::packet
