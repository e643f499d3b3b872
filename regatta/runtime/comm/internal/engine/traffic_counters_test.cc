#include "regatta/runtime/comm/internal/engine/traffic_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using testing::ElementsAre;

TEST(TrafficCounters, CountNetworkAndSharedMemoryForEachPeer) {
  TrafficCounters traffic(3);
  traffic.add_network(1, 100);
  traffic.add_network(1, 20);
  traffic.add_shared(2, 7);
  EXPECT_THAT(traffic.snapshot().network_bytes, ElementsAre(0, 120, 0));
  EXPECT_THAT(traffic.snapshot().shared_bytes, ElementsAre(0, 0, 7));
  EXPECT_EQ(traffic.network(2), 0);
  EXPECT_EQ(traffic.total(2), 7);
}

TEST(TrafficCounters, StartFromZeroAfterARestart) {
  TrafficCounters traffic(2);
  traffic.add_network(0, 5);
  traffic.add_shared(1, 5);
  traffic.restart();
  EXPECT_EQ(traffic.total(0) + traffic.total(1), 0);
}

}  // namespace
}  // namespace regatta::comm
