#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

using testing::DoubleEq;

// 4 servers below a leaf, 3 leaves in a group; 4 uplinks of a leaf, 8 of a group.
topo::Cluster cluster_of(int servers) {
  return TestFabric::three_tiers_of(servers, 4, 3, 8, {1e9});
}

std::vector<ServerId> servers_of(const std::vector<int>& numbers) {
  std::vector<ServerId> servers;
  for (const int number : numbers)
    servers.push_back({number});
  return servers;
}

TEST(ScoreServers, CountsPairsAndHopsByWhatTheyCross) {
  const topo::Cluster cluster = cluster_of(24);
  // Two below the first leaf, one below the second, one in the other group.
  const ServerGroupScore score = score_servers(cluster, servers_of({0, 1, 4, 12}));
  EXPECT_THAT(score.same_leaf, DoubleEq(1.0 / 6));
  EXPECT_THAT(score.same_group, DoubleEq(2.0 / 6));
  EXPECT_THAT(score.across, DoubleEq(3.0 / 6));
  EXPECT_THAT(score.links, DoubleEq((2 + 2 * 4 + 3 * 6) / 6.0));
  EXPECT_EQ(score.leaf_hops, 3);
  EXPECT_EQ(score.group_hops, 2);
  EXPECT_EQ(score.collisions, 0) << "each leaf and group is left once";
  EXPECT_EQ(score_servers(cluster, servers_of({3})).same_leaf, 1);
}

TEST(ScoreServers, ExpectsCollisionsWhereARingLeavesALeafOften) {
  const topo::Cluster cluster = cluster_of(24);
  const ServerGroupScore in_turn = score_servers(cluster, servers_of({0, 4, 1, 5}));
  const ServerGroupScore in_order = score_servers(cluster, servers_of({0, 1, 4, 5}));
  EXPECT_EQ(in_turn.leaf_hops, 4);
  EXPECT_EQ(in_order.leaf_hops, 2);
  // Two flows on four uplinks meet in a quarter of all cases, twice.
  EXPECT_THAT(in_turn.collisions, DoubleEq(2 * 2 * 0.25));
  EXPECT_EQ(in_order.collisions, 0);
  EXPECT_TRUE(is_better(in_order, in_turn));
  EXPECT_FALSE(is_better(in_turn, in_order));
  EXPECT_TRUE(is_better(score_servers(cluster, servers_of({0, 1})),
                        score_servers(cluster, servers_of({0, 4}))));
}

TEST(ScoreHops, CountsHopsByWhatTheyCross) {
  const topo::Cluster cluster = cluster_of(24);
  const auto hop = [](int from, int to) { return ServerHop{{from}, {to}}; };
  const std::vector<ServerHop> hops{hop(0, 0), hop(0, 1), hop(1, 4), hop(4, 12)};
  const HopScore score = score_hops(cluster, hops);
  EXPECT_EQ(score.hops, 4);
  EXPECT_EQ(score.in_server, 1);
  EXPECT_EQ(score.in_leaf, 1);
  EXPECT_EQ(score.in_group, 1);
  EXPECT_EQ(score.across, 1);
  EXPECT_EQ(score.near(), 3);
  EXPECT_THAT(score.links, DoubleEq((0 + 2 + 4 + 6) / 4.0));
  EXPECT_EQ(score.collisions, 0) << "each leaf and group is left once";
  EXPECT_EQ(score_hops(cluster, {}).links, 0);
}

// The score of a ring's hops equals the score of the ring.
TEST(ScoreHops, AgreesWithTheScoreOfARing) {
  const topo::Cluster cluster = cluster_of(24);
  for (const std::vector<int>& ring :
       {std::vector<int>{0, 4, 1, 5}, {0, 1, 12, 13}, {0, 12, 1, 13}}) {
    const auto servers = servers_of(ring);
    std::vector<ServerHop> hops;
    for (std::size_t i = 0; i < servers.size(); ++i)
      hops.push_back({servers[i], servers[(i + 1) % servers.size()]});
    const ServerGroupScore whole = score_servers(cluster, servers);
    const HopScore score = score_hops(cluster, hops);
    EXPECT_EQ(score.in_group + score.across, whole.leaf_hops);
    EXPECT_EQ(score.across, whole.group_hops);
    EXPECT_THAT(score.collisions, DoubleEq(whole.collisions));
  }
  const auto better = score_hops(cluster, std::vector<ServerHop>{{{0}, {1}}});
  const auto worse = score_hops(cluster, std::vector<ServerHop>{{{0}, {4}}});
  EXPECT_TRUE(is_better(better, worse));
  EXPECT_FALSE(is_better(worse, better));
}

// The expectation against flows that take links by chance.
TEST(ScoreServers, ExpectsAsManyCollisionsAsThereAre) {
  const topo::Cluster cluster = cluster_of(24);
  std::vector<int> ring;
  for (int i = 0; i < 4; ++i)
    for (int block = 0; block < 3; ++block)
      ring.push_back(4 * block + i);
  const ServerGroupScore score = score_servers(cluster, servers_of(ring));
  std::mt19937 random(5);
  constexpr int kTrials = 20'000;
  double met = 0;
  for (int trial = 0; trial < kTrials; ++trial)
    for (int block = 0; block < 3; ++block) {
      std::vector<int> on(4, 0);
      for (int flow = 0; flow < 4; ++flow)
        ++on[random() % 4];
      for (const int flows : on)
        met += flows > 1 ? flows : 0;
    }
  EXPECT_NEAR(score.collisions, met / kTrials, 0.02 * score.collisions);
}

TEST(ChooseServers, TakesTheLeafThatFitsBestThenAGroup) {
  const topo::Cluster cluster = cluster_of(36);
  // Free: 3 of leaf 0; 2 of leaf 1; all 4 of leaf 3; 2 of leaf 4, 1 of leaf 5; all of leaf 8.
  const auto free = servers_of({0, 1, 3, 4, 7, 12, 13, 14, 15, 17, 19, 22, 32, 33, 34, 35});
  const auto choose = [&](std::size_t count) { return choose_servers(cluster, free, count); };
  EXPECT_EQ(choose(2), servers_of({4, 7})) << "and no hole torn into a larger one";
  EXPECT_EQ(choose(3), servers_of({0, 1, 3}));
  EXPECT_EQ(choose(4), servers_of({32, 33, 34, 35})) << "of a group that has no more";
  EXPECT_EQ(choose(5), servers_of({12, 13, 14, 15, 22})) << "four of them below one leaf";
  EXPECT_EQ(choose(7), servers_of({12, 13, 14, 15, 17, 19, 22}));
  EXPECT_EQ(choose(9).size(), 9U);
  EXPECT_EQ(score_servers(cluster, choose(9)).group_hops, 2);
  EXPECT_THAT(choose(17), testing::IsEmpty());
  EXPECT_THAT(choose(0), testing::IsEmpty());
}

// No set of servers on a small fabric lies better, but for a few per cent of links.
TEST(ChooseServers, IsHardlyEverBeatenByAnyOtherChoice) {
  constexpr unsigned kSeed = 2;
  std::mt19937 random(kSeed);
  double worst = 0;
  int equal = 0;
  constexpr int kTrials = 200;
  for (int trial = 0; trial < kTrials; ++trial) {
    const topo::Cluster cluster = cluster_of(36);
    std::vector<int> numbers(36);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::ranges::shuffle(numbers, random);
    numbers.resize(14);
    std::ranges::sort(numbers);
    const auto free = servers_of(numbers);
    const std::size_t count = 2 + random() % 6;
    const auto chosen = choose_servers(cluster, free, count);
    EXPECT_EQ(std::set(chosen.begin(), chosen.end()).size(), count);
    std::vector<bool> is_taken(free.size(), false);
    std::fill(is_taken.begin(), is_taken.begin() + static_cast<long>(count), true);
    double best = 6;
    do {
      std::vector<ServerId> some;
      for (std::size_t i = 0; i < free.size(); ++i)
        if (is_taken[i]) some.push_back(free[i]);
      best = std::min(best, score_servers(cluster, some).links);
    } while (std::prev_permutation(is_taken.begin(), is_taken.end()));
    const double links = score_servers(cluster, chosen).links;
    worst = std::max(worst, links / best);
    equal += links <= best + 1e-9 ? 1 : 0;
  }
  EXPECT_GE(equal, kTrials * 99 / 100);
  EXPECT_LE(worst, 1.05);
}

// The use case: the ring of a job on a fabric that other jobs use, too.
TEST(ChooseServers, MakesARingFasterThanTheFirstFreeServers) {
  topo::Cluster cluster = cluster_of(96);
  cluster.fabric.spines = 2;  // 2:1
  cluster.fabric.super_spines = 4;
  const topo::Graph graph = build_graph(cluster);
  const Routes routes(graph);
  const auto seeds = topo::hash_seeds(cluster, graph);
  const auto most_on_a_link = [&](const std::vector<ServerId>& ring) {
    NicPairs pairs;
    for (std::size_t i = 0; i < ring.size(); ++i)
      pairs.add(nic_link(graph, ring[i], 0), nic_link(graph, ring[(i + 1) % ring.size()], 0));
    std::map<std::uint32_t, int> flows;
    int most = 0;
    for (std::uint32_t i = 0; i < pairs.pairs.size(); ++i) {
      const auto path = routes.path(pairs.pairs[i].from, pairs.pairs[i].to,
                                    EcmpNextHop{.flow = pairs.tuple(i, 0), .seeds = seeds});
      for (const std::uint32_t link : path.value())
        most = std::max(most, ++flows[link]);
    }
    return most;
  };
  std::mt19937 random(1);
  double first = 0;
  double best = 0;
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int> numbers(96);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::ranges::shuffle(numbers, random);
    numbers.resize(48);  // in the order in which they came free
    const auto free = servers_of(numbers);
    first += most_on_a_link({free.begin(), free.begin() + 8});
    best += most_on_a_link(choose_servers(cluster, free, 8));
  }
  EXPECT_LT(best / 50, 1.3);
  EXPECT_GT(first / best, 1.5) << first / 50 << " " << best / 50;
}

}  // namespace
}  // namespace regatta::fabric
