#include "regatta/model/topo/cluster.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::topo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Cluster> racks(int servers, const std::string& type = "gb200-nvl72",
                      const std::string& types = "", int per_leaf = 72) {
  return parse_cluster("name: racks\n" + types +
                           "fabric: {tiers: [leaf, spine], rails: 4, spines: 4, uplink: 400Gbps, "
                           "servers_per_leaf: " +
                           std::to_string(per_leaf) + "}\nservers: {count: " +
                           std::to_string(servers) + ", type: " + type + "}\n",
                       "racks.yaml");
}

std::string with_domain(const std::string& domain) {
  return "server_types:\n  rack: {preset: gb200-nvl72, scale_up: {" + domain + "}}\n";
}

std::string refusal(const Result<Cluster>& cluster) {
  return cluster ? "" : cluster.error().message;
}

TEST(ScaleUpDomains, AreFilledOneAfterTheOther) {
  const auto cluster = racks(6, "rack", with_domain("servers: 3"), 3);
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_THAT(scale_up_domains(*cluster), ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(ScaleUpDomains, AreTheServersWhereNothingJoinsThem) {
  const auto cluster = racks(3, "gb200-tray");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_THAT(scale_up_domains(*cluster), ElementsAre(0, 1, 2));
}

TEST(ScaleUpDomains, OfAPresetAreAsLargeAsTheServersUseThem) {
  const auto size = [](int servers, int per_leaf) {
    const auto cluster = racks(servers, "gb200-nvl72", "", per_leaf);
    EXPECT_TRUE(cluster) << cluster.error().message;
    return cluster ? cluster->type_of(ServerId{0}).scale_up.servers : 0;
  };
  EXPECT_EQ(size(72, 72), 18);
  EXPECT_EQ(size(64, 64), 16) << "four racks, 16 trays of each";
  EXPECT_EQ(size(2, 2), 2) << "a part of one rack";
  EXPECT_THAT(refusal(racks(19)), HasSubstr("name 18 of them, or set scale_up.servers"));
}

TEST(ScaleUpDomains, AreWhatTheKeysSay) {
  const auto cluster = racks(8, "rack",
                             with_domain("servers: 4, bandwidth: 450GB/s, latency: 5us, "
                                         "in_network_reduction: false"),
                             8);
  ASSERT_TRUE(cluster) << cluster.error().message;
  const ScaleUp& domain = cluster->type_of(ServerId{0}).scale_up;
  EXPECT_EQ(domain.servers, 4);
  EXPECT_DOUBLE_EQ(domain.bandwidth.value, 450e9);
  EXPECT_DOUBLE_EQ(domain.latency.value, 5e-6);
  EXPECT_FALSE(domain.in_network_reduction);
}

TEST(ScaleUpDomains, AreRefusedByTheirKeyWhereTheyCannotBe) {
  EXPECT_EQ(refusal(racks(8, "rack", with_domain("servers: 18"), 8)),
            "racks.yaml:3: server_types.rack.scale_up.servers: a domain of 18 servers is larger "
            "than the 8 of type rack; set servers: 8");
  EXPECT_THAT(refusal(racks(10, "rack", with_domain("servers: 4"), 8)),
              HasSubstr("domains of 4 do not divide the 10 servers of type rack; set servers: 2, "
                        "or name 8 of them"));
  EXPECT_THAT(refusal(racks(36, "gb200-nvl72", "", 27)),
              HasSubstr("fabric.servers_per_leaf: 27 divides domains of 18 servers between leaves; "
                        "set a multiple of 18"));
  EXPECT_THAT(refusal(racks(4, "rack",
                            "server_types:\n  rack: {preset: l20-8, nics: {count: 4, rate: "
                            "200Gbps}, scale_up: {servers: 2}}\n",
                            4)),
              HasSubstr("only nvlink joins devices of several servers; set intra.kind: nvlink"));
}

TEST(UsedServersOfDomain, AreTheMostThatDivideTheJob) {
  const ScaleUp rack{.servers = 18};
  EXPECT_EQ(used_servers_of_domain(rack, 72), 18);
  EXPECT_EQ(used_servers_of_domain(rack, 64), 16);
  EXPECT_EQ(used_servers_of_domain(rack, 16), 16);
  EXPECT_EQ(used_servers_of_domain(rack, 1), 1);
  EXPECT_EQ(used_servers_of_domain({}, 64), 1);
}

}  // namespace
}  // namespace regatta::topo
