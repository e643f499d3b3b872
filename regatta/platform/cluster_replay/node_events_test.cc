#include "regatta/platform/cluster_replay/node_events.h"

#include <string>

#include <gtest/gtest.h>

#include "regatta/platform/cluster_replay/trace_tables.h"

namespace regatta::cluster_replay {
namespace {

constexpr Seconds kDay{86400};

std::vector<sched::ClusterNode> servers(int count, int devices = 8) {
  std::vector<sched::ClusterNode> nodes;
  add_servers(nodes, {.device_type = "h100", .servers = count, .devices = devices});
  return nodes;
}

// Fails where a node fails twice without a return, or events are not in order. Returns failures.
int check_events(const std::vector<NodeEvent>& events, int nodes) {
  std::vector<bool> is_failed(static_cast<std::size_t>(nodes));
  int failures = 0;
  Seconds last{};
  for (const NodeEvent& event : events) {
    EXPECT_GE(event.at, last);
    last = event.at;
    const bool fails = event.health == sched::NodeHealth::kFailed;
    EXPECT_NE(is_failed[static_cast<std::size_t>(event.node)], fails);
    is_failed[static_cast<std::size_t>(event.node)] = fails;
    failures += fails ? 1 : 0;
  }
  return failures;
}

TEST(GeneratedFailures, ComeAsOftenAsTheNodesFailAndAlternateWithRepairs) {
  const auto events = generate_failures(
      servers(200), {.failures_per_day = 0.1, .repair = {3600}, .duration = 30 * kDay});
  ASSERT_TRUE(events);
  EXPECT_NEAR(check_events(*events, 200), 200 * 30 * 0.1, 75);  // three standard deviations
}

TEST(GeneratedFailures, AreRefusedWhereTheyAreTooMany) {
  const auto events = generate_failures(
      servers(200), {.failures_per_day = 1e9, .repair = {1e-3}, .duration = 30 * kDay});
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().message,
            "more than 2000000 failures and returns of nodes would come; give fewer failures a "
            "day, fewer nodes or a shorter time");
}

MixedFailures mixed() {
  MixedFailures shape;
  using reliability::FailureClass;
  using reliability::FailureEffect;
  const auto rate = reliability::rate_of(0.1 / 8, kDay);
  shape.mix.causes = {{"bug", FailureClass::kSoftware, FailureEffect::kRestart, 1, 0, rate},
                      {"gpu", FailureClass::kGpu, FailureEffect::kRelapse, 1, 0, rate}};
  shape.repair = {0.2 * kDay, 0.3 * kDay, 0.25, kDay};
  shape.warm_up = 100 * kDay;
  shape.duration = 50 * kDay;
  return shape;
}

TEST(DrawnFailures, HaveTheRatesOfTheMixAndHistoriesFromTheWarmUp) {
  MixedFailures shape = mixed();
  shape.repair.relapse_share = 0;
  const auto drawn = draw_failures(servers(400), shape);
  ASSERT_TRUE(drawn) << drawn.error().message;
  int planned = 0;
  int failures = 0;
  for (const NodeEvent& event : drawn->events) {
    if (event.health != sched::NodeHealth::kFailed) continue;
    ++(event.is_planned ? planned : failures);
  }
  EXPECT_NEAR(planned / (400 * 50 * 0.1), 1, 0.08);
  EXPECT_NEAR(failures / (400 * 50 * 0.1), 0.97, 0.08) << "not while the node is away";
  std::size_t before = 0;
  for (const sched::ClusterNode& node : drawn->nodes) {
    before += node.failures.size();
    EXPECT_EQ(node.watched_since, Seconds{0} - shape.warm_up);
  }
  EXPECT_NEAR(static_cast<double>(before) / (400 * 100 * 0.1), 0.97, 0.08);
}

TEST(DrawnFailures, ComeMoreOftenWhereRepairsDoNotHoldAndAreTheSameForASeed) {
  const auto drawn = draw_failures(servers(400), mixed());
  const auto again = draw_failures(servers(400), mixed());
  ASSERT_TRUE(drawn && again);
  ASSERT_EQ(drawn->events.size(), again->events.size());
  for (std::size_t i = 0; i < drawn->events.size(); ++i)
    ASSERT_EQ(drawn->events[i].at, again->events[i].at);
  MixedFailures firm = mixed();
  firm.repair.relapse_share = 0;
  EXPECT_GT(static_cast<double>(drawn->events.size()),
            1.1 * static_cast<double>(draw_failures(servers(400), firm)->events.size()));
}

TEST(DrawnFailures, NeedRatesAndABound) {
  MixedFailures shape = mixed();
  shape.mix.causes[0].per_device = shape.mix.causes[1].per_device = {};
  EXPECT_FALSE(draw_failures(servers(4), shape));
  shape.mix.causes[0].per_device = reliability::rate_of(1e9, kDay);
  EXPECT_FALSE(draw_failures(servers(4), shape));
}

constexpr const char* kFaults = "node,start_d,end_d,level,class,desc\n";

std::string faults_of_all(const std::string& times) {
  std::string text = kFaults;
  for (int i = 0; i < 400; ++i)
    text += std::to_string(i) + "," + times + ",,,\n";
  return text;
}

TEST(ReadNodeFailures, TurnsFaultsOfServersIntoEventsOfTheCut) {
  const auto traced = read_node_failures(faults_of_all("1,2") + "7,1.5,3,,,\n9,5,,,,\n", "f.csv",
                                         servers(400), {.from = kDay / 2, .duration = 9 * kDay});
  ASSERT_TRUE(traced) << traced.error().message;
  EXPECT_EQ(traced->failures, 401) << "faults of a server that meet are one";
  EXPECT_EQ(traced->failed_nodes, 400);
  EXPECT_EQ(traced->trace, "400 servers for 5 d");
  EXPECT_EQ(check_events(traced->events, 400), 401);
  EXPECT_EQ(traced->events.size(), 801U) << "one fault is open";
  EXPECT_EQ(traced->events.front().at, kDay / 2);
}

TEST(ReadNodeFailures, BeginsWithTheNodesThatAreAwayThen) {
  const auto traced = read_node_failures(faults_of_all("1,3"), "f.csv", servers(10),
                                         {.from = 2 * kDay, .duration = kDay / 2});
  ASSERT_TRUE(traced);
  EXPECT_EQ(traced->events.size(), 10U);
  EXPECT_EQ(traced->events.front().at, Seconds{0});
}

TEST(ReadNodeFailures, RepeatsTheTraceLaterForMoreNodesThanItHas) {
  const auto traced = read_node_failures(faults_of_all("1,1.1") + "0,4,4.1,,,\n", "f.csv",
                                         servers(800), {.from = {}, .duration = 9 * kDay});
  ASSERT_TRUE(traced);
  EXPECT_EQ(traced->failures, 802);
  int at_one_day = 0;
  for (const NodeEvent& event : traced->events)
    at_one_day += event.at == kDay && event.health == sched::NodeHealth::kFailed ? 1 : 0;
  EXPECT_EQ(at_one_day, 400);
}

TEST(ReadNodeFailures, GivesANodeTheFailuresOfAsManyPlacesAsItHasDevices) {
  std::string text = "SN,location,insert,remove,duration,out,event\n";
  for (int place = 0; place < 4; ++place)
    text += "0325" + std::to_string(place) + ",c0-0c0s0n" + std::to_string(place) +
            ",2017-01-01 00:00:00,2017-01-0" + std::to_string(place + 2) + " 00:00:00,1,FALSE," +
            (place == 3 ? "" : "DBE") + "\n";
  const auto traced = read_node_failures(text, "t.csv", servers(2, 2),
                                         {.from = {}, .duration = 9 * kDay, .repair = {3600}});
  ASSERT_TRUE(traced) << traced.error().message;
  ASSERT_EQ(traced->failures, 3);
  EXPECT_EQ(traced->failed_nodes, 2);
  EXPECT_EQ(traced->events[0].node, 0);
  EXPECT_EQ(traced->events[0].at, kDay);
  EXPECT_EQ(traced->events[1].at, kDay + Seconds{3600});
  EXPECT_EQ(traced->events[4].node, 1);
}

TEST(ReadNodeFailures, NamesWhatIsWrong) {
  const auto error_of = [](const std::string& text, Seconds from) {
    const auto traced =
        read_node_failures(text, "f.csv", servers(2), {.from = from, .duration = kDay});
    return traced ? "" : traced.error().message;
  };
  EXPECT_EQ(error_of("a,b\n1,2\n", {}),
            "f.csv:1: no trace of failures has these columns; give the lives of Titan's GPUs (SN) "
            "or the faults of InfiniteHBD's servers (start_d)");
  EXPECT_EQ(error_of(faults_of_all("1,2"), 3 * kDay),
            "f.csv: the trace is 2 d long and is to be replayed from 3 d on; give an earlier time");
  EXPECT_NE(error_of(std::string(kFaults) + "400,1,2,,,\n", {}).find("f.csv:2: "),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kFaults) + "4,2,1,,,\n", {}).find("end_d"), std::string::npos);
  EXPECT_NE(error_of(kFaults, {}).find("it has no failure"), std::string::npos);
}

}  // namespace
}  // namespace regatta::cluster_replay
