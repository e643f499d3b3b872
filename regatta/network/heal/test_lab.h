// heal/test_lab.h: a lab whose routes the test itself maintains, and queries to its kernels for the
// path of a packet.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

#include "regatta/base/os/netlink.h"
#include "regatta/base/os/process.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/heal/internal/route_messages.h"
#include "regatta/network/heal/internal/route_socket.h"
#include "regatta/network/heal/lab_switches.h"
#include "regatta/network/lab/lab.h"

namespace regatta::heal {

// `servers` of one NIC, two to a leaf. Three tiers: two leaves to a group, `supers` above.
inline std::string lab_text(const std::string& name, int servers, int spines, int supers) {
  return fmt::format(
      "name: test-{}-{}\n"
      "server_types:\n"
      "  cpu-1:\n"
      "    devices: {{count: 1, type: cpu, cpu_share: 5%}}\n"
      "    intra: {{kind: shm}}\n"
      "    nics: {{count: 1, rate: 1Gbps}}\n"
      "fabric:\n"
      "  tiers: [leaf, spine{}]\n"
      "  servers_per_leaf: 2\n  spines: {}\n  uplink: 1Gbps\n{}"
      "servers: {{count: {}, type: cpu-1}}\n",
      ::getpid(), name, supers > 0 ? ", super-spine" : "", spines,
      supers > 0 ? fmt::format("  leaves_per_group: 2\n  super_spines: {}\n", supers) : "",
      servers);
}

// A lab for one test, taken down at its end; skips the test where none can be built.
class HealerLabTest : public testing::Test {
 protected:
  void bring_up(const std::string& text) {
    const auto cluster = topo::parse_cluster(text, "test.yaml");
    ASSERT_TRUE(cluster) << cluster.error().message;
    auto up = lab::up(*cluster, {.die_with_caller = true});
    if (!up && up.error().code == Code::kUnsupported) GTEST_SKIP() << up.error().message;
    ASSERT_TRUE(up) << up.error().message;
    lab_ = *up;
    if (lab_.user_namespace) GTEST_SKIP() << "needs root: this process has other threads";
    ASSERT_TRUE(lab::set_converging(lab_, false));
    const auto graph = lab::graph_of(lab_);
    ASSERT_TRUE(graph);
    graph_ = *graph;
    paths_.emplace(graph_);
    auto switches = open_lab_switches(lab_, graph_, *paths_);
    ASSERT_TRUE(switches) << switches.error().message;
    switches_ = std::move(*switches);
    for (const topo::Node& node : graph_.nodes)
      seeds_.push_back(topo::hash_seed(lab_.name, node.name));
  }

  void TearDown() override {
    if (!lab_.name.empty()) {
      EXPECT_TRUE(lab::down(lab_.name));
    }
  }

  NodeId node(const std::string& name) const {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].name == name) return NodeId{static_cast<int>(i)};
    ADD_FAILURE() << name;
    return {};
  }
  // One direction of the link between two switches.
  std::uint32_t link(const std::string& from, const std::string& to) const {
    for (std::uint32_t i = 0; i < paths_->end_of.size(); ++i)
      if (paths_->start_of[i] == node(from) && paths_->end_of[i] == node(to)) return i;
    ADD_FAILURE() << from << " to " << to;
    return 0;
  }
  // The end of that link at `at`, in its kernel.
  std::string interface(const std::string& at, const std::string& other) const {
    const auto states = lab::link_states(lab_);
    EXPECT_TRUE(states);
    const lab::LinkState& state = (*states)[link(at, other) / 2];
    const std::string& port = state.a.starts_with(at + " ") ? state.a : state.b;
    return port.substr(port.find(' ') + 1);
  }
  void set_up(const std::string& at, const std::string& other, bool up) const {
    const auto space = lab::open_network(lab_, at);
    ASSERT_TRUE(space);
    const auto scope = os::NetworkNamespaceScope::enter(*space);
    ASSERT_TRUE(scope);
    auto netlink = os::Netlink::open();
    ASSERT_TRUE(netlink);
    ASSERT_TRUE(netlink->set_up(interface(at, other), up));
  }

  std::vector<Installed> installed() {
    auto found = switches_->installed();
    EXPECT_TRUE(found);
    return found ? std::move(*found) : std::vector<Installed>();
  }

  std::uint32_t address(int server) const {
    return topo::address_of(topo::nic_link(graph_, ServerId{server}, 0));
  }
  NodeId leaf_of(int server) const {
    return graph_.links[topo::nic_link(graph_, ServerId{server}, 0).index()].b;
  }
  // The part of this switch's route that takes the flow, as fabric/traffic.h says.
  std::uint32_t predicted(const Tables& tables, NodeId at, const fabric::FiveTuple& flow,
                          NodeId to) const {
    const std::vector<Part> parts = tables.parts(at, to);
    std::vector<int> weights;
    weights.reserve(parts.size());
    for (const Part& part : parts)
      weights.push_back(part.weight);
    const auto hash = fabric::ecmp_hash(flow, seeds_[at.index()], fabric::HashPolicy::kFields);
    return parts[fabric::ecmp_choice(hash, weights)].hop;
  }

  // The directed links by which a switch's kernel would send these flows on.
  std::vector<std::uint32_t> taken(NodeId at, const std::vector<fabric::FiveTuple>& flows,
                                   std::uint8_t tos = 0) const {
    std::vector<std::uint32_t> links;
    const auto space = lab::open_network(lab_, graph_.nodes[at.index()].name);
    auto socket = RouteSocket::open(*space, 0);
    EXPECT_TRUE(socket);
    std::map<std::uint32_t, int> interfaces;
    EXPECT_TRUE(socket->dump(RTM_GETADDR, [&](const nlmsghdr& message) {
      if (const auto one = parse_address(message)) interfaces[one->address] = one->interface;
    }));
    std::map<int, std::uint32_t> link_of;
    int enters = 0;
    for (const LinkId id : graph_.links_of[at.index()]) {
      const bool forward = graph_.links[id.index()].a == at;
      const int index = interfaces[topo::address_of(id, !forward)];
      link_of[index] = fabric::number_of({id, forward});
      enters = index;
    }
    for (const fabric::FiveTuple& flow : flows) {
      std::string question;
      append_question(
          question, {enters, flow.from, flow.to, flow.from_port, flow.to_port, flow.protocol, tos},
          7);
      EXPECT_TRUE(socket->send(question));
      EXPECT_TRUE(socket->receive(true, [&](const nlmsghdr& message) {
        links.push_back(link_of[parse_answer(message)]);
        return false;
      }));
    }
    return links;
  }

  lab::LabInfo lab_;
  topo::Graph graph_;
  std::optional<FabricPaths> paths_;
  std::unique_ptr<LinuxSwitches> switches_;
  std::vector<std::uint32_t> seeds_;
};

}  // namespace regatta::heal
