#include "regatta/fabric/rank_ports.h"

#include <map>

#include <gmock/gmock.h>

#include "regatta/fabric/test_fabric.h"
#include "regatta/topo/addresses.h"

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
  }
  TestFabric fabric;
  std::vector<std::uint32_t> seeds;
  std::vector<RankPlace> ranks;
};

TEST(RankPorts, LeadTheConnectionsOfTheRingApart) {
  const Job job;
  const auto planned =
      plan_rank_ports(job.fabric.graph, job.fabric.routes, job.seeds, job.ranks, 1);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->most_in_ring, 1U);
  std::map<std::uint32_t, int> on_link;
  for (std::size_t from = 0; from < 8; ++from) {
    const std::size_t to = (from + 1) % 8;
    const FiveTuple flow{.from = job.ranks[from].address,
                         .to = job.ranks[to].address,
                         .from_port = planned->between(from, to)[0],
                         .to_port = job.ranks[to].port,
                         .protocol = 6};
    const auto way = job.fabric.routes.way(*topo::link_of(flow.from), *topo::link_of(flow.to),
                                           ByHash{flow, job.seeds});
    ASSERT_TRUE(way);
    for (const std::uint32_t link : *way)
      EXPECT_EQ(++on_link[link], 1);
  }
}

TEST(RankPorts, AreTheSameOnEveryRank) {
  const Job job;
  const auto first = plan_rank_ports(job.fabric.graph, job.fabric.routes, job.seeds, job.ranks, 4);
  const auto again = plan_rank_ports(job.fabric.graph, job.fabric.routes, job.seeds, job.ranks, 4);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->ports, again->ports);
  EXPECT_EQ(first->between(2, 5).size(), 4U);
  EXPECT_THAT(first->between(2, 2), testing::Each(0));
}

TEST(RankPorts, RefuseAnAddressThatIsNoNic) {
  Job job;
  job.ranks[3].address = 0x7f000001;
  const auto planned =
      plan_rank_ports(job.fabric.graph, job.fabric.routes, job.seeds, job.ranks, 1);
  ASSERT_FALSE(planned);
  EXPECT_THAT(planned.error().message, testing::HasSubstr("127.0.0.1 is the address of no NIC"));
}

}  // namespace
}  // namespace regatta::fabric
