#include "regatta/network/link_rates/port_discovery.h"

#include <map>
#include <set>
#include <variant>

#include <gtest/gtest.h>

#include "regatta/network/link_rates/internal/train_messages.h"
#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

// Switches with a hash that nobody knows, and agents that trace.
class PortDiscoveryTest : public testing::Test {
 protected:
  explicit PortDiscoveryTest(const Shape& shape = {.servers = 8,
                                                   .servers_per_leaf = 2,
                                                   .spines = 4})
      : fabric_(shape) {
    for (std::uint32_t& seed : seeds_)
      seed = seed * 2654435761U + 12345;
  }

  std::vector<std::uint32_t> links_of(const fabric::FiveTuple& flow) const {
    return *fabric_.routes.path(*topo::link_of(flow.from), *topo::link_of(flow.to),
                                fabric::EcmpNextHop{flow, seeds_});
  }
  PathTraced trace(const PathOrder& order) const {
    PathTraced traced{.number = order.number, .routers = {}};
    std::vector<std::uint32_t> links = links_of(order.flow);
    links.pop_back();
    for (const std::uint32_t link : links)
      traced.routers.push_back(topo::address_of(fabric::directed_link(link).link, link % 2 == 0));
    return traced;
  }
  // Until nothing is left to trace; `change` may spoil the answers.
  template <typename Change>
  Seconds run(PortDiscovery& discovery, Change&& change) {
    for (int server = 0; server < 8; ++server)
      discovery.add_agent(NodeId{server});
    Seconds now{0};
    for (; !discovery.is_done() && now.value < 3600; now += Seconds{0.05})
      for (const RateSession::Order& order : discovery.due_orders(now)) {
        ++sent_[order.server];
        const auto parsed = parse_agent_order(order.line.substr(0, order.line.size() - 1));
        PathTraced traced = trace(std::get<PathOrder>(*parsed));
        change(traced);
        const std::string line = report_line(traced);
        EXPECT_TRUE(discovery.accept(order.server, line.substr(0, line.size() - 1), now));
      }
    return now;
  }

  const Fabric fabric_;
  std::vector<std::uint32_t> seeds_ = fabric_.seeds;
  std::map<NodeId, int> sent_;
};

TEST_F(PortDiscoveryTest, TracesUntilEveryLinkHasItsPaths) {
  PortDiscovery discovery(fabric_.graph, fabric_.routes);
  const Seconds time = run(discovery, [](PathTraced&) {});
  EXPECT_TRUE(discovery.is_done());
  EXPECT_TRUE(discovery.thin_links().empty());
  EXPECT_EQ(discovery.unanswered(), 0U);
  for (const TrainPath& path : discovery.paths())
    EXPECT_EQ(path.links, links_of(path.flow));
  const RatePlan plan = plan_rates(fabric_.graph, discovery.paths());
  EXPECT_TRUE(plan.missing.empty());
  EXPECT_EQ(plan.paths.size(), 3 * 2 * fabric_.graph.links.size());
  // Far from all flows, and no server more than five a second.
  EXPECT_LT(discovery.traced(), candidate_flows(fabric_.graph, {}).size() / 4);
  for (const auto& [server, count] : sent_)
    EXPECT_LE(count, 5 * time.value + 1);
}

TEST_F(PortDiscoveryTest, AsksAgainWhereARouterDidNotAnswerAndGivesUp) {
  PortDiscovery discovery(fabric_.graph, fabric_.routes, {.ports = 1});
  int count = 0;
  run(discovery, [&](PathTraced& traced) {
    if (++count % 2 == 0) traced.routers.back() = 0;
  });
  EXPECT_GT(discovery.paths().size(), 0U);
  PortDiscovery silent(fabric_.graph, fabric_.routes, {.ports = 1});
  run(silent, [](PathTraced& traced) { traced.routers.clear(); });
  EXPECT_TRUE(silent.paths().empty());
  EXPECT_EQ(silent.traced(), 3 * silent.unanswered());
  EXPECT_EQ(silent.thin_links().size(), 2 * fabric_.graph.links.size());
}

TEST_F(PortDiscoveryTest, KeepsNoPathThatIsNone) {
  PortDiscovery discovery(fabric_.graph, fabric_.routes, {.ports = 1});
  run(discovery, [&](PathTraced& traced) {
    traced.routers.front() =
        traced.number % 2 == 0 ? 0x01020304 : topo::address_of(LinkId{0}, true);
  });
  for (const TrainPath& path : discovery.paths())
    EXPECT_EQ(path.from, LinkId{0});  // whose first router that is
}

TEST_F(PortDiscoveryTest, WaitsForAgentsAndForgetsLostTraces) {
  PortDiscovery discovery(fabric_.graph, fabric_.routes, {.ports = 1});
  EXPECT_TRUE(discovery.due_orders({0}).empty());
  discovery.add_agent(NodeId{0});
  EXPECT_EQ(discovery.due_orders({0}).size(), 1U);
  EXPECT_TRUE(discovery.due_orders({0.1}).empty());
  EXPECT_EQ(discovery.due_orders({0.2}).size(), 1U);
  EXPECT_TRUE(discovery.accept(NodeId{1}, "traced 1 0a400001", {0.3}));  // not its own
  EXPECT_TRUE(discovery.paths().empty());
}

}  // namespace
}  // namespace regatta::link_rates
