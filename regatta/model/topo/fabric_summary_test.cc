#include "regatta/model/topo/fabric_summary.h"

#include <string>

#include <gtest/gtest.h>

#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::topo {
namespace {

FabricSummary summarize(const std::string& fabric, const std::string& servers) {
  const auto cluster =
      parse_cluster("name: t\n" + fabric + "servers: {" + servers + "}\n", "t.yaml");
  if (!cluster) {
    ADD_FAILURE() << cluster.error().message;
    return {};
  }
  return summarize_fabric(*cluster, build_graph(*cluster));
}

// 8 rails at 1:1: 16 servers x 400 Gbps below a leaf, 16 x 400 Gbps above.
TEST(FabricSummary, FindsARailOptimisedFabricWithoutOversubscription) {
  const FabricSummary summary = summarize(
      "fabric: {tiers: [leaf, spine], rails: 8, servers_per_leaf: 16, spines: 16, uplink: "
      "400Gbps}\n",
      "count: 32, type: dgx-h100");
  EXPECT_EQ(summary.devices, 256);
  EXPECT_EQ(summary.leaves, 16);
  EXPECT_EQ(summary.spines, 16);
  EXPECT_EQ(summary.server_links, 256);
  EXPECT_EQ(summary.leaf_uplinks, 256);
  EXPECT_DOUBLE_EQ(summary.leaf_oversubscription, 1);
  EXPECT_DOUBLE_EQ(summary.bisection.value, 128 * 50e9);
  ASSERT_EQ(summary.distances.size(), 2U);
  EXPECT_EQ(summary.distances[0].hops, 2);
  EXPECT_EQ(summary.distances[1].hops, 4);
}

TEST(FabricSummary, CountsTheDomainsOfRacks) {
  const FabricSummary racks = summarize(
      "fabric: {tiers: [leaf, spine], rails: 4, servers_per_leaf: 36, spines: 36, uplink: "
      "400Gbps}\n",
      "count: 72, type: gb200-nvl72");
  EXPECT_EQ(racks.domains, 4);
  EXPECT_EQ(racks.domain_devices, 72);
  ASSERT_FALSE(racks.distances.empty());
  EXPECT_EQ(racks.distances[0].to, "same domain");
  EXPECT_DOUBLE_EQ(racks.distances[0].narrowest.value, 900e9);
  EXPECT_EQ(racks.distances[1].to, "same leaf");
}

TEST(FabricSummary, MeasuresOversubscriptionOfSlowUplinks) {
  const FabricSummary summary = summarize(
      "fabric: {tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 100Gbps, "
      "hop_latency: 3us}\n",
      "count: 4, type: l20-8");
  EXPECT_DOUBLE_EQ(summary.leaf_oversubscription, 4);
  EXPECT_DOUBLE_EQ(summary.bisection.value, 2 * 12.5e9);
  EXPECT_DOUBLE_EQ(summary.distances[1].latency.value, 12e-6);
  EXPECT_DOUBLE_EQ(summary.distances[1].narrowest.value, 12.5e9);
}

TEST(FabricSummary, CountsThreeTiers) {
  const FabricSummary summary = summarize(
      "fabric: {tiers: [leaf, spine, super-spine], rails: 8, servers_per_leaf: 16, "
      "leaves_per_group: 64, spines: 16, super_spines: 64, uplink: 400Gbps}\n",
      "count: 2048, type: dgx-h100");
  EXPECT_EQ(summary.devices, 16384);
  EXPECT_EQ(summary.groups, 16);
  EXPECT_EQ(summary.spines, 256);
  EXPECT_EQ(summary.spine_uplinks, 1024);
  EXPECT_DOUBLE_EQ(summary.spine_oversubscription, 16);
  ASSERT_EQ(summary.distances.size(), 3U);
  EXPECT_EQ(summary.distances[2].hops, 6);
}

TEST(FabricSummary, OfOneServerIsEmpty) {
  const FabricSummary summary = summarize("", "count: 1, type: dgx-h100");
  EXPECT_EQ(summary.tiers, 0);
  EXPECT_EQ(summary.devices, 8);
  EXPECT_TRUE(summary.distances.empty());
}

}  // namespace
}  // namespace regatta::topo
