#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/file.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/test_address.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/lab/internal/blueprint.h"
#include "regatta/network/lab/internal/lab_fixture_test.h"

namespace regatta::lab {
namespace {

// A lab whose kernels are asked which path connections take.
class Hashes : public Lab {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_seed"))
      GTEST_SKIP() << "this kernel has no hash seed per namespace";
  }

  void bring_up_text(const std::string& text) {
    const auto cluster = topo::parse_cluster(text, "test.yaml");
    ASSERT_TRUE(cluster) << cluster.error().message;
    bring_up(*cluster);
    if (IsSkipped()) return;
    const auto blueprint = make_blueprint(cluster_, 1);
    ASSERT_TRUE(blueprint);
    blueprint_ = *blueprint;
    graph_ = build_graph(cluster_);
    for (const BlueprintNode& node : blueprint_.nodes)
      seeds_.push_back(node.hash_seed);
  }

  const std::string& address_of(int server) const {
    return at(lab_.servers, server).nic_addresses[0];
  }
  fabric::PlannedConnection connection(int from, int to, std::uint16_t from_port,
                                       std::uint16_t to_port, std::uint8_t protocol) const {
    return {nic_link(graph_, ServerId{from}, 0),
            nic_link(graph_, ServerId{to}, 0),
            {.from = fabric::address(address_of(from)),
             .to = fabric::address(address_of(to)),
             .from_port = from_port,
             .to_port = to_port,
             .protocol = protocol}};
  }

  // Will ask each switch on this path, by which a packet from `from` to `to` comes there, for the
  // link that it leaves by.
  void ask_along(const std::vector<std::uint32_t>& path, const fabric::FiveTuple& flow, int from,
                 int to) {
    for (std::size_t hop = 0; hop + 1 < path.size(); ++hop) {
      const Cable& in = blueprint_.cables[path[hop] / 2];
      const Cable& out = blueprint_.cables[path[hop + 1] / 2];
      const Port& enters = path[hop] % 2 == 0 ? in.b : in.a;
      const Port& leaves = path[hop + 1] % 2 == 0 ? out.a : out.b;
      ASSERT_EQ(enters.node, leaves.node);
      Questions& one = questions_[enters.node.index()];
      one.asked += fmt::format("{} {} {} {} {} {}\n", enters.interface, address_of(from),
                               flow.from_port, address_of(to), flow.to_port, flow.protocol);
      one.expected.push_back(leaves.interface);
    }
  }

  void expect_those_paths() {
    const auto folder = os::TempFolder::create("hash");
    ASSERT_TRUE(folder);
    for (const auto& [node, one] : questions_) {
      const std::string path = folder->path() + "/questions";
      std::ofstream(path) << one.asked;
      std::istringstream answers(probe(blueprint_.nodes[node].name, {"ask", path}));
      std::size_t right = 0;
      std::string answer;
      for (const std::string& expected : one.expected)
        right += answers >> answer && answer == expected ? 1 : 0;
      EXPECT_EQ(right, one.expected.size()) << blueprint_.nodes[node].name;
    }
  }

  Blueprint blueprint_;
  topo::Graph graph_;
  std::vector<std::uint32_t> seeds_;  // by node

 private:
  struct Questions {
    std::string asked;
    std::vector<std::string> expected;
  };
  std::map<std::size_t, Questions> questions_;  // by switch
};

// Over three tiers: two servers to a leaf, two leaves to a group.
TEST_F(Hashes, ArePredictedForEachOfTenThousandConnections) {
  constexpr int kServers = 8;
  constexpr int kFlows = 10'000;
  std::string text = test_cluster_text(fmt::format("test-{}-hash", ::getpid()), kServers, 2, 2);
  const std::string two = "leaf, spine]\n";
  text.replace(text.find(two), two.size(),
               "leaf, spine, super-spine]\n  leaves_per_group: 2\n  super_spines: 6\n");
  bring_up_text(text);
  if (IsSkipped()) return;
  const fabric::Routes routes(graph_);
  std::mt19937 random(20261122);
  int ups = 0;
  for (int i = 0; i < kFlows; ++i) {
    const int from = static_cast<int>(random() % kServers);
    const int to = (from + 1 + static_cast<int>(random() % (kServers - 1))) % kServers;
    const auto port = [&] { return static_cast<std::uint16_t>(1 + random() % 65535); };
    const fabric::PlannedConnection one = connection(from, to, port(), port(), i % 2 == 0 ? 17 : 6);
    const auto path = routes.path(one.from, one.to, fabric::EcmpNextHop{one.flow, seeds_});
    ASSERT_TRUE(path);
    ASSERT_GE(path->size(), 2U);
    ups += static_cast<int>(path->size()) / 2 - 1;
    ask_along(*path, one.flow, from, to);
  }
  EXPECT_GT(ups, kFlows);  // most go up twice
  expect_those_paths();
}

// 2 to 16 connections between two leaves over 16 spines, a hundred times.
TEST_F(Hashes, AreMetByPlannedPortsWithoutACollision) {
  bring_up_text(test_cluster_text(fmt::format("test-{}-ports", ::getpid()), 4, 2, 16));
  if (IsSkipped()) return;
  const fabric::Routes routes(graph_);
  std::mt19937 random(7);
  int collisions_by_chance = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<fabric::PlannedConnection> all;
    std::vector<std::pair<int, int>> ends;
    for (std::size_t count = 2 + random() % 15; all.size() < count;) {
      ends.emplace_back(random() % 2, 2 + random() % 2);
      all.push_back(connection(ends.back().first, ends.back().second, 0,
                               static_cast<std::uint16_t>(5000 + i), 6));
    }
    const fabric::PortPlan plan = plan_ports(routes, seeds_, all);
    collisions_by_chance += plan.most_by_chance > 1 ? 1 : 0;
    std::map<std::uint32_t, int> load;
    for (std::size_t k = 0; k < all.size(); ++k) {
      fabric::FiveTuple flow = all[k].flow;
      flow.from_port = plan.ports[k];
      const auto path = routes.path(all[k].from, all[k].to, fabric::EcmpNextHop{flow, seeds_});
      ASSERT_TRUE(path);
      for (std::size_t hop = 1; hop + 1 < path->size(); ++hop)
        EXPECT_EQ(++load[(*path)[hop]], 1) << "try " << i;
      ask_along(*path, flow, ends[k].first, ends[k].second);
    }
  }
  EXPECT_GT(collisions_by_chance, 50);
  expect_those_paths();
}

}  // namespace
}  // namespace regatta::lab
