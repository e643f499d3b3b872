#include "regatta/network/simulate/internal/coll_traffic.h"

#include <map>
#include <numeric>

#include <gmock/gmock.h>

#include "regatta/model/collective/algorithms.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/simulate/internal/flow_problem.h"
#include "regatta/network/simulate/test_cluster.h"

namespace regatta::simulate {
namespace {

std::vector<std::uint32_t> all_ranks(const SimulatedNetwork& network) {
  std::vector<std::uint32_t> ranks(network.devices.size());
  std::iota(ranks.begin(), ranks.end(), 0U);
  return ranks;
}

double end_of(const ScenarioWorkload& workload) {
  const auto problem = build_flow_problem(Scenario{}, workload);
  EXPECT_TRUE(problem) << problem.error().message;
  const auto report = fabric::simulate_flows(problem->links, problem->paths, problem->traffic);
  EXPECT_TRUE(report) << report.error().message;
  return report ? report->end.value : 0;
}

double bytes_of(const ScenarioWorkload& workload) {
  double sum = 0;
  for (const fabric::FlowGraph::Flow& flow : workload.traffic.flows())
    sum += flow.bytes;
  return sum;
}

// The simulator's own ring, which keeps no schedules, is that of coll.
TEST(CollTraffic, OfARingEndsWhenTheSimulatorsOwnRingDoes) {
  const SimulatedNetwork network(test_cluster(8, 1));
  std::vector<collective::CollectiveSchedule> schedules(8);
  const auto at = [](unsigned bit) {
    return reinterpret_cast<std::byte*>(std::uintptr_t{1} << bit);
  };
  for (int rank = 0; rank < 8; ++rank)
    collective::ring_all_reduce(
        schedules[static_cast<std::size_t>(rank)], {rank, 8},
        {.in = at(44), .out = at(45), .count = 1 << 24, .element_bytes = 4});
  ScenarioWorkload workload(network, 1);
  ASSERT_TRUE(add_schedules(workload, schedules, all_ranks(network)));
  Scenario scenario;
  scenario.traffic.push_back(
      {.name = "ring", .pattern = TrafficPattern::kRing, .bytes = {64 << 20}});
  auto own = build_workload(scenario, network);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_DOUBLE_EQ(bytes_of(workload), bytes_of(*own));
  // coll cuts chunks into pieces that follow each other, and hides the latency of most.
  EXPECT_NEAR(end_of(workload), end_of(*own), 0.1 * end_of(*own));
}

TEST(CollTraffic, SendsWhatEachAlgorithmSaysItSends) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const std::vector<std::uint32_t> ranks = all_ranks(network);
  const Bytes bytes{1 << 20};
  const auto sent = [&](TrafficPattern pattern) {
    ScenarioWorkload workload(network, 1);
    const Status status = add_collective(workload, pattern, ranks, bytes);
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_GT(end_of(workload), 0);
    return bytes_of(workload) / static_cast<double>(bytes.value);
  };
  EXPECT_NEAR(sent(TrafficPattern::kHalvingDoubling), 8 * 2 * 7.0 / 8, 1e-3);
  EXPECT_NEAR(sent(TrafficPattern::kTree), 2 * 7, 1e-3);  // up and down each of the edges
  EXPECT_NEAR(sent(TrafficPattern::kHierarchical), 8 * (2 * 0.5 + 2 * 0.75 / 2), 1e-3);
  EXPECT_NEAR(sent(TrafficPattern::kPairwise), 8 * 7.0 / 8, 1e-3);
  EXPECT_NEAR(sent(TrafficPattern::kRail), 8 * (0.5 + 0.75), 1e-3);
}

TEST(CollTraffic, OfRailsCrossesTheNetworkOnTheRailOfTheReceiverAlone) {
  const SimulatedNetwork network(test_cluster(4, 2));
  ScenarioWorkload workload(network, 1);
  ASSERT_TRUE(add_collective(workload, TrafficPattern::kRail, all_ranks(network), {1 << 20}));
  for (const EndpointPair& pair : workload.ranks_of) {
    const topo::DeviceRef from = network.devices[pair.from];
    const topo::DeviceRef to = network.devices[pair.to];
    EXPECT_TRUE(from.server == to.server || from.index == to.index);
  }
}

TEST(CollTraffic, OfAHierarchyIsRefusedWhereCollWouldTakeARing) {
  const SimulatedNetwork network(test_cluster(4, 2));
  ScenarioWorkload workload(network, 1);
  const Status status = add_collective(workload, TrafficPattern::kHierarchical,
                                       std::vector<std::uint32_t>{0, 1, 2}, {1 << 20});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::HasSubstr("write ring_all_reduce"));
}

}  // namespace
}  // namespace regatta::simulate
