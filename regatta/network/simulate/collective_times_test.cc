// How far the times of collectives at the flow level are from those of packets. Prints a table;
// REGATTA_COLLECTIVE_RANKS=64 takes more ranks than 16.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/test_cluster.h"
#include "regatta/network/simulate/test_scenario.h"

namespace regatta::simulate {
namespace {

struct ComparedCollective {
  const char* pattern;
  double least;  // flow level over packet level
  double most;
};

// Packets that pause a NIC or an uplink for one receiver hold up those for others, which flows do
// not: where many messages of halving and pairwise exchanges meet on a link, the flow level is
// faster.
constexpr ComparedCollective kCollectives[] = {{"ring_all_reduce", 0.95, 1.05},
                                               {"tree_all_reduce", 0.94, 1.05},
                                               {"hierarchical_all_reduce", 0.95, 1.05},
                                               {"halving_doubling_all_reduce", 0.90, 1.05},
                                               {"all_to_all", 0.95, 1.05},
                                               {"pairwise_all_to_all", 0.70, 1.10},
                                               {"rail_all_to_all", 0.70, 1.10}};

// Servers of one device below leaves, or of several devices, each on its own rail.
topo::Cluster cluster_of(int ranks, bool has_rails) {
  const int devices = !has_rails ? 1 : ranks < 32 ? 2 : 8;
  topo::Cluster cluster = test_cluster(ranks / devices, devices);
  if (!has_rails && ranks >= 32) {
    cluster.fabric.servers_per_leaf = 8;
    cluster.fabric.spines = 8;
  }
  return cluster;
}

double end_of(const SimulatedNetwork& network, const std::string& text) {
  const auto outcome = run_scenario(parse(text), network, {.keeps_history = false});
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? outcome->end : 0;
}

TEST(CollectiveTimes, OfTheFlowLevelAreNearThoseOfPackets) {
  const char* const most_text = std::getenv("REGATTA_COLLECTIVE_RANKS");
  const int most = most_text == nullptr ? 16 : std::atoi(most_text);
  for (const bool has_rails : {false, true})
    for (const auto& [pattern, low, high] : kCollectives) {
      const std::string name = pattern;
      if (!has_rails && name.starts_with("hierarchical")) continue;  // one device a server: a ring
      std::string row = fmt::format("{} {}:", has_rails ? "rails" : "one device", name);
      // Pairs on rails were a quarter too slow from 32 ranks on.
      const int last = name.starts_with("pairwise") ? std::max(most, 32) : most;
      for (int ranks = 4; ranks <= last; ranks *= 2) {
        const SimulatedNetwork network(cluster_of(ranks, has_rails));
        const std::string text =
            "routing: {ports: planned}\ntraffic: [{pattern: " + name + ", bytes: 64MiB}]\n";
        const double ratio = end_of(network, text) / end_of(network, text + "level: packet\n");
        row += fmt::format(" {:.3f}", ratio);
        EXPECT_GE(ratio, low) << row;
        EXPECT_LE(ratio, high) << row;
      }
      fmt::print("{}\n", row);
    }
}

}  // namespace
}  // namespace regatta::simulate
