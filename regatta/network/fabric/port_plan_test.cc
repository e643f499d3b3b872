#include "regatta/network/fabric/port_plan.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::fabric {
namespace {

struct Planned : TestFabric {
  Planned(int leaves, int per_leaf) : TestFabric(leaves * per_leaf, per_leaf, {100}) {
    for (std::size_t node = 0; node < graph.nodes.size(); ++node)
      seeds.push_back(static_cast<std::uint32_t>(1000 + 7919 * node));
  }
  PlannedConnection connection(std::size_t from, std::size_t to) const {
    return {nics[from],
            nics[to],
            {.from = 0x0a000000 + static_cast<std::uint32_t>(from),
             .to = 0x0a000000 + static_cast<std::uint32_t>(to),
             .from_port = 0,
             .to_port = 4791}};
  }
  std::vector<std::uint32_t> path_of(const PlannedConnection& one, std::uint16_t port) const {
    FiveTuple flow = one.flow;
    flow.from_port = port;
    return routes.path(one.from, one.to, EcmpNextHop{flow, seeds}).value();
  }
  // How many there are on the fullest link between two switches, by the switches' own hash.
  int most_together(const std::vector<PlannedConnection>& all,
                    const std::vector<std::uint16_t>& ports) const {
    std::vector<int> load(links.capacity.size(), 0);
    int most = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto path = path_of(all[i], ports[i]);
      for (std::size_t hop = 1; hop + 1 < path.size(); ++hop)
        most = std::max(most, ++load[path[hop]]);
    }
    return most;
  }
  std::vector<std::uint32_t> seeds;
};

// Every server sends to one other: as many connections as links.
std::vector<PlannedConnection> permutation(const Planned& fabric, unsigned seed) {
  std::vector<std::size_t> to(fabric.nics.size());
  std::iota(to.begin(), to.end(), 0U);
  std::mt19937 random(seed);
  std::ranges::shuffle(to, random);
  std::vector<PlannedConnection> all;
  for (std::size_t from = 0; from < to.size(); ++from)
    if (to[from] != from) all.push_back(fabric.connection(from, to[from]));
  return all;
}

TEST(Ports, KeepTwoToSixteenConnectionsApartInEachOfAHundredTries) {
  const Planned fabric(2, 16);
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const std::size_t count = 2 + random() % 15;
    std::vector<PlannedConnection> all;
    for (std::size_t i = 0; i < count; ++i)
      all.push_back(fabric.connection(i, 16 + random() % 16));
    const PortPlan plan = plan_ports(fabric.routes, fabric.seeds, all);
    ASSERT_EQ(fabric.most_together(all, plan.ports), 1) << "try " << seed;
    EXPECT_EQ(plan.most, 1U);
  }
}

TEST(Ports, SpreadAPermutationOverAllLinksWithoutACollision) {
  for (const int per_leaf : {2, 8, 16, 32}) {
    const Planned fabric(per_leaf, per_leaf);
    const std::vector<PlannedConnection> all = permutation(fabric, 5);
    const PortPlan plan = plan_ports(fabric.routes, fabric.seeds, all);
    EXPECT_EQ(fabric.most_together(all, plan.ports), 1) << per_leaf;
    if (per_leaf >= 8) {
      EXPECT_GT(plan.most_by_chance, 2U);
    }
  }
}

// The gain in time: with 32 links, the fullest has 3.5 connections by chance (balls in bins; by
// both directions, 4 or more).
TEST(Ports, MakeAPermutationAsFastAsTheNics) {
  Planned fabric(32, 32);
  const std::vector<PlannedConnection> all = permutation(fabric, 6);
  const PortPlan plan = plan_ports(fabric.routes, fabric.seeds, all);
  const auto took = [&](auto&& port_of) {
    FlowGraph traffic;
    for (std::size_t i = 0; i < all.size(); ++i)
      traffic.add(fabric.paths.add(fabric.path_of(all[i], port_of(i))), {100});
    return simulate_flows(fabric.links, fabric.paths, traffic)->end.value;
  };
  EXPECT_NEAR(took([&](std::size_t i) { return plan.ports[i]; }), 1, 1e-4);
  EXPECT_GT(took([](std::size_t i) { return static_cast<std::uint16_t>(49152 + i); }), 3);
}

TEST(Ports, DivideMoreConnectionsThanLinksEvenly) {
  const Planned fabric(2, 4);
  std::vector<PlannedConnection> all;
  for (std::size_t i = 0; i < 10; ++i)
    all.push_back(fabric.connection(i % 4, 4 + i % 3));
  const PortPlan plan = plan_ports(fabric.routes, fabric.seeds, all);
  EXPECT_EQ(fabric.most_together(all, plan.ports), 3);  // 10 on 4 links
}

TEST(Ports, AreDifferentBetweenTheSameTwoPlaces) {
  const Planned fabric(2, 4);
  const std::vector<PlannedConnection> all(8, fabric.connection(0, 5));
  const PortPlan plan = plan_ports(fabric.routes, fabric.seeds, all);
  EXPECT_EQ(std::set(plan.ports.begin(), plan.ports.end()).size(), 8U);
  EXPECT_EQ(fabric.most_together(all, plan.ports), 2);
}

TEST(Ports, BelowOneLeafAreTheFirstOfTheRange) {
  const Planned fabric(2, 4);
  const std::vector<PlannedConnection> all = {fabric.connection(0, 1), fabric.connection(2, 2)};
  const PortPlan plan =
      plan_ports(fabric.routes, fabric.seeds, all, {.range = {.first = 100, .last = 200}});
  EXPECT_EQ(plan.ports, (std::vector<std::uint16_t>{100, 100}));
  EXPECT_EQ(plan.most, 0U);
}

// Later turns are spread over the load of earlier ones, so that the first turn alone is even too.
TEST(Ports, SpreadTheFirstTurnAsEvenlyAsAllTogether) {
  const Planned fabric(2, 4);
  for (std::uint32_t senders = 1; senders <= 4; ++senders) {
    std::vector<PlannedConnection> all;
    for (std::uint32_t turn = 0; turn < 4; ++turn) {
      for (std::size_t i = 0; i < senders; ++i) {
        all.push_back(fabric.connection(i, 4 + i));
        all.back().turn = turn;
      }
    }
    const PortPlan plan = plan_ports(fabric.routes, fabric.seeds, all);
    for (std::uint32_t turns = 1; turns <= 4; ++turns) {
      const auto first = static_cast<std::ptrdiff_t>(turns * senders);
      EXPECT_EQ(fabric.most_together({all.begin(), all.begin() + first},
                                     {plan.ports.begin(), plan.ports.begin() + first}),
                static_cast<int>((turns * senders + 3) / 4))
          << senders << " in each of " << turns << " turns";
    }
  }
}

TEST(Ports, CountConnectionsThatDoNotSendTogetherApart) {
  const Planned fabric(2, 4);
  std::vector<PlannedConnection> all;
  for (std::size_t i = 0; i < 8; ++i) {
    all.push_back(fabric.connection(i % 4, 4 + (i + 1) % 4));
    all.back().set = static_cast<std::uint32_t>(i / 4);
  }
  const PortPlan plan = plan_ports(fabric.routes, fabric.seeds, all);
  EXPECT_EQ(plan.most, 1U);
  EXPECT_EQ(plan.most_of_set, (std::vector<std::uint32_t>{1, 1}));
  for (const std::ptrdiff_t set : {0, 4})
    EXPECT_EQ(fabric.most_together({all.begin() + set, all.begin() + set + 4},
                                   {plan.ports.begin() + set, plan.ports.begin() + set + 4}),
              1);
  EXPECT_EQ(fabric.most_together(all, plan.ports), 2);
}

// One port leads only one path.
TEST(Ports, DoWhatTheRangeAllows) {
  const Planned fabric(2, 4);
  const std::vector<PlannedConnection> all = {fabric.connection(0, 5), fabric.connection(1, 6)};
  const PortPlan plan =
      plan_ports(fabric.routes, fabric.seeds, all, {.range = {.first = 100, .last = 100}});
  EXPECT_EQ(plan.ports, (std::vector<std::uint16_t>{100, 100}));
  EXPECT_EQ(plan.most, static_cast<unsigned>(fabric.most_together(all, plan.ports)));
}

TEST(Ports, AreTheSameForTheSameSeed) {
  const Planned fabric(8, 8);
  const std::vector<PlannedConnection> all = permutation(fabric, 9);
  EXPECT_EQ(plan_ports(fabric.routes, fabric.seeds, all).ports,
            plan_ports(fabric.routes, fabric.seeds, all).ports);
}

}  // namespace
}  // namespace regatta::fabric
