#include "regatta/gpu/sharing/internal/client/work_in_flight.h"

#include <gtest/gtest.h>

#include "regatta/gpu/sharing/internal/client/stream_lanes.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kUs = 1'000;

TEST(WorkInFlight, EndsWhenItsCostHasPassedSinceTheFirstLaunch) {
  WorkInFlight work;
  work.begin_period(1000 * kUs);
  EXPECT_EQ(work.launch(10 * kUs), 0U);
  EXPECT_EQ(work.launch(20 * kUs), 10 * kUs);
  EXPECT_FALSE(work.has_completed_any());
  EXPECT_EQ(work.expected_end(1000 * kUs), 1030 * kUs);
}

TEST(WorkInFlight, EndsAsMuchLaterAsTheFirstCompletionWasLate) {
  WorkInFlight work;
  work.begin_period(1000 * kUs);
  work.launch(30 * kUs);
  work.complete(
      {.cost_ns = 10 * kUs, .used_ns = 10 * kUs, .launched_ns = 1000 * kUs, .ended_ns = 1015 * kUs},
      1015 * kUs);
  EXPECT_TRUE(work.has_completed_any());
  EXPECT_EQ(work.in_flight_ns(), 20 * kUs);
  EXPECT_EQ(work.used_ns(), 10 * kUs);
  EXPECT_EQ(work.expected_end(1000 * kUs), 1035 * kUs);
  work.begin_period(2000 * kUs);
  EXPECT_FALSE(work.has_completed_any());
}

TEST(WorkInFlight, IsAsBeforeWhenALaunchIsCancelled) {
  WorkInFlight work;
  work.launch(10 * kUs);
  work.cancel(10 * kUs);
  EXPECT_EQ(work.in_flight_ns(), 0U);
}

TEST(StreamLanes, ShareTheRoomAmongTheStreamsOfThisTurnAndTheLast) {
  StreamLanes lanes;
  int streams[2];
  lanes.begin_turn();
  lanes.mark_used(lanes.of(&streams[0]));
  EXPECT_EQ(lanes.room(100), StreamLanes::kUnlimited);
  StreamLane* other = nullptr;
  for (std::uintptr_t address = 64; other == nullptr; address += 64) {
    StreamLane& lane = lanes.of(reinterpret_cast<void*>(address));
    if (&lane != &lanes.of(&streams[0])) other = &lane;
  }
  lanes.mark_used(*other);
  EXPECT_EQ(lanes.room(100), 51U);
  lanes.begin_turn();
  EXPECT_EQ(lanes.room(100), 51U);
  lanes.begin_turn();
  EXPECT_EQ(lanes.room(100), StreamLanes::kUnlimited);
}

TEST(StreamLanes, GiveUpTheWorkThatHasNoEventBehindIt) {
  StreamLanes lanes;
  int stream = 0;
  lanes.of(&stream).unrecorded_ns = 7;
  std::uint64_t sum = 0;
  lanes.consume_unrecorded([&](std::uint64_t cost) { sum += cost; });
  EXPECT_EQ(sum, 7U);
  EXPECT_EQ(lanes.of(&stream).in_flight_ns(), 0U);
}

}  // namespace
}  // namespace regatta::sharing
