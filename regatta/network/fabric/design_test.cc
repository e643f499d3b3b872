#include "regatta/network/fabric/design.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/model/topo/fabric_summary.h"
#include "regatta/network/fabric/deadlock.h"

namespace regatta::fabric {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): tests
using testing::HasSubstr;

DesignRequest request_of(int gpus) {
  return {.gpus = gpus, .chip = 51'200_Gbps, .port = 400_Gbps};
}

Design design_of(const DesignRequest& request) {
  const auto design = design_fabric(request);
  if (!design) ADD_FAILURE() << design.error().message;
  return design ? *design : Design{};
}

Design published(const std::string& name, int gpus) {
  DesignRequest request = published_design(name);
  request.gpus = gpus;
  return design_of(request);
}

std::string complaint(const DesignRequest& request) {
  const auto design = design_fabric(request);
  return design ? "none" : design.error().message;
}

// Ports that a switch has in use, at the rates of their cables.
BytesPerSecond used(const topo::Graph& graph, std::size_t node) {
  BytesPerSecond sum;
  for (const LinkId link : graph.links_of[node])
    sum += graph.links[link.index()].rate;
  return sum;
}

// Compares the figures of a design with the graph of its cluster file.
void expect_holds(const Design& design) {
  const std::string text = cluster_text(design, "d", "h100-sxm");
  const auto cluster = topo::parse_cluster(text, "d.yaml");
  ASSERT_TRUE(cluster) << cluster.error().message << "\n" << text;
  const topo::Graph graph = build_graph(*cluster);
  const topo::FabricSummary summary = summarize_fabric(*cluster, graph);
  EXPECT_EQ(summary.devices, design.request.gpus) << text;
  EXPECT_EQ(summary.leaves, design.leaves);
  EXPECT_EQ(summary.spines, design.spines);
  EXPECT_EQ(summary.super_spines, design.super_spines);
  EXPECT_EQ(summary.groups, design.groups);
  EXPECT_EQ(summary.server_links, design.server_cables);
  EXPECT_EQ(summary.leaf_uplinks, design.leaf_cables);
  EXPECT_EQ(summary.spine_uplinks, design.spine_cables);
  constexpr double kRounding = 1e-9;
  EXPECT_LE(summary.leaf_oversubscription, design.request.oversubscription + kRounding);
  EXPECT_LE(summary.spine_oversubscription, design.request.spine_oversubscription + kRounding);
  std::map<topo::NodeKind, BytesPerSecond> most;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    most[graph.nodes[node].kind] = std::max(most[graph.nodes[node].kind], used(graph, node));
  most.erase(topo::NodeKind::kServer);
  for (const auto& [kind, rate] : most)
    EXPECT_LE(rate, design.request.chip) << text;
  // All free ports fit, and one more does not.
  const auto expect_free = [&](topo::NodeKind kind, int free, BytesPerSecond rate) {
    if (!most.contains(kind)) return;
    EXPECT_LE(most[kind] + rate * free, design.request.chip) << text;
    EXPECT_GT(most[kind] + rate * (free + 1), design.request.chip) << text;
  };
  expect_free(topo::NodeKind::kLeaf, design.leaf_free, design.request.port);
  expect_free(topo::NodeKind::kSpine, design.spine_free, design.request.uplink);
  expect_free(topo::NodeKind::kSuperSpine, design.super_free, design.request.uplink);
  // Every server reaches every other in each plane: the last one is as far as any.
  const ServerId last{design.servers - 1};
  for (int nic = 0; nic < cluster->fabric.rails; ++nic)
    EXPECT_TRUE(topo::hop_count(graph, ServerId{0}, nic, last, nic)) << text;
}

// Racks of 18 servers of four GPUs: 144 servers fit on a leaf of 102.4 Tbps beside their uplinks.
TEST(DesignFabric, KeepsDomainsBelowOneLeaf) {
  const DesignRequest racks{.gpus = 4608,
                            .gpus_per_server = 4,
                            .domain_servers = 18,
                            .rails = 4,
                            .chip = 102'400_Gbps,
                            .port = 400_Gbps};
  const Design design = design_of(racks);
  EXPECT_EQ(design.fabric.servers_per_leaf % 18, 0);
  EXPECT_EQ(design.servers, 1152);
  const auto cluster = topo::parse_cluster(cluster_text(design, "d", "gb200"), "d.yaml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->type_of(ServerId{0}).scale_up.servers, 18);
  EXPECT_EQ(cluster_of(design, "d", "gb200").type_of(ServerId{0}).scale_up.bandwidth.value, 900e9);
  const topo::FabricSummary summary = summarize_fabric(*cluster, build_graph(*cluster));
  EXPECT_EQ(summary.domains, 64);
  EXPECT_EQ(summary.domain_devices, 72);
}

TEST(DesignFabric, RefusesDomainsThatCannotBe) {
  DesignRequest racks = request_of(512);
  racks.domain_servers = 18;
  EXPECT_THAT(complaint(racks), HasSubstr("do not divide the 64 servers; take 16"));
  racks.domain_servers = 16;
  racks.servers_per_leaf = 24;
  EXPECT_THAT(complaint(racks), HasSubstr("divide domains of 16 servers; take 16"));
  racks.servers_per_leaf = 0;
  racks.gpus = 4096;
  racks.domain_servers = 256;
  EXPECT_THAT(complaint(racks), HasSubstr("a domain of 256 servers does not fit below a leaf"));
}

TEST(DesignFabric, IsOneSwitchForAsManyNicsAsItHasPorts) {
  const Design design = design_of(request_of(128));
  EXPECT_EQ(design.fabric.tiers, 1);
  EXPECT_EQ(design.leaves, 1);
  EXPECT_EQ(design.leaf_free, 0);
  EXPECT_EQ(design.gpus_most, 128);
  expect_holds(design);
  const Design small = design_of(request_of(8));
  EXPECT_EQ(small.leaf_free, 120);
  expect_holds(small);
}

// Half of the radix down, half up; a spine for each 128 uplinks of the leaves.
TEST(DesignFabric, IsTwoTiersUpToHalfTheSquareOfTheRadix) {
  const Design design = design_of(request_of(1024));
  EXPECT_EQ(design.fabric.tiers, 2);
  EXPECT_EQ(design.leaves, 16);
  EXPECT_EQ(design.spines, 8);
  EXPECT_EQ(design.fabric.uplink_cables, 8);
  EXPECT_EQ(design.leaf_cables, 1024);
  expect_holds(design);
  const Design largest = design_of(request_of(8192));
  EXPECT_EQ(largest.fabric.tiers, 2);
  EXPECT_EQ(largest.leaves, 128);
  EXPECT_EQ(largest.spines, 64);
  EXPECT_EQ(largest.gpus_most, 8192);
  EXPECT_EQ(design_of(request_of(8200)).fabric.tiers, 3);
}

TEST(DesignFabric, IsThreeTiersAbove) {
  const Design design = design_of(request_of(65536));
  EXPECT_EQ(design.fabric.tiers, 3);
  EXPECT_EQ(design.leaves, 1024);
  EXPECT_EQ(design.groups, 16);
  EXPECT_EQ(design.spines, 1024);
  EXPECT_EQ(design.super_spines, 512);
  EXPECT_EQ(design.super_free, 0);
  expect_holds(design);
}

TEST(DesignFabric, NeedsFewerUplinksWhereTheyAreOversubscribed) {
  DesignRequest request = request_of(8192);
  request.oversubscription = 3;
  const Design design = design_of(request);
  // 96 NICs and 32 uplinks: 11 blocks of 94 servers or less, 88 leaves.
  EXPECT_EQ(design.blocks, 11);
  EXPECT_EQ(design.fabric.tiers, 2);
  EXPECT_EQ(design.spines, 32);
  expect_holds(design);
}

// Baidu AIPod: three tiers without oversubscription, 8 leaves for the 8 GPUs of each server, at
// most 512 GPUs of a block of leaves, more than 16,000 GPUs.
TEST(DesignFabric, HasTheBlocksOfAipod) {
  const Design design = published("aipod", 16384);
  EXPECT_EQ(design.fabric.tiers, 3);
  EXPECT_EQ(design.fabric.rails, 8);
  EXPECT_EQ(design.request.gpus / design.blocks, 512);
  EXPECT_GT(design.gpus_most, 16000);
  expect_holds(design);
  const auto cluster = cluster_of(design, "a", "h100-sxm");
  const topo::FabricSummary summary = summarize_fabric(cluster, build_graph(cluster));
  EXPECT_EQ(summary.leaf_oversubscription, 1);
  EXPECT_EQ(summary.spine_oversubscription, 1);
  EXPECT_EQ(summary.distances.back().hops, 6);
}

// Alibaba HPN 7.0 (SIGCOMM 2024): two tiers; 15 segments of 1,024 GPUs; 16 leaves of a segment; 60
// spines of each of two planes, with 120 of 128 ports to leaves and 8 for the core.
TEST(DesignFabric, HasTheSegmentsAndPlanesOfHpn) {
  const Design design = published("dual-plane", 15360);
  EXPECT_EQ(design.fabric.tiers, 2);
  EXPECT_EQ(design.blocks, 15);
  EXPECT_EQ(design.leaves, 15 * 16);
  EXPECT_EQ(design.spines, 2 * 60);
  EXPECT_EQ(design.spine_free, 8);
  EXPECT_EQ(design.leaf_free, 8);
  EXPECT_EQ(design.server_cables, 2 * 15360);
  expect_holds(design);
}

// Wang et al.: no spine joins rails; 128 blocks of 512 GPUs in two tiers.
TEST(DesignFabric, KeepsRailsApartWhereServersForward) {
  const Design one = published("rail-only", 1024);
  EXPECT_EQ(one.fabric.tiers, 1);
  EXPECT_EQ(one.leaves, 8);
  expect_holds(one);
  const Design design = published("rail-only", 65536);
  EXPECT_EQ(design.fabric.tiers, 2);
  EXPECT_EQ(design.leaves, 1024);
  EXPECT_EQ(design.spines, 512);
  EXPECT_EQ(design.gpus_most, 65536);
  expect_holds(design);
}

// ByteDance MegaScale: 25.6 Tbps chips without oversubscription, 64 servers below a set of leaves;
// more than 10,000 GPUs in three tiers.
TEST(DesignFabric, HasTheLeafSetsOfMegascale) {
  const Design design = published("megascale", 12288);
  EXPECT_EQ(design.fabric.tiers, 3);
  EXPECT_EQ(design.fabric.servers_per_leaf, 64);
  EXPECT_EQ(uplinks_of_leaf(design.fabric), 32);
  expect_holds(design);
}

TEST(DesignFabric, RefusesWhatCannotBeAndNamesTheNearest) {
  const auto with = [](auto change) {
    DesignRequest request = request_of(1024);
    change(request);
    return complaint(request);
  };
  EXPECT_EQ(complaint(request_of(13)), "gpus 13 are no whole servers of 8; take 16");
  EXPECT_EQ(complaint(request_of(0)), "gpus 0 are no whole servers of 8; take 8");
  EXPECT_EQ(with([](DesignRequest& r) { r.rails = 3; }),
            "rails 3 do not divide the 8 GPUs of a server; take 2");
  EXPECT_EQ(with([](DesignRequest& r) { r.planes = 9; }),
            "planes 9: the NICs of a server have 64 ports at most; take 8");
  EXPECT_EQ(with([](DesignRequest& r) { r.port = 80'000_Gbps; }),
            "port 80 Tbps does not fit a switch of 51.2 Tbps; take ports of 3.20 Tbps, or a chip "
            "of 1280 Tbps");
  // Uplinks of so much fit no leaf, for they are one at least.
  EXPECT_EQ(with([](DesignRequest& r) { r.uplink = 60'000_Gbps; }),
            "uplink 60 Tbps does not fit a switch of 51.2 Tbps; take uplinks of 3.20 Tbps");
  EXPECT_EQ(with([](DesignRequest& r) { r.oversubscription = 0.5; }),
            "oversubscription 0.5 is not from 1 to 1000; take 1");
  EXPECT_EQ(with([](DesignRequest& r) { r.servers_per_leaf = 65; }),
            "65 servers do not fit on a leaf of 51.2 Tbps beside their uplinks; take at most 64");
  EXPECT_EQ(with([](DesignRequest& r) { r.port = 7_Gbps; }),
            "port 7 Gbps: a switch of 51.2 Tbps would have 7314 ports, and no switch has more than "
            "1024; take 50 Gbps or more, or a slower chip");
  EXPECT_EQ(with([](DesignRequest& r) { r.chip = 400_Gbps; }),
            "a switch of 400 Gbps has no room for the NIC of 400 Gbps that each server has on a "
            "leaf, and an uplink of 400 Gbps; take ports of 25 Gbps, or a chip of 6.40 Tbps");
  // 16 ports: leaves of 8 servers, groups of one block, 16 groups.
  EXPECT_EQ(with([](DesignRequest& r) {
              r.chip = 6'400_Gbps;
              r.gpus = 1032;
            }),
            "gpus 1032: three tiers of switches of 6.40 Tbps with 400 Gbps uplinks carry 1024 at "
            "most; take so many, or a faster chip");
  DesignRequest largest = request_of(1024);
  largest.chip = 6'400_Gbps;
  expect_holds(design_of(largest));
}

// Random sizes, chips and shapes: counts as in the graph, no switch over its capacity, and one leaf
// of each rail fewer would not do.
TEST(DesignFabric, IsWhatItsClusterFileSays) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  std::map<int, int> tiers;
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    DesignRequest request;
    request.gpus_per_server = one_of({1, 2, 4, 8});
    request.rails = request.gpus_per_server / one_of({1, 1, 2});
    if (request.rails == 0) request.rails = 1;
    request.gpus = request.gpus_per_server * static_cast<int>(1 + random() % 400);
    request.planes = one_of({1, 1, 1, 2});
    request.joins_rails = random() % 4 != 0;
    request.chip = 100_Gbps * one_of({8, 12, 16, 32, 64, 100});
    request.port = 100_Gbps * one_of({1, 1, 2});
    request.uplink = 100_Gbps * one_of({1, 1, 2, 4});
    request.oversubscription = one_of({1, 1, 2, 3});
    request.spine_oversubscription = one_of({1, 1, 2});
    request.least_tiers = one_of({1, 1, 2, 3});
    const auto design = design_fabric(request);
    if (!design) {
      ++refused;
      EXPECT_THAT(design.error().message, testing::HasSubstr("take "));
      continue;
    }
    expect_holds(*design);
    ++tiers[design->fabric.tiers];
    EXPECT_GE(design->gpus_most, request.gpus);
    // A block fewer: the same servers on the leaves that are left.
    if (design->blocks == 1) continue;
    const int more = (design->servers + design->blocks - 2) / (design->blocks - 1);
    DesignRequest fewer = request;
    fewer.servers_per_leaf = more;
    const auto other = design_fabric(fewer);
    EXPECT_FALSE(other && other->blocks < design->blocks) << request.gpus;
  }
  EXPECT_GT(tiers[1], 10);
  EXPECT_GT(tiers[2], 40);
  EXPECT_GT(tiers[3], 40);
  EXPECT_GT(refused, 5);
}

// The designer also makes the largest size that the shape can grow to.
TEST(DesignFabric, GrowsToWhatTheShapeCarries) {
  for (const int gpus : {128, 1024, 4096, 16384}) {
    const Design design = design_of(request_of(gpus));
    DesignRequest grown = design.request;
    grown.gpus = static_cast<int>(design.gpus_most);
    if (design.fabric.tiers > 1) grown.servers_per_leaf = design.fabric.servers_per_leaf;
    if (grown.gpus > 65536) continue;
    const Design largest = design_of(grown);
    EXPECT_EQ(largest.fabric.tiers, design.fabric.tiers);
    EXPECT_EQ(largest.fabric.spines, design.fabric.spines);
    EXPECT_EQ(largest.fabric.uplink_cables, design.fabric.uplink_cables);
  }
}

TEST(CableMap, UsesEachPortOnce) {
  const auto cluster = cluster_of(published("aipod", 1024), "a", "h100-sxm");
  const topo::Graph graph = build_graph(cluster);
  std::set<std::string> plugs;
  std::set<std::string> labels;
  std::size_t cables = 0;
  for_each_cable(graph, [&](const CableEntry& cable) {
    ++cables;
    for (const CableEnd& cable_end : {cable.low, cable.high})
      EXPECT_TRUE(plugs.insert(fmt::format("{}:{}", cable_end.device, cable_end.port)).second);
    EXPECT_TRUE(labels.insert(std::string(cable.label)).second);
  });
  EXPECT_EQ(cables, graph.links.size());
  EXPECT_EQ(plugs.size(), 2 * cables);
}

TEST(CableMap, NumbersPortsOfSwitchesFromBelow) {
  const auto cluster = cluster_of(design_of(request_of(256)), "a", "h100-sxm");
  std::vector<std::string> lines;
  for_each_cable(build_graph(cluster),
                 [&](const CableEntry& cable) { lines.push_back(cable_line(cable)); });
  EXPECT_EQ(lines.front(), "s0,nic0,leaf0,1,400Gbps,server-leaf,s0.nic0-leaf0\n");
  // 32 servers below each of 8 leaves; 32 uplinks to 2 spines.
  EXPECT_EQ(lines[256], "leaf0,33,spine0,1,400Gbps,leaf-spine,leaf0-spine0\n");
  EXPECT_EQ(lines[257], "leaf0,34,spine0,2,400Gbps,leaf-spine,leaf0-spine0.1\n");
}

}  // namespace
}  // namespace regatta::fabric
