#include <array>
#include <map>
#include <numeric>

#include <gmock/gmock.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::fabric {
namespace {

// Eight servers below two leaves with four spines; ranks alternate between the leaves.
struct Job {
  Job() : fabric(8, 4, {1e9}) {
    for (std::uint32_t node = 0; node < fabric.graph.nodes.size(); ++node)
      seeds.push_back(node + 1);
    for (std::size_t rank = 0; rank < 8; ++rank)
      ranks.push_back({topo::address_of(fabric.nics[rank / 2 + rank % 2 * 4]),
                       static_cast<std::uint16_t>(40000 + rank)});
    std::array<std::size_t, 8> order{};
    std::iota(order.begin(), order.end(), std::size_t{0});
    sets.push_back(ring_of(order));
  }

  Result<RankPorts> plan(std::uint32_t connections) const {
    return plan_rank_ports(fabric.graph, fabric.routes, seeds, ranks, connections, sets);
  }
  // How many of these meet on the fullest link, by the switches' own hash: of each pair the first
  // `count` connections.
  int most_together(const RankPorts& planned, const RankPairs& pairs, std::size_t count) const {
    std::map<std::uint32_t, int> on_link;
    int most = 0;
    for (const auto& [from, to] : pairs) {
      for (const std::uint16_t port : planned.between(from, to).first(count)) {
        const FiveTuple flow{.from = ranks[from].address,
                             .to = ranks[to].address,
                             .from_port = port,
                             .to_port = ranks[to].port,
                             .protocol = 6};
        const auto path = fabric.routes.path(*topo::link_of(flow.from), *topo::link_of(flow.to),
                                             EcmpNextHop{flow, seeds});
        for (const std::uint32_t link : *path)
          if (fabric.graph.links[link / 2].a_nic < 0) most = std::max(most, ++on_link[link]);
      }
    }
    return most;
  }
  TestFabric fabric;
  std::vector<std::uint32_t> seeds;
  std::vector<RankEndpoint> ranks;
  std::vector<RankPairs> sets;
};

TEST(RankPorts, LeadTheConnectionsOfTheRingApart) {
  const Job job;
  const auto planned = job.plan(1);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->most, std::vector<std::uint32_t>{1});
  EXPECT_EQ(planned->flows, std::vector<std::uint32_t>{8});
  EXPECT_EQ(job.most_together(*planned, job.sets[0], 1), 1);
}

// A message takes as many connections as it is large.
TEST(RankPorts, AreEvenHoweverManyOfTheConnectionsAreUsed) {
  const Job job;
  const auto planned = job.plan(8);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->paths, 4U);
  for (std::size_t used = 1; used <= 8; ++used)
    EXPECT_EQ(job.most_together(*planned, job.sets[0], used), static_cast<int>(used));
}

// Also when one pair sends alone.
TEST(RankPorts, SpreadThoseOfEachPairOverAllWays) {
  const Job job;
  const auto planned = job.plan(8);
  ASSERT_TRUE(planned);
  for (const RankPair& pair : job.sets[0])
    EXPECT_LE(job.most_together(*planned, {pair}, 8), 3) << pair.from << " to " << pair.to;
}

// Two rings of four, as of the replicas of two pipeline stages, beside sends between the stages.
TEST(RankPorts, LeadEachSetApart) {
  Job job;
  const std::array<std::size_t, 4> first{0, 1, 2, 3};
  const std::array<std::size_t, 4> second{4, 5, 6, 7};
  RankPairs rings = ring_of(first);
  for (const RankPair& pair : ring_of(second))
    rings.push_back(pair);
  const RankPairs sends{{0, 5}, {1, 4}, {2, 7}, {3, 6}, {0, 1}};
  job.sets = {rings, sends};
  const auto planned = job.plan(1);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->most, (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(planned->flows, (std::vector<std::uint32_t>{8, 4})) << "a pair is in its first set";
  EXPECT_EQ(job.most_together(*planned, rings, 1), 1);
  EXPECT_EQ(job.most_together(*planned, {sends.begin(), sends.begin() + 4}, 1), 1);
}

TEST(RankPorts, AreTheSameOnEveryRank) {
  const Job job;
  const auto first = job.plan(4);
  const auto again = job.plan(4);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->ports, again->ports);
  EXPECT_EQ(first->between(2, 5).size(), 4U);
  EXPECT_THAT(first->between(2, 2), testing::Each(0));
}

// Ranks 0 and 2 are in servers of one leaf: one path is there, whatever the port.
TEST(RankPorts, AreAnyBelowOneLeaf) {
  const Job job;
  const auto planned = job.plan(2);
  ASSERT_TRUE(planned);
  EXPECT_THAT(planned->between(0, 2), testing::Each(0));
  EXPECT_THAT(planned->between(0, 1), testing::Each(testing::Ge(49152)));
}

TEST(RankPorts, RefuseAnAddressThatIsNoNic) {
  Job job;
  job.ranks[3].address = 0x7f000001;
  const auto planned = job.plan(1);
  ASSERT_FALSE(planned);
  EXPECT_THAT(planned.error().message, testing::HasSubstr("127.0.0.1 is the address of no NIC"));
}

}  // namespace
}  // namespace regatta::fabric
