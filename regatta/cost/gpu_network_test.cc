#include "regatta/cost/gpu_network.h"

#include <gtest/gtest.h>

namespace regatta::cost {
namespace {

const ServerNetwork kServer{.devices = 8,
                            .link = BytesPerSecond{240e9},
                            .network = BytesPerSecond{160e9},
                            .latency = Seconds{50e-6}};
constexpr double kBytes = 1 << 30;

double time_of(const RankGroup& group, Collective collective) {
  return collective_time(kServer, group, collective, kBytes).value;
}

TEST(CollectiveTime, OfAnAllReduceIsThatOfItsTwoHalves) {
  for (const RankGroup group :
       {RankGroup{.ranks = 8, .inside = 8}, RankGroup{.ranks = 64, .inside = 1, .rings = 8}}) {
    const double halves =
        time_of(group, Collective::kReduceScatter) + time_of(group, Collective::kAllGather);
    const double latency = group.ranks == 8 ? 50e-6 : 50e-6 * 6;
    EXPECT_NEAR(time_of(group, Collective::kAllReduce), halves - latency, 1e-9);
  }
}

TEST(CollectiveTime, IsNeverBelowWhatTheSlowestLinkTakes) {
  const double bytes = 2 * kBytes * 63 / 64;
  EXPECT_GE(time_of({.ranks = 64, .inside = 8, .rings = 1}, Collective::kAllReduce), bytes / 160e9);
  // Eight groups share the network of a server.
  EXPECT_GE(time_of({.ranks = 64, .inside = 1, .rings = 8}, Collective::kAllReduce), bytes / 20e9);
  EXPECT_GE(time_of({.ranks = 8, .inside = 8}, Collective::kAllReduce), 2 * kBytes * 7 / 8 / 240e9);
}

TEST(CollectiveTime, OfOneRankIsNothing) {
  EXPECT_EQ(time_of({.ranks = 1}, Collective::kAllReduce), 0);
  EXPECT_EQ(hierarchical_all_reduce_time(kServer, 1, kBytes).value, 0);
}

TEST(CollectiveTime, OfAGroupOverServersIsThatInsideAndBetween) {
  const double inside = 2 * kBytes * 7 / 8 / 240e9;
  const double between = 2 * kBytes / 2 / 160e9;
  EXPECT_NEAR(hierarchical_all_reduce_time(kServer, 16, kBytes).value, inside + between + 100e-6,
              1e-9);
}

TEST(MessageTime, SharesTheNetworkOfTheServerAmongItsDevices) {
  EXPECT_NEAR(message_time(kServer, false, kBytes).value, kBytes / 20e9 + 50e-6, 1e-9);
  EXPECT_NEAR(message_time(kServer, true, kBytes).value, kBytes / 240e9 + 50e-6, 1e-9);
}

}  // namespace
}  // namespace regatta::cost
