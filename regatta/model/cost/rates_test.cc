#include "regatta/model/cost/rates.h"

#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace regatta::cost {
namespace {

using namespace regatta::literals;

// Four servers of two CPU devices, two leaves, two spines.
topo::Cluster two_leaves() {
  topo::Cluster cluster;
  topo::ServerType type;
  type.name = "cpu-2";
  type.device.name = "cpu";
  type.device.kind = topo::DeviceKind::kCpu;
  type.device.fp32_peak = 100_GFLOPS;
  type.device.memory = 1_GiB;
  type.device.cpu_share = 0.15;
  type.device_count = 2;
  type.intra = {topo::IntraKind::kShm, 5_GBps, 1.0_us};
  type.nic_count = 1;
  type.nic_rate = 200_Mbps;
  cluster.server_types["cpu-2"] = type;
  for (int i = 0; i < 4; ++i)
    cluster.servers.push_back({"s" + std::to_string(i), "cpu-2", ""});
  cluster.fabric.tiers = 2;
  cluster.fabric.servers_per_leaf = 2;
  cluster.fabric.spines = 2;
  cluster.fabric.uplink = 50_Mbps;
  cluster.fabric.hop_latency = 10.0_us;
  return cluster;
}

TEST(PathClassOf, FollowsServerLeafAndGroup) {
  const topo::Cluster cluster = two_leaves();
  const topo::DeviceRef a{ServerId{0}, 0};
  EXPECT_EQ(path_class(cluster, a, {ServerId{0}, 1}), PathClass::kSameServer);
  EXPECT_EQ(path_class(cluster, a, {ServerId{1}, 1}), PathClass::kSameLeaf);
  EXPECT_EQ(path_class(cluster, a, {ServerId{3}, 0}), PathClass::kSameGroup);
  EXPECT_EQ(representative_pairs(cluster).size(), 3U);
}

// The search for them ends once there can be no more, and misses none.
TEST(RepresentativePairs, HaveEveryClassThatTwoDevicesHave) {
  for (int servers = 1; servers <= 6; ++servers) {
    for (const int per_leaf : {1, 2, 3}) {
      for (const int devices : {1, 2}) {
        for (const int groups : {0, 2, 4}) {
          topo::Cluster cluster = two_leaves();
          cluster.server_types["cpu-2"].device_count = devices;
          cluster.server_types["cpu-2"].nic_count = devices;
          cluster.fabric.rails = devices;
          cluster.fabric.servers_per_leaf = per_leaf;
          cluster.fabric.tiers = groups > 0 ? 3 : 2;
          cluster.fabric.leaves_per_group = groups;
          cluster.servers.resize(static_cast<std::size_t>(servers), cluster.servers.front());
          std::set<PathClass> classes;
          for (const topo::DeviceRef a : topo::all_devices(cluster))
            for (const topo::DeviceRef b : topo::all_devices(cluster))
              if (a != b) classes.insert(path_class(cluster, a, b));
          std::set<PathClass> found;
          for (const ClassPair& pair : representative_pairs(cluster))
            found.insert(pair.path);
          EXPECT_EQ(found, classes)
              << servers << " " << per_leaf << " " << devices << " " << groups;
        }
      }
    }
  }
}

TEST(PathClassOf, CountsRailsAsSeparateLeavesAndGroupsByLeaf) {
  topo::Cluster cluster = two_leaves();
  cluster.server_types["cpu-2"].nic_count = 2;
  cluster.fabric.rails = 2;
  EXPECT_EQ(path_class(cluster, {ServerId{0}, 0}, {ServerId{1}, 0}), PathClass::kSameLeaf);
  EXPECT_EQ(path_class(cluster, {ServerId{0}, 0}, {ServerId{1}, 1}), PathClass::kSameGroup);
  cluster.fabric.tiers = 3;
  cluster.fabric.super_spines = 2;
  cluster.fabric.leaves_per_group = 2;  // both rails of one pair of servers
  EXPECT_EQ(path_class(cluster, {ServerId{0}, 0}, {ServerId{1}, 1}), PathClass::kSameGroup);
  EXPECT_EQ(path_class(cluster, {ServerId{0}, 0}, {ServerId{2}, 0}), PathClass::kSuperSpine);
}

TEST(DescribedBandwidth, AddsTheUplinksThatShareOneFlow) {
  const topo::Cluster cluster = two_leaves();
  const topo::Graph graph = topo::build_graph(cluster);
  const topo::DeviceRef a{ServerId{0}, 0};
  EXPECT_EQ(described_bandwidth(cluster, graph, a, {ServerId{1}, 0})->value, (200_Mbps).value);
  EXPECT_EQ(described_bandwidth(cluster, graph, a, {ServerId{2}, 0})->value, (100_Mbps).value);
  EXPECT_EQ(described_bandwidth(cluster, graph, a, {ServerId{0}, 1})->value, 5e9);
}

TEST(DescribedRates, StayBelowThePeakAndRiseWithTheShape) {
  const topo::Cluster cluster = two_leaves();
  const Rates rates = described_rates(cluster);
  EXPECT_EQ(rates.source, "described");
  const DeviceRates& device = rates.devices.at("cpu");
  ASSERT_FALSE(device.matmul.empty());
  for (std::size_t i = 1; i < device.matmul.size(); ++i)
    EXPECT_GE(device.matmul[i].rate.value, device.matmul[i - 1].rate.value);
  EXPECT_LT(device.matmul.back().rate.value, 0.15 * 100e9);
  ASSERT_EQ(rates.paths.size(), 3U);
  for (const PathRates& path : rates.paths)
    EXPECT_LT(path.bandwidth.value, path.described.value);
}

TEST(ChangedSince, TellsWhatTheDescriptionSaidWhenTheRatesWereMeasured) {
  const topo::Cluster then = two_leaves();
  const Rates measured = described_rates(then);
  EXPECT_EQ(changed_since(measured, then), "");

  topo::Cluster now = then;
  now.server_types["cpu-2"].device.cpu_share = 0.3;
  EXPECT_EQ(changed_since(measured, now),
            "device cpu was described as 15 GFLOPS, now as 30 GFLOPS");
  now = then;
  now.server_types["cpu-2"].nic_rate = 100_Mbps;
  EXPECT_EQ(changed_since(measured, now),
            "path same_leaf was described as 200 Mbps, now as 100 Mbps");
  now = then;
  now.servers.resize(2);  // fewer servers of the same kind have the same rates
  EXPECT_EQ(changed_since(measured, now), "");
}

TEST(PointwiseBandwidth, FallsBackToTheCommonOneWhereTheOperatorIsNotKnown) {
  DeviceRates rates;
  rates.pointwise_bandwidth = {5e9};
  rates.pointwise = {{PointwiseOp::kGelu, workload::Precision::kFp32, {2e9}}};
  EXPECT_EQ(pointwise_bandwidth(rates, PointwiseOp::kGelu, workload::Precision::kFp32).value, 2e9);
  EXPECT_EQ(pointwise_bandwidth(rates, PointwiseOp::kGelu, workload::Precision::kBf16).value, 5e9);
  EXPECT_EQ(pointwise_bandwidth(rates, PointwiseOp::kAdd, workload::Precision::kFp32).value, 5e9);
}

TEST(PointwiseBytes, CountsEveryOperandOnce) {
  using workload::Precision;
  EXPECT_EQ(pointwise_bytes(PointwiseOp::kGelu, 100, Precision::kFp32), 800);
  EXPECT_EQ(pointwise_bytes(PointwiseOp::kGelu, 100, Precision::kBf16), 400);
  EXPECT_EQ(pointwise_bytes(PointwiseOp::kAdd, 100, Precision::kFp32), 1200);
  EXPECT_EQ(pointwise_bytes(PointwiseOp::kBiasGradient, 100, Precision::kFp32), 400);
  EXPECT_EQ(pointwise_bytes(PointwiseOp::kAdam, 100, Precision::kBf16), 3200);
}

TEST(PointwiseOp, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const PointwiseOp op : kPointwiseOps)
    names.insert(to_string(op));
  EXPECT_EQ(names.size(), std::size(kPointwiseOps));
  EXPECT_EQ(names.count("unknown"), 0U);
}

}  // namespace
}  // namespace regatta::cost
