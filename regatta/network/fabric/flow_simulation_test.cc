#include "regatta/network/fabric/flow_simulation.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace regatta::fabric {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::HasSubstr;

// Links of 100 B/s with a latency of 1 s each.
struct Network {
  explicit Network(int count) {
    for (int i = 0; i < count; ++i)
      links.add({100}, {1});
  }
  std::uint32_t over(const std::vector<std::uint32_t>& numbers) { return paths.add(numbers); }
  FlowReport run() const {
    auto report = simulate_flows(links, paths, traffic);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : FlowReport{};
  }
  Links links;
  Paths paths;
  FlowGraph traffic;
};

TEST(Flows, AloneHaveTheNarrowestLinkAndArriveTheLatencyLater) {
  Network network(2);
  const std::uint32_t narrow = network.links.add({50}, {0.5});
  network.traffic.add(network.over({0, narrow, 1}), {200}, {3});
  const FlowReport report = network.run();
  EXPECT_THAT(report.flows[0].start, DoubleEq(3));
  EXPECT_THAT(report.flows[0].sent, DoubleEq(7));
  EXPECT_THAT(report.flows[0].arrived, DoubleEq(9.5));
  EXPECT_THAT(report.end.value, DoubleEq(9.5));
  EXPECT_THAT(report.bytes_of_link, testing::ElementsAre(200, 200, 200));
}

TEST(Flows, ShareALinkUntilOneEnds) {
  Network network(1);
  const std::uint32_t path = network.over({0});
  network.traffic.add(path, {100});
  network.traffic.add(path, {300});
  const FlowReport report = network.run();
  EXPECT_THAT(report.flows[0].sent, DoubleEq(2));  // both at 50 B/s
  EXPECT_THAT(report.flows[1].sent, DoubleEq(4));  // the rest at 100
}

TEST(Flows, SlowDownWhenAnotherOneComes) {
  Network network(1);
  const std::uint32_t path = network.over({0});
  network.traffic.add(path, {300});
  network.traffic.add(path, {100}, {1});
  const FlowReport report = network.run();
  EXPECT_THAT(report.flows[1].sent, DoubleEq(3));
  EXPECT_THAT(report.flows[0].sent, DoubleEq(4));
}

// Two send to one at half the rate each, so that switches hold what arrives late; the first one
// sends to another meanwhile.
TEST(Flows, LetTheirSenderGoOnWhileSwitchesHoldTheRest) {
  Network network(4);
  const std::uint32_t path = network.over({0, 2});
  network.paths.set_send_ahead(path, {.rest = network.over({2}), .bytes = 40});
  network.traffic.add(path, {200});
  network.traffic.add(network.over({1, 2}), {200});
  network.traffic.add(network.over({0, 3}), {100});
  network.traffic.depend(2, 0, After::kSent);
  const FlowReport report = network.run();
  EXPECT_THAT(report.flows[0].sent, DoubleEq(3.2));
  EXPECT_THAT(report.flows[0].arrived, DoubleEq(6));
  EXPECT_THAT(report.flows[2].start, DoubleEq(3.2));
  EXPECT_THAT(report.flows[2].sent, DoubleEq(4.2));
  EXPECT_THAT(report.bytes_of_link, testing::ElementsAre(300, 200, 400, 100));
}

// A sender is not done before its own link has carried all.
TEST(Flows, LeaveTheirSenderNoSoonerThanItsLinkIsDone) {
  Network network(2);
  const std::uint32_t path = network.over({0, 1});
  network.paths.set_send_ahead(path, {.rest = network.over({1}), .bytes = 1e9});
  network.traffic.add(path, {200});
  const FlowReport report = network.run();
  EXPECT_THAT(report.flows[0].sent, DoubleEq(2));
  EXPECT_THAT(report.flows[0].arrived, DoubleEq(4));
}

// A second has 100 packets; half of them are lost, and each is sent again a second later: the worst
// one is lost 7 times.
TEST(Flows, ArriveLaterWhereTheirLastPacketsAreLost) {
  // All that is lost until 4 s is sent again within a second.
  for (const auto& [until, expected] :
       {std::pair(1e9, 5.5), std::pair(4.0, 3.0), std::pair(1.0, 0.0)}) {
    Network network(0);
    const std::uint32_t link = network.links.add({100}, {0});
    const std::uint32_t path = network.paths.add(std::vector{link}, std::vector{2.0}, {0});
    network.paths.set_packet_loss(path,
                                  {.share = 0.5, .packet = 1, .again_after = 1, .until = until});
    network.traffic.add(path, {100});
    const FlowReport report = network.run();
    EXPECT_THAT(report.flows[0].sent, DoubleEq(2));
    EXPECT_THAT(report.flows[0].arrived, DoubleNear(2 + expected, 0.2));
  }
}

TEST(Flows, WaitUntilWhatTheyWaitForIsSentOrHasArrived) {
  Network network(2);
  network.traffic.add(network.over({0}), {100});
  network.traffic.add(network.over({1}), {100});
  network.traffic.add(network.over({1}), {100}, {0.25});
  network.traffic.depend(1, 0, After::kSent);
  network.traffic.depend(2, 0, After::kArrived);
  network.traffic.depend(2, 1, After::kArrived);
  const FlowReport report = network.run();
  EXPECT_THAT(report.flows[1].start, DoubleEq(1));
  EXPECT_THAT(report.flows[2].start, DoubleEq(3.25));
}

TEST(Flows, OfNothingOrInsideAServerAreThereAtOnceOrAfterTheLatency) {
  Network network(1);
  network.traffic.add(network.over({}), {1000});
  network.traffic.add(network.over({0}), {0});
  const FlowReport report = network.run();
  EXPECT_THAT(report.flows[0].arrived, DoubleEq(0));
  EXPECT_THAT(report.flows[1].arrived, DoubleEq(1));
}

TEST(Flows, ThatWaitForEachOtherAreRefused) {
  Network network(1);
  const std::uint32_t path = network.over({0});
  for (int i = 0; i < 4; ++i)
    network.traffic.add(path, {1});
  network.traffic.depend(0, 1);
  network.traffic.depend(1, 2);
  network.traffic.depend(2, 1);
  const auto report = simulate_flows(network.links, network.paths, network.traffic);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("flow 1 waits for itself"));
}

// The same, most directly: all rates anew at every change, one change after the other.
std::vector<double> sent_times_by_hand(const Network& network) {
  struct State {
    double left;
    double starts;
    std::uint32_t pending_dependencies;
    bool is_sent = false;
  };
  std::vector<State> flows;
  for (const FlowGraph::Flow& flow : network.traffic.flows())
    flows.push_back({flow.bytes, 0, flow.pending_dependencies});
  std::vector<double> sent(flows.size(), -1);
  double now = 0;
  for (std::size_t done = 0; done < flows.size();) {
    MaxMinProblem max_min_problem{.capacity = network.links.capacity};
    std::vector<std::size_t> active;
    double next = kNoLimit;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (flows[i].pending_dependencies != 0 || flows[i].is_sent) continue;
      const double starts = flows[i].starts + network.traffic.flows()[i].delay;
      if (starts > now) {
        next = std::min(next, starts);
        continue;
      }
      active.push_back(i);
      max_min_problem.add_flow(network.paths.links(network.traffic.flows()[i].path));
    }
    const std::vector<double> rates = max_min_rates(max_min_problem);
    for (std::size_t i = 0; i < active.size(); ++i)
      next = std::min(next, now + flows[active[i]].left / rates[i]);
    for (std::size_t i = 0; i < active.size(); ++i) {
      State& one = flows[active[i]];
      const bool ends = now + one.left / rates[i] <= next * (1 + 1e-13);
      one.left -= rates[i] * (next - now);
      if (!ends) continue;
      one.is_sent = true;
      ++done;
      sent[active[i]] = next;
      double arrived = next;
      for (const std::uint32_t link : network.paths.links(network.traffic.flows()[active[i]].path))
        arrived += network.links.latency[link];
      for (const FlowGraph::Dependency& wait : network.traffic.dependencies()) {
        if (wait.before != active[i]) continue;
        State& follower = flows[wait.flow_and_after / 2];
        --follower.pending_dependencies;
        follower.starts = std::max(follower.starts, wait.flow_and_after % 2 == 0 ? next : arrived);
      }
    }
    now = next;
  }
  return sent;
}

TEST(Flows, EndWhenTheyDoIfAllRatesAreComputedAnewAtEveryChange) {
  std::mt19937_64 random(11);
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  for (int instance = 0; instance < 300; ++instance) {
    Network network(0);
    const int links = number(1, 12);
    for (int i = 0; i < links; ++i)
      network.links.add({number(1, 4) * 25.0}, {number(0, 3) * 0.5});
    const int flows = number(1, 40);
    for (int i = 0; i < flows; ++i) {
      std::vector<std::uint32_t> over(static_cast<std::size_t>(number(1, 3)));
      for (std::uint32_t& link : over)
        link = static_cast<std::uint32_t>(number(0, links - 1));
      std::ranges::sort(over);
      over.erase(std::unique(over.begin(), over.end()), over.end());
      const std::uint32_t flow =
          network.traffic.add(network.over(over), {number(1, 500)}, {number(0, 4) * 0.7});
      for (int k = number(0, 2); k > 0 && flow > 0; --k)
        network.traffic.depend(flow,
                               static_cast<std::uint32_t>(number(0, static_cast<int>(flow) - 1)),
                               number(0, 1) == 0 ? After::kSent : After::kArrived);
    }
    const FlowReport report = network.run();
    const std::vector<double> expected = sent_times_by_hand(network);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_THAT(report.flows[i].sent, DoubleNear(expected[i], 1e-9 * expected[i]))
          << "instance " << instance << ", flow " << i;
  }
}

// 2 (n - 1) steps, each a chunk and the latency of the path to the neighbour.
TEST(Flows, OfARingFollowEachOtherWithoutWaitingForAll) {
  constexpr std::uint32_t kHosts = 5;
  constexpr std::uint32_t kSteps = 2 * (kHosts - 1);
  Network network(kHosts);
  for (std::uint32_t host = 0; host < kHosts; ++host)
    network.over({host});
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    for (std::uint32_t host = 0; host < kHosts; ++host) {
      const std::uint32_t flow = network.traffic.add(host, {200});
      if (step == 0) continue;
      network.traffic.depend(flow, (step - 1) * kHosts + host, After::kSent);
      network.traffic.depend(flow, (step - 1) * kHosts + (host + kHosts - 1) % kHosts);
    }
  }
  EXPECT_THAT(network.run().end.value, DoubleNear(kSteps * (200 / 100.0 + 1), 1e-9));
}

TEST(Flows, TakeOfEachLinkTheAmountOfTheirWay) {
  Network network(2);
  const std::vector<std::uint32_t> both = {0, 1};
  const std::vector<double> halves = {0.5, 0.5};
  network.traffic.add(network.paths.add(both, halves, {2}), {400});
  const FlowReport report = network.run();
  EXPECT_THAT(report.flows[0].sent, DoubleEq(2));  // 200 B/s over two links of 100
  EXPECT_THAT(report.flows[0].arrived, DoubleEq(4));
  EXPECT_THAT(report.bytes_of_link, testing::ElementsAre(200, 200));
}

TEST(Flows, WaitWhileTheirLinkIsDownAndGoOnWhenItIsBack) {
  Network network(1);
  network.traffic.add(network.over({0}), {300});
  const std::vector<NetworkChange> changes = {{.time = 1, .which = 0, .capacity = 0},
                                              {.time = 5, .which = 0, .capacity = 200}};
  const auto report =
      simulate_flows(network.links, network.paths, network.traffic, {.changes = changes});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->flows[0].sent, DoubleEq(6));
}

TEST(Flows, GoOnOverAnotherWayWhereTheirsIsLedThere) {
  Network network(2);
  const std::uint32_t first = network.over({0});
  const std::uint32_t second = network.over({1});
  network.traffic.add(first, {300});
  network.traffic.add(first, {100});
  network.traffic.depend(1, 0);
  const std::vector<NetworkChange> changes = {
      {.time = 1, .which = 0, .capacity = 0},
      {.time = 3, .kind = NetworkChange::Kind::kPath, .which = first, .other = second}};
  const auto report =
      simulate_flows(network.links, network.paths, network.traffic, {.changes = changes});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->flows[0].sent, DoubleEq(5));
  EXPECT_THAT(report->flows[1].sent, DoubleEq(7));
  EXPECT_THAT(report->bytes_of_link, testing::ElementsAre(100, 300));
}

TEST(Flows, ThatHaveNoCapacityLeftAreToldAsUnfinishedWithThoseThatWaitForThem) {
  Network network(2);
  network.traffic.add(network.over({0}), {300});
  network.traffic.add(network.over({1}), {100});
  network.traffic.depend(1, 0);
  network.traffic.add(network.over({1}), {100});
  const std::vector<NetworkChange> changes = {{.time = 1, .which = 0, .capacity = 0}};
  const auto report =
      simulate_flows(network.links, network.paths, network.traffic, {.changes = changes});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->unfinished, 2U);
  EXPECT_TRUE(std::isinf(report->flows[0].arrived));
  EXPECT_TRUE(std::isinf(report->flows[1].start));
  EXPECT_THAT(report->flows[2].sent, DoubleEq(1));
}

TEST(Flows, EndEarlyByAtMostTheResolutionAndAHundredthOfTheirTime) {
  Network network(1);
  const std::uint32_t path = network.over({0});
  for (int i = 0; i < 10; ++i)
    network.traffic.add(path, {1000 + i});
  const FlowReport exact = network.run();
  for (const double resolution : {0.5, 1000.0}) {
    const auto coarse =
        simulate_flows(network.links, network.paths, network.traffic, {.resolution = resolution});
    ASSERT_TRUE(coarse);
    for (std::size_t flow = 0; flow < 10; ++flow) {
      const double sent = exact.flows[flow].sent;
      EXPECT_LE(coarse->flows[flow].sent, sent + 1e-9);
      EXPECT_GE(coarse->flows[flow].sent, sent - std::min(resolution, 0.011 * sent));
    }
    EXPECT_LT(coarse->flows[9].sent, exact.flows[9].sent);
  }
}

TEST(Flows, TellEachThatIsSentInOrderAndWhatCrossedWhen) {
  Network network(1);
  const std::uint32_t path = network.over({0});
  network.traffic.add(path, {300});
  network.traffic.add(path, {100});
  std::vector<std::uint32_t> told;
  LinkHistory history(1, 8, 0.5);
  const auto report =
      simulate_flows(network.links, network.paths, network.traffic,
                     {.history = &history, .on_sent = [&](std::uint32_t flow, const FlowTimes& at) {
                        told.push_back(flow);
                        EXPECT_GT(at.arrived, at.sent);
                      }});
  ASSERT_TRUE(report);
  EXPECT_THAT(told, testing::ElementsAre(1, 0));
  for (std::size_t bin = 0; bin < 8; ++bin)
    EXPECT_DOUBLE_EQ(history.bytes(0, bin), 50) << bin;
}

}  // namespace
}  // namespace regatta::fabric
