#include "regatta/network/simulate/internal/flow_problem.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "regatta/network/simulate/test_cluster.h"
#include "regatta/network/simulate/test_scenario.h"

namespace regatta::simulate {
namespace {

topo::Cluster cluster_of(int tiers, std::mt19937& random) {
  topo::Cluster cluster = test_cluster(16, 2);
  cluster.fabric.spines = 2 + static_cast<int>(random() % 3);
  cluster.fabric.uplink_cables = 1 + static_cast<int>(random() % 2);
  cluster.fabric.tiers = tiers;
  if (tiers == 3) {
    cluster.fabric.leaves_per_group = 4;
    cluster.fabric.super_spines = cluster.fabric.spines * 2;
    cluster.fabric.super_uplink = {50e9};
  }
  return cluster;
}

// Items that overlap, among them a step with folded rings; links and switches that fail.
std::string random_text(const SimulatedNetwork& network, std::mt19937& random) {
  const auto link = [&] { return network.graph.links[random() % network.graph.links.size()].name; };
  const auto at = [&] { return std::to_string(random() % 1000) + "us"; };
  std::string text = "seed: " + std::to_string(random() % 100) +
                     "\nrouting: {policy: spray}\ntraffic:\n"
                     "  - {pattern: ring_all_reduce, bytes: 40MB, ranks: rails}\n"
                     "  - {pattern: permutation, bytes: 20MB, repeat: 2}\n"
                     "  - {pattern: step, tp: 2, pp: 2, dp: 8, micro_batches: 4, forward: 100us,\n"
                     "     backward: 200us, activations: 1MiB, gradients: 16MiB}\n"
                     "  - {pattern: message, from: s0/0, to: s9/1, bytes: 50MB, start: " +
                     at() + "}\n";
  if (random() % 2 == 0) return text;
  text += "failures:\n  - {link: " + link() + ", at: " + at() + ", local: 50us, converged: 1ms}\n";
  text +=
      "  - {link: " + link() + ", at: " + at() + ", until: 3ms, local: 50us, converged: 500us}\n";
  text += "  - {switch: spine0, at: " + at() + ", until: 2ms, local: 0us, converged: 200us}\n";
  return text;
}

fabric::FlowReport simulated(const FlowProblem& problem) {
  const std::size_t links = problem.links.capacity.size();
  fabric::LinkHistory history(links, 64, 1e-6);
  auto report = fabric::simulate_flows(problem.links, problem.paths, problem.traffic,
                                       {.changes = problem.changes, .history = &history});
  EXPECT_TRUE(report) << report.error().message;
  // The history of each link adds up to its bytes.
  for (std::uint32_t link = 0; link < links; ++link) {
    double bytes = 0;
    for (std::size_t bin = 0; bin < history.used(); ++bin)
      bytes += history.bytes(link, bin);
    EXPECT_NEAR(bytes, report->bytes_of_link[link], 1 + 1e-4 * bytes) << link;
  }
  return *report;
}

bool are_equal(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// The same times and bytes with one of the links that are alike as with all of them.
TEST(FlowProblem, OverLinksThatAreAlikeTakeAsLongFolded) {
  std::mt19937 random(5);
  std::size_t left_out = 0;
  for (int i = 0; i < 40; ++i) {
    const SimulatedNetwork network(cluster_of(2 + i % 2, random));
    const Scenario scenario = parse(random_text(network, random));
    const auto workload = build_workload(scenario, network);
    ASSERT_TRUE(workload) << workload.error().message;
    const auto whole = build_flow_problem(scenario, *workload, false);
    const auto folded = build_flow_problem(scenario, *workload, true);
    ASSERT_TRUE(whole && folded);
    EXPECT_TRUE(whole->link_representatives.empty());
    const fabric::FlowReport expected = simulated(*whole);
    const fabric::FlowReport found = simulated(*folded);
    ASSERT_EQ(found.unfinished, expected.unfinished);
    for (std::size_t flow = 0; flow < expected.flows.size(); ++flow) {
      ASSERT_TRUE(are_equal(found.flows[flow].start, expected.flows[flow].start))
          << i << " " << flow;
      ASSERT_TRUE(are_equal(found.flows[flow].arrived, expected.flows[flow].arrived))
          << i << " " << flow << " " << found.flows[flow].arrived << " "
          << expected.flows[flow].arrived;
    }
    for (std::size_t link = 0; link < expected.bytes_of_link.size(); ++link) {
      const std::uint32_t first = folded->link_representatives[link];
      left_out += first != link ? 1 : 0;
      ASSERT_NEAR(found.bytes_of_link[first], expected.bytes_of_link[link],
                  1 + 1e-9 * expected.bytes_of_link[link])
          << i << " " << network.link_name(static_cast<std::uint32_t>(link));
    }
  }
  EXPECT_GT(left_out, 500U);
}

// Hashed flows take one path of many: no two links carry the same.
TEST(FlowProblem, ThatAreHashedAreNotFolded) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const Scenario scenario = parse("traffic: [{pattern: all_to_all, bytes: 1MB}]\n");
  const auto workload = build_workload(scenario, network);
  ASSERT_TRUE(workload);
  EXPECT_TRUE(build_flow_problem(scenario, *workload)->link_representatives.empty());
}

}  // namespace
}  // namespace regatta::simulate
