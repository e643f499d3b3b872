#include "regatta/model/topo/cluster.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

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
  EXPECT_EQ(size(19, 20), 10) << "ten of one rack and nine of another";
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
  EXPECT_THAT(refusal(racks(36, "gb200-nvl72", "", 27)),
              HasSubstr("fabric.servers_per_leaf: 27 divides domains of 18 servers between leaves; "
                        "set a multiple of 18"));
  EXPECT_THAT(refusal(racks(4, "rack",
                            "server_types:\n  rack: {preset: l20-8, nics: {count: 4, rate: "
                            "200Gbps}, scale_up: {servers: 2}}\n",
                            4)),
              HasSubstr("only nvlink joins devices of several servers; set intra.kind: nvlink"));
}

TEST(DomainParts, AreOfTheFewestDomainsAndAsEqualAsTheyCanBe) {
  const ScaleUp rack{.servers = 18};
  const auto parts = [&](int servers) { return domain_parts(rack, servers); };
  EXPECT_EQ(parts(72), (DomainParts{.domains = 4, .servers = 18, .last = 18}));
  EXPECT_EQ(parts(64), (DomainParts{.domains = 4, .servers = 16, .last = 16}));
  EXPECT_EQ(parts(70), (DomainParts{.domains = 4, .servers = 18, .last = 16}));
  EXPECT_EQ(parts(71), (DomainParts{.domains = 4, .servers = 18, .last = 17}));
  EXPECT_EQ(parts(16), (DomainParts{.domains = 1, .servers = 16, .last = 16}));
  EXPECT_EQ(domain_parts({}, 64), (DomainParts{.domains = 64, .servers = 1, .last = 1}));
  for (int servers = 1; servers < 400; ++servers) {
    const DomainParts one = parts(servers);
    EXPECT_EQ(one.servers * (one.domains - 1) + one.last, servers);
    EXPECT_LE(one.servers, 18);
    EXPECT_GE(one.last, 1);
    EXPECT_LE(one.last, one.servers);
  }
}

TEST(DomainParts, HaveASentenceWithTheRemedyWhereTheyAreNotEqual) {
  const ScaleUp rack{.servers = 18};
  EXPECT_EQ(unequal_parts_note(rack, 64), "");
  EXPECT_EQ(unequal_parts_note(rack, 70),
            "70 servers are 18 of each of 3 scale-up domains and 16 of the last: collectives "
            "across domains go at the pace of the smallest part, and no placement is searched; 64 "
            "servers are 16 of each");
}

TEST(ScaleUpDomains, OfAPresetAreTheFewestThatHoldTheServers) {
  const auto domains = [](int servers) {
    const auto cluster = racks(servers, "gb200-nvl72", "", 36);
    EXPECT_TRUE(cluster) << cluster.error().message;
    std::vector<int> count;
    if (!cluster) return count;
    for (const int domain : scale_up_domains(*cluster)) {
      count.resize(std::max(count.size(), static_cast<std::size_t>(domain) + 1));
      ++count[static_cast<std::size_t>(domain)];
    }
    return count;
  };
  EXPECT_THAT(domains(70), ElementsAre(18, 18, 18, 16));
  EXPECT_THAT(domains(71), ElementsAre(18, 18, 18, 17));
}

}  // namespace
}  // namespace regatta::topo
