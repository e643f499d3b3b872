#include "regatta/network/link_rates/rate_session.h"

#include <variant>

#include <gtest/gtest.h>

#include "regatta/network/link_rates/internal/train_messages.h"
#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

// Agents on a simulated fabric.
class RateSessionTest : public testing::Test {
 protected:
  std::string without_end(const std::string& line) { return line.substr(0, line.size() - 1); }

  TrainPath path_of(const TrainOrder& order) const {
    for (TrainPath path : plan_.paths)
      for (path.loaded = 1; path.loaded <= path.links.size(); ++path.loaded)
        if (path.flow == order.flow && path.time_to_live().value_or(0) == order.shape.time_to_live)
          return path;
    REGATTA_CHECK(false);
  }

  void answer(RateSession& session, const RateSession::Order& order, Seconds now) {
    const auto parsed = parse_agent_order(without_end(order.line));
    ASSERT_TRUE(parsed);
    const auto* const train = std::get_if<TrainOrder>(&*parsed);
    if (train == nullptr) return;
    const auto tell = [&](NodeId server, const AgentReport& report) {
      EXPECT_TRUE(session.accept(server, without_end(report_line(report)), now));
    };
    if (!train->is_sender) {
      ++trains_;
      tell(order.server, TrainAwaited{train->train});
      return;
    }
    const TrainPath path = path_of(*train);
    tell(order.server, TrainSent{train->train, {1e12}});
    tell(fabric_.graph.links[path.to.index()].a,
         TrainReceived{train->train, 30, true_rate(fabric_.graph, path, slow_)});
  }

  void tell_load(RateSession& session, int server, std::uint64_t bytes, Seconds now) {
    const LinkId nic = topo::nic_link(fabric_.graph, ServerId{server}, 0);
    const LoadReport report{{{topo::address_of(nic), bytes, bytes}}};
    ASSERT_TRUE(session.accept(NodeId{server}, without_end(report_line(report)), now));
  }

  // Until nothing is left, or `limit`.
  Seconds run(RateSession& session, Seconds limit) {
    Seconds now{0};
    for (; now < limit && !session.is_done(); now += Seconds{1e-3})
      for (auto orders = session.due_orders(now); !orders.empty(); orders = session.due_orders(now))
        for (const RateSession::Order& order : orders)
          answer(session, order, now);
    return now;
  }

  RateSession session_with_agents() {
    RateSession session(fabric_.graph, fabric_.routes, plan_, 1000);
    for (int server = 0; server < 6; ++server)
      session.add_agent(NodeId{server}, {0});
    return session;
  }

  const Fabric fabric_{{.servers = 6, .servers_per_leaf = 2, .spines = 2}};
  const RatePlan plan_ = plan_rates(fabric_.graph, fabric_.routes, fabric_.seeds);
  SlowRates slow_;
  int trains_ = 0;
};

TEST_F(RateSessionTest, NamesTheSlowLinkFromTheReportsOfAgents) {
  const auto link = link_called(fabric_.graph, "leaf1-spine0", "spine0");
  slow_[link] = {3e8};
  RateSession session = session_with_agents();
  run(session, {60});
  EXPECT_TRUE(session.is_done());
  // Once over each path, and again over those that end at the slow link.
  EXPECT_EQ(session.arrived(), plan_.paths.size() + 3);
  EXPECT_EQ(session.finished(), session.paths());
  const RateVerdicts verdicts = session.verdicts();
  ASSERT_EQ(verdicts.slow.size(), 1U);
  EXPECT_EQ(verdicts.slow[0].link, link);
  EXPECT_FALSE(session.add_separators());
}

TEST_F(RateSessionTest, SeparatesWhatLooksAlikeByFurtherTrains) {
  // One whole path: any of its links may be the slow one.
  RatePlan plan{.paths = {}, .missing = {}};
  for (const TrainPath& path : plan_.paths)
    if (plan.paths.empty() && path.links.size() == 4) plan.paths.push_back(path);
  plan.paths[0].loaded = 4;
  slow_[plan.paths[0].links[2]] = {2e8};
  RateSession session(fabric_.graph, fabric_.routes, plan, 1000);
  for (int server = 0; server < 6; ++server)
    session.add_agent(NodeId{server}, {0});
  run(session, {60});
  ASSERT_EQ(session.verdicts().slow.size(), 1U);
  EXPECT_EQ(session.verdicts().slow[0].alternatives.size(), 3U);
  int rounds = 0;
  while (session.add_separators() && ++rounds < 4)
    run(session, {60.0 + 60 * rounds});
  const RateVerdicts verdicts = session.verdicts();
  ASSERT_EQ(verdicts.slow.size(), 1U);
  EXPECT_EQ(verdicts.slow[0].link, plan.paths[0].links[2]);
}

TEST_F(RateSessionTest, UsesNoServerWithoutAnAgent) {
  RateSession session(fabric_.graph, fabric_.routes, plan_, 1000);
  EXPECT_TRUE(session.due_orders({0}).empty());
  session.add_agent(NodeId{0}, {0});
  EXPECT_EQ(session.due_orders({0}).size(), 1U);  // the order to report the load
  run(session, {1});
  EXPECT_EQ(trains_, 0);
}

TEST_F(RateSessionTest, WaitsWhileNicsCarryOtherTraffic) {
  RateSession session = session_with_agents();
  for (int server = 0; server < 6; ++server) {
    tell_load(session, server, 0, {0});
    tell_load(session, server, 100'000'000, {0.3});
  }
  EXPECT_EQ(session.busy_links().size(), 2 * fabric_.graph.links.size());
  run(session, {0.4});
  EXPECT_EQ(trains_, 0);
  for (int server = 0; server < 6; ++server)
    tell_load(session, server, 100'000'001, {0.8});
  EXPECT_TRUE(session.busy_links().empty());
  run(session, {60});
  EXPECT_TRUE(session.is_done());
}

TEST_F(RateSessionTest, MeasuresAgainWhatOtherTrafficMayHaveDisturbed) {
  RateSession session = session_with_agents();
  for (int server = 0; server < 6; ++server)
    tell_load(session, server, 0, {-1});
  run(session, {0.05});
  const std::size_t before = session.arrived();
  ASSERT_GT(before, 0U);
  for (int server = 0; server < 6; ++server)
    tell_load(session, server, 1'000'000'000, {0.2});
  EXPECT_LT(session.arrived(), before);
}

TEST_F(RateSessionTest, TellsOnceWhyAnAgentCouldNot) {
  RateSession session = session_with_agents();
  for (Seconds now{0}; now.value < 0.2; now += Seconds{1e-3})
    for (const RateSession::Order& order : session.due_orders(now)) {
      const auto parsed = parse_agent_order(without_end(order.line));
      const auto* const train = std::get_if<TrainOrder>(&*parsed);
      if (train == nullptr) continue;
      EXPECT_TRUE(session.accept(order.server,
                                 without_end(report_line(TrainFailed{train->train, "no"})), now));
    }
  ASSERT_FALSE(session.failures().empty());
  EXPECT_LE(session.failures().size(), 6U);
  EXPECT_TRUE(session.failures()[0].ends_with(": no"));
}

TEST_F(RateSessionTest, IgnoresReportsAboutTrainsOfOthers) {
  RateSession session = session_with_agents();
  EXPECT_TRUE(session.accept(NodeId{0}, "arrived 3e8 30 5", {0}));
  EXPECT_TRUE(session.accept(NodeId{0}, "awaits ffff", {0}));
  EXPECT_FALSE(session.accept(NodeId{0}, "w 5 0 0", {0}));
  EXPECT_EQ(session.arrived(), 0U);
}

}  // namespace
}  // namespace regatta::link_rates
