#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): 800_Gbps reads as the change
using testing::HasSubstr;

topo::Cluster rail_cluster() {
  topo::Cluster cluster{.name = "rails"};
  cluster.server_types["gpu"] = *topo::find_server_preset("dgx-h100");
  cluster.servers = {{.name = "s0", .type = "gpu"}, {.name = "s1", .type = "gpu"}};
  cluster.fabric = {.tiers = 1, .rails = 8, .servers_per_leaf = 2};
  return cluster;
}

std::string error_of(const std::string& change) {
  const auto cluster = changed_cluster(rail_cluster(), change);
  return cluster ? "" : cluster.error().message;
}

TEST(ChangedCluster, ChangesOneThing) {
  EXPECT_EQ(changed_cluster(rail_cluster(), "nic_rate=800Gbps")->server_types["gpu"].nic_rate,
            800_Gbps);
  EXPECT_EQ(changed_cluster(rail_cluster(), "uplink=200Gbps")->fabric.uplink, 200_Gbps);
  EXPECT_EQ(changed_cluster(rail_cluster(), "nics=16")->server_types["gpu"].nic_count, 16);
  EXPECT_EQ(changed_cluster(rail_cluster(), "servers=5")->servers.size(), 5u);
  EXPECT_EQ(changed_cluster(rail_cluster(), "server=h20-8")->type_of(ServerId{1}).name, "h20-8");
}

TEST(ChangedCluster, RejectsWhatAClusterCannotHave) {
  EXPECT_THAT(error_of("nics"), HasSubstr("nics: write it like nic_rate=800Gbps"));
  EXPECT_THAT(error_of("nics=3"), HasSubstr("the 8 rails of cluster rails do not divide 3 NICs"));
  EXPECT_THAT(error_of("servers=0"), HasSubstr("write a whole number from 1 to"));
  EXPECT_THAT(error_of("nicrate=8Gbps"), HasSubstr("did you mean nic_rate?"));
  EXPECT_THAT(error_of("server=dgx"), HasSubstr("choose one of dgx-v100"));
}

}  // namespace
}  // namespace regatta::plan
