#include "regatta/network/simulate/internal/bundles.h"

#include <cmath>
#include <map>
#include <random>

#include <gmock/gmock.h>

#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/test_cluster.h"
#include "regatta/network/simulate/test_scenario.h"

namespace regatta::simulate {
namespace {

// The times of messages, by operation, sender and receiver.
using Messages =
    std::multimap<std::tuple<std::size_t, std::uint32_t, std::uint32_t>, std::pair<double, double>>;

struct Simulated {
  SimulationResult outcome;
  Messages messages;
};

Simulated simulated(const SimulatedNetwork& network, Scenario scenario, bool aggregates) {
  for (TrafficItem& item : scenario.traffic)
    item.aggregates = item.aggregates && aggregates;
  Simulated all;
  auto outcome = run_scenario(scenario, network, {.on_message = [&](const MessageRecord& one) {
                                all.messages.emplace(std::tuple{one.operation, one.from, one.to},
                                                     std::pair{one.start, one.arrived});
                              }});
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (outcome) all.outcome = *std::move(outcome);
  return all;
}

// Servers of several devices, of which some share a NIC, on one rail or more.
topo::Cluster random_cluster(std::mt19937& random) {
  const int devices = 1 << random() % 3;
  topo::Cluster cluster = test_cluster(10 + static_cast<int>(random() % 7), devices);
  cluster.server_types["one"].nic_count = std::max(1, devices >> random() % 2);
  cluster.fabric.rails = random() % 2 == 0 ? cluster.server_types["one"].nic_count : 1;
  cluster.fabric.servers_per_leaf = 4;
  cluster.fabric.spines = 2 + static_cast<int>(random() % 3);
  if (random() % 2 == 0) return cluster;
  cluster.fabric.tiers = 3;
  cluster.fabric.leaves_per_group = 2 * cluster.fabric.rails;
  cluster.fabric.super_spines = cluster.fabric.spines * 2;
  cluster.fabric.super_uplink = {50e9};
  return cluster;
}

std::string random_text(const SimulatedNetwork& network, std::mt19937& random) {
  const auto ranks = [&]() -> std::string {
    switch (random() % 4) {
      case 0:
        return "servers";
      case 1:
        return "rails";
      case 2:
        return "[s0/0, s1/0, s2/0, s3/0, s5/0, s6/0]";
      default:
        return "all";
    }
  };
  const auto item = [&](int number, const std::string& more) {
    return "  - {pattern: all_to_all, name: a" + std::to_string(number) +
           ", bytes: " + std::to_string(1 + random() % 40) + "MB, ranks: " + ranks() + more + "}\n";
  };
  std::string text = "routing: {policy: spray}\ntraffic:\n";
  if (random() % 3 == 0) {
    text += "  - {pattern: ring_all_reduce, name: ring, bytes: 10MB, ranks: rails}\n";
    text += item(0, ", after: ring, repeat: 2");
    return text;
  }
  text += item(0, "");
  if (random() % 2 == 0) text += item(1, ", start: 100us");
  if (random() % 2 == 0) text += item(2, ", after: a0");
  if (random() % 2 == 0) return text;
  const auto link = [&] { return network.graph.links[random() % network.graph.links.size()].name; };
  text +=
      "failures:\n  - {link: " + link() + ", at: 50us, until: 2ms, local: 50us, converged: 1ms}\n";
  text += "  - {switch: leaf0, at: 300us, until: 3ms, local: 50us, converged: 500us}\n";
  if (random() % 2 == 0)
    text += "  - {link: " + link() + ", at: 100us, local: 0us, converged: 1ms}\n";
  return text;
}

bool are_equal(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

void expect_equal(const SimulatedNetwork& network, const Simulated& one, const Simulated& other) {
  EXPECT_EQ(one.outcome.messages, other.outcome.messages);
  EXPECT_EQ(one.outcome.unfinished, other.outcome.unfinished);
  EXPECT_TRUE(are_equal(one.outcome.end, other.outcome.end));
  ASSERT_EQ(one.messages.size(), other.messages.size());
  for (auto a = one.messages.begin(), b = other.messages.begin(); a != one.messages.end();
       ++a, ++b) {
    ASSERT_EQ(a->first, b->first);
    ASSERT_TRUE(are_equal(a->second.first, b->second.first));
    ASSERT_TRUE(are_equal(a->second.second, b->second.second))
        << a->second.second << " " << b->second.second;
  }
  for (std::size_t i = 0; i < one.outcome.operations.size(); ++i) {
    const OperationStats& a = one.outcome.operations[i];
    const OperationStats& b = other.outcome.operations[i];
    EXPECT_TRUE(are_equal(a.start, b.start) && are_equal(a.end, b.end));
    EXPECT_EQ(a.messages, b.messages);
    EXPECT_TRUE(are_equal(a.network_bytes, b.network_bytes));
    EXPECT_TRUE(are_equal(a.bound, b.bound)) << a.bound << " " << b.bound;
    EXPECT_TRUE(are_equal(a.busbw, b.busbw));
  }
  ASSERT_EQ(one.outcome.links.size(), other.outcome.links.size());
  for (std::size_t link = 0; link < one.outcome.links.size(); ++link) {
    const LinkStats& a = one.outcome.links[link];
    const LinkStats& b = other.outcome.links[link];
    EXPECT_NEAR(a.bytes, b.bytes, 1 + 1e-9 * a.bytes) << network.link_name(a.link);
    EXPECT_NEAR(a.peak, b.peak, 1e-4) << network.link_name(a.link);
  }
  ASSERT_EQ(one.outcome.slowest.size(), other.outcome.slowest.size());
  for (std::size_t i = 0; i < one.outcome.slowest.size(); ++i) {
    const SlowMessage& a = one.outcome.slowest[i];
    const SlowMessage& b = other.outcome.slowest[i];
    EXPECT_TRUE(are_equal((a.arrived - a.start) / a.alone, (b.arrived - b.start) / b.alone))
        << i << ": " << (a.arrived - a.start) / a.alone << " " << (b.arrived - b.start) / b.alone
        << " " << a.operation << " " << b.operation;
  }
}

TEST(Bundles, TakeAsLongAsTheirMessages) {
  std::mt19937 random(9);
  std::size_t folded = 0;
  for (int i = 0; i < 120; ++i) {
    const SimulatedNetwork network(random_cluster(random));
    const std::string text = random_text(network, random);
    SCOPED_TRACE(std::to_string(i) + " " + text);
    const Scenario scenario = parse(text);
    expect_equal(network, simulated(network, scenario, true), simulated(network, scenario, false));
    if (testing::Test::HasFailure()) return;
    const auto workload = build_workload(scenario, network);
    folded += workload && !workload->bundles.empty() ? 1 : 0;
  }
  EXPECT_GT(folded, 60U);
}

std::size_t bundles_of(const std::string& text) {
  topo::Cluster cluster = test_cluster(16, 1);
  cluster.fabric.servers_per_leaf = 8;
  const SimulatedNetwork network(cluster);
  const auto workload = build_workload(parse(text), network);
  EXPECT_TRUE(workload) << workload.error().message;
  return workload ? workload->bundles.size() : 0;
}

TEST(Bundles, AreMadeWhereNothingTellsMessagesApart) {
  const std::string all = "  - {pattern: all_to_all, name: a, bytes: 1MB}\n";
  const std::string spray = "routing: {policy: spray}\n";
  // Two leaves: from each to each.
  EXPECT_EQ(bundles_of(spray + "traffic:\n" + all), 4U);
  EXPECT_EQ(bundles_of("traffic:\n" + all), 0U);
  EXPECT_EQ(bundles_of(spray + "level: packet\ntraffic:\n" + all), 0U);
  EXPECT_EQ(bundles_of(spray + "traffic: [{pattern: all_to_all, bytes: 1MB, aggregate: false}]\n"),
            0U);
  // Another item beside it, or after it.
  const std::string message = "  - {pattern: message, from: s0/0, to: s1/0, bytes: 1MB";
  EXPECT_EQ(bundles_of(spray + "traffic:\n" + all + message + "}\n"), 0U);
  EXPECT_EQ(bundles_of(spray + "traffic:\n" + all + message + ", after: a}\n"), 4U);
  // A NIC that fails is not like the others of its leaf: three groups, and none of itself to
  // itself.
  EXPECT_EQ(bundles_of(spray + "traffic:\n" + all + "failures: [{at: 0s, link: s0.nic0-leaf0}]\n"),
            8U);
}

}  // namespace
}  // namespace regatta::simulate
