#include "regatta/network/fabric/internal/packet/start_queue.h"

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

TEST(PacketStartQueue, ReturnsStartsByTimeAndThenByFlow) {
  StartQueue starts;
  starts.push({.at = 20, .flow = 1});
  starts.push({.at = 10, .flow = 7});
  starts.push({.at = 10, .flow = 3});
  for (const std::uint32_t flow : {3U, 7U, 1U})
    EXPECT_EQ(starts.pop().flow, flow);
  EXPECT_TRUE(starts.empty());
}

TEST(PacketStartQueue, ShiftsTimesAndFlowsOfAllStarts) {
  StartQueue starts;
  starts.push({.at = 10, .flow = 3});
  starts.push({.at = 20, .flow = 1});
  starts.shift(100, 8);
  EXPECT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts.top().at, 110);
  EXPECT_EQ(starts.pop().flow, 11U);
  EXPECT_EQ(starts.top().at, 120);
  EXPECT_EQ(starts.pop().flow, 9U);
}

}  // namespace
}  // namespace regatta::fabric::packet
