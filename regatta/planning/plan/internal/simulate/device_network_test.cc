#include "regatta/planning/plan/internal/simulate/device_network.h"

#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/planning/plan/test_plans.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;

// No cluster file gives this fabric: two rails of one tier do not reach each other.
TEST(DeviceNetwork, NamesTheNicsThatHaveNoPath) {
  topo::Cluster cluster = example_cluster();
  cluster.server_types["cpu-2"].nic_count = 2;
  cluster.fabric.tiers = 1;
  cluster.fabric.rails = 2;
  cluster.fabric.servers_per_leaf = 4;
  const auto network = DeviceNetwork::build(cluster, cost::described_rates(cluster));
  ASSERT_TRUE(network.has_value()) << network.error().message;
  const topo::DeviceRef first{ServerId{0}, 0};
  EXPECT_TRUE(network->flows({{first, {ServerId{1}, 0}}}).has_value());
  const auto flows = network->flows({{first, {ServerId{1}, 1}}});
  ASSERT_FALSE(flows.has_value());
  EXPECT_EQ(flows.error().code, Code::kNotFound);
  EXPECT_THAT(flows.error().message, HasSubstr("s0.nic0 has no path to s1.nic1"));
}

TEST(DeviceNetwork, RefusesWhatItsTableOfRoutesWouldNotHold) {
  topo::Cluster cluster = example_cluster();
  cluster.fabric.servers_per_leaf = 600;
  while (2 * cluster.servers.size() < DeviceNetwork::kMaxDevices + 2) {
    cluster.servers.push_back(cluster.servers.front());
    cluster.servers.back().name = "t" + std::to_string(cluster.servers.size());
  }
  const auto network = DeviceNetwork::build(cluster, cost::described_rates(cluster));
  ASSERT_FALSE(network.has_value());
  EXPECT_EQ(network.error().code, Code::kInvalidInput);
  EXPECT_THAT(network.error().message, HasSubstr("1026 devices are more than the 1024"));
}

TEST(DeviceNetwork, CountsALinkOnceForEveryFlowThatCrossesIt) {
  const topo::Cluster cluster = example_cluster();
  const auto network = DeviceNetwork::build(cluster, cost::described_rates(cluster));
  ASSERT_TRUE(network.has_value()) << network.error().message;
  // Both devices of s0 send through its one NIC.
  const auto one = network->flows({{{ServerId{0}, 0}, {ServerId{1}, 0}}});
  const auto two =
      network->flows({{{ServerId{0}, 0}, {ServerId{1}, 0}}, {{ServerId{0}, 1}, {ServerId{1}, 1}}});
  ASSERT_TRUE(one.has_value() && two.has_value());
  ASSERT_EQ(one->loads.size(), two->loads.size());
  for (std::size_t i = 0; i < one->loads.size(); ++i) {
    EXPECT_EQ(two->loads[i].resource, one->loads[i].resource);
    EXPECT_DOUBLE_EQ(two->loads[i].weight, 2 * one->loads[i].weight);
  }
}

}  // namespace
}  // namespace regatta::plan
