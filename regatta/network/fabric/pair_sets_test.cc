#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

topo::Cluster cluster_of(int servers, int nics) {
  topo::Cluster cluster = TestFabric::cluster_of(servers, 2, {1e9});
  cluster.server_types["one"].nic_count = nics;
  return cluster;
}

std::vector<std::string> names_of(const topo::Graph& graph, const NicPairs& pairs) {
  std::vector<std::string> names;
  for (const NicPair& pair : pairs.pairs)
    names.push_back(nic_name(graph, pair.from) + ">" + nic_name(graph, pair.to));
  return names;
}

TEST(RingPairs, GoRoundOnEachNic) {
  const topo::Cluster cluster = cluster_of(3, 2);
  const topo::Graph graph = build_graph(cluster);
  const NicPairs pairs = ring_pairs(cluster, graph, 4);
  EXPECT_THAT(names_of(graph, pairs),
              testing::ElementsAre("s0.nic0>s1.nic0", "s0.nic1>s1.nic1", "s1.nic0>s2.nic0",
                                   "s1.nic1>s2.nic1", "s2.nic0>s0.nic0", "s2.nic1>s0.nic1"));
  EXPECT_EQ(pairs.ports.size(), 24U);
  EXPECT_TRUE(ring_pairs(cluster_of(1, 1), build_graph(cluster_of(1, 1)), 1).pairs.empty());
}

TEST(PermutationPairs, SendAndReceiveOnceEachAndNeverToThemselves) {
  const topo::Cluster cluster = cluster_of(20, 2);
  const topo::Graph graph = build_graph(cluster);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const NicPairs pairs = permutation_pairs(cluster, graph, 1, seed);
    std::set<LinkId> to;
    for (const NicPair& pair : pairs.pairs) {
      EXPECT_NE(pair.from, pair.to);
      to.insert(pair.to);
    }
    EXPECT_EQ(pairs.pairs.size(), 40U);
    EXPECT_EQ(to.size(), 40U);
  }
  EXPECT_NE(names_of(graph, permutation_pairs(cluster, graph, 1, 1)),
            names_of(graph, permutation_pairs(cluster, graph, 1, 2)));
}

TEST(ParsePairs, ReadsNicsByTheirNames) {
  const topo::Cluster cluster = cluster_of(4, 2);
  const topo::Graph graph = build_graph(cluster);
  const auto pairs =
      parse_pairs(cluster, graph, 2, "# two\ns0.nic1\ts3.nic0\r\n\ns2.nic0 s1.nic0 # x", "p.txt");
  ASSERT_TRUE(pairs) << pairs.error().message;
  EXPECT_THAT(names_of(graph, *pairs), testing::ElementsAre("s0.nic1>s3.nic0", "s2.nic0>s1.nic0"));
  EXPECT_EQ(pairs->connections, 2U);
  const topo::Cluster one = cluster_of(2, 1);
  EXPECT_TRUE(parse_pairs(one, build_graph(one), 1, "s0 s1", "p.txt"));
}

TEST(ParsePairs, NamesLineAndRemedyOfWhatIsWrong) {
  const topo::Cluster cluster = cluster_of(4, 2);
  const topo::Graph graph = build_graph(cluster);
  const auto complaint = [&](const char* text) {
    const auto pairs = parse_pairs(cluster, graph, 1, text, "p.txt");
    return pairs ? "none" : pairs.error().message;
  };
  EXPECT_EQ(complaint(""), "p.txt: no pair in it; write one a line like: s0.nic0 s1.nic0");
  EXPECT_EQ(complaint("\ns0.nic0"), "p.txt:2: a pair has two NICs; write it like: s0.nic0 s1.nic0");
  EXPECT_EQ(complaint("s0.nic0 s9.nic0"),
            "p.txt:1: the cluster has no server 's9'; its servers are s0 to s3");
  EXPECT_EQ(complaint("s0.nic2 s1.nic0"),
            "p.txt:1: 's0.nic2' is no NIC; s0 has s0.nic0 to s0.nic1");
  EXPECT_EQ(complaint("s0 s1.nic0"), "p.txt:1: 's0' is no NIC; s0 has s0.nic0 to s0.nic1");
  EXPECT_EQ(complaint("s0.nic0 s0.nic0"),
            "p.txt:1: s0.nic0 is given as both ends; name another NIC");
}

}  // namespace
}  // namespace regatta::fabric
