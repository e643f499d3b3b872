#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/fabric/ecmp.h"
#include "regatta/fabric/routes.h"
#include "regatta/fabric/test_address.h"
#include "regatta/lab/internal/blueprint.h"
#include "regatta/lab/lab_fixture_test.h"
#include "regatta/os/file.h"
#include "regatta/topo/cluster_yaml.h"

namespace regatta::lab {
namespace {

constexpr int kServers = 8;
constexpr int kFlows = 10'000;

// Over three tiers: two servers to a leaf, two leaves to a group.
class Hashes : public Lab {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_seed"))
      GTEST_SKIP() << "this kernel has no hash seed per namespace";
    std::string text = test_cluster_text(fmt::format("test-{}-hash", ::getpid()), kServers, 2, 2);
    const std::string two = "leaf, spine]\n";
    text.replace(text.find(two), two.size(),
                 "leaf, spine, super-spine]\n  leaves_per_group: 2\n  super_spines: 6\n");
    const auto cluster = topo::parse_cluster(text, "test.yaml");
    ASSERT_TRUE(cluster) << cluster.error().message;
    bring_up(*cluster);
  }
};

// Who asks a switch, and what it should say.
struct Questions {
  std::string asked;
  std::vector<std::string> expected;
};

TEST_F(Hashes, ArePredictedForEachOfTenThousandConnections) {
  if (IsSkipped()) return;
  const auto blueprint = make_blueprint(cluster_, 1);
  ASSERT_TRUE(blueprint);
  const topo::Graph graph = build_graph(cluster_);
  const fabric::Routes routes(graph);
  std::vector<std::uint32_t> seeds;
  for (const BlueprintNode& node : blueprint->nodes)
    seeds.push_back(node.hash_seed);

  std::mt19937 random(20261122);
  std::map<std::size_t, Questions> questions;  // by switch
  int choices = 0;
  for (int i = 0; i < kFlows; ++i) {
    const int from = static_cast<int>(random() % kServers);
    const int to = (from + 1 + static_cast<int>(random() % (kServers - 1))) % kServers;
    const std::string& source = lab_.servers[static_cast<std::size_t>(from)].nic_addresses[0];
    const std::string& target = lab_.servers[static_cast<std::size_t>(to)].nic_addresses[0];
    const fabric::FiveTuple flow{.from = fabric::address(source),
                                 .to = fabric::address(target),
                                 .from_port = static_cast<std::uint16_t>(1 + random() % 65535),
                                 .to_port = static_cast<std::uint16_t>(1 + random() % 65535),
                                 .protocol = static_cast<std::uint8_t>(i % 2 == 0 ? 17 : 6)};
    const auto way = routes.way(nic_link(graph, ServerId{from}, 0),
                                nic_link(graph, ServerId{to}, 0), fabric::ByHash{flow, seeds});
    ASSERT_TRUE(way);
    ASSERT_GE(way->size(), 2U);
    for (std::size_t hop = 0; hop + 1 < way->size(); ++hop) {
      const Cable& in = blueprint->cables[(*way)[hop] / 2];
      const Cable& out = blueprint->cables[(*way)[hop + 1] / 2];
      const Port& enters = (*way)[hop] % 2 == 0 ? in.b : in.a;
      const Port& leaves = (*way)[hop + 1] % 2 == 0 ? out.a : out.b;
      ASSERT_EQ(enters.node, leaves.node);
      Questions& one = questions[enters.node.index()];
      one.asked += fmt::format("{} {} {} {} {} {}\n", enters.interface, source, flow.from_port,
                               target, flow.to_port, flow.protocol);
      one.expected.push_back(leaves.interface);
      choices += (*way)[hop + 1] % 2 == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(choices, kFlows);  // most go up twice

  const auto folder = os::TempFolder::create("hash");
  ASSERT_TRUE(folder);
  for (const auto& [node, one] : questions) {
    const std::string path = folder->path() + "/questions";
    std::ofstream(path) << one.asked;
    std::istringstream answers(probe(blueprint->nodes[node].name, {"ask", path}));
    std::size_t right = 0;
    std::string answer;
    for (const std::string& expected : one.expected)
      right += answers >> answer && answer == expected ? 1 : 0;
    EXPECT_EQ(right, one.expected.size()) << blueprint->nodes[node].name;
  }
}

}  // namespace
}  // namespace regatta::lab
