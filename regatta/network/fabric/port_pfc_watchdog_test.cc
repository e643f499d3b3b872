#include "regatta/network/fabric/port_pfc_watchdog.h"

#include <algorithm>
#include <map>
#include <random>

#include <gmock/gmock.h>

#include "regatta/network/fabric/test_fabric.h"

namespace regatta::fabric {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr PfcWatchdogOptions kOptions{.detection = {0.2}};

// As ethtool -S prints them for ConnectX (kernel mlx5), a part.
const std::vector<NamedCount> kMlx5 = {{"rx_packets", 17},
                                       {"tx_packets_phy", 1000},
                                       {"rx_packets_phy", 900},
                                       {"tx_prio3_packets", 500},
                                       {"rx_prio3_packets", 400},
                                       {"rx_prio3_pause", 7},
                                       {"rx_prio3_pause_duration", 120},
                                       {"tx_prio3_pause", 9},
                                       {"tx_prio3_pause_duration", 80},
                                       {"rx_prio0_packets", 5},
                                       {"tx_prio0_packets", 5},
                                       {"rx_global_pause", 3},
                                       {"tx_global_pause", 4},
                                       {"rx_prio3_pause_transition", 2}};

TEST(PfcPortCounters, ReadTheNamesOfDrivers) {
  const auto mlx5 = pfc_port_counters(kMlx5);
  ASSERT_EQ(mlx5.size(), 2U);
  EXPECT_EQ(mlx5[0].priority, kAllPriorities);
  EXPECT_EQ(mlx5[0].held.pauses, 3U);
  EXPECT_EQ(mlx5[0].held.packets, 1000U);
  EXPECT_EQ(mlx5[1].priority, 3);
  EXPECT_EQ(mlx5[1].held.pauses, 7U);
  EXPECT_EQ(mlx5[1].held.paused_us, 120U);
  EXPECT_EQ(mlx5[1].held.packets, 500U);
  EXPECT_EQ(mlx5[1].holds.pauses, 9U);
  EXPECT_EQ(mlx5[1].holds.paused_us, 80U);
  EXPECT_EQ(mlx5[1].holds.packets, 400U);
  const auto bnxt = pfc_port_counters(std::vector<NamedCount>{{"rx_pfc_ena_frames_pri5", 1},
                                                              {"pfc_pri5_rx_duration_us", 2},
                                                              {"tx_packets_pri5", 3},
                                                              {"pfc_pri5_tx_duration_us", 4}});
  ASSERT_EQ(bnxt.size(), 1U);
  EXPECT_EQ(bnxt[0].priority, 5);
  EXPECT_EQ(bnxt[0].held.paused_us, 2U);
  EXPECT_EQ(bnxt[0].holds.paused_us, 4U);
  const auto ice = pfc_port_counters(
      std::vector<NamedCount>{{"rx_priority_1_xoff.nic", 6}, {"tx_unicast.nic", 8}});
  ASSERT_EQ(ice.size(), 1U);
  EXPECT_EQ(ice[0].held.pauses, 6U);
  EXPECT_EQ(ice[0].held.packets, 8U);
  EXPECT_FALSE(ice[0].held.paused_us);
  EXPECT_THAT(pfc_port_counters(std::vector<NamedCount>{{"peer_ifindex", 4}, {"rx_xdp_drops", 0}}),
              IsEmpty());
}

PfcPortCounters at(double time, std::uint64_t sent, std::uint64_t paused_us) {
  PfcPortCounters port{.at = {time}, .device = "s0", .port = "eth0", .priority = 3};
  port.held = {.pauses = paused_us / 100, .paused_us = paused_us, .packets = sent};
  return port;
}

std::vector<PortStormAlarm> add(PortPfcWatchdog& watch, const PfcPortCounters& port) {
  auto alarms = watch.add(port);
  EXPECT_TRUE(alarms) << alarms.error().message;
  return alarms ? *std::move(alarms) : std::vector<PortStormAlarm>{};
}

TEST(PortPfcWatchdog, TellsAPortThatIsHeldAndWhenItIsFreeAgain) {
  PortPfcWatchdog watch(kOptions);
  EXPECT_THAT(add(watch, at(0, 10, 0)), IsEmpty());
  EXPECT_THAT(add(watch, at(0.1, 10, 100'000)), IsEmpty());
  const auto storm = add(watch, at(0.2, 10, 200'000));
  ASSERT_EQ(storm.size(), 1U);
  EXPECT_TRUE(storm[0].alarm.is_storm);
  EXPECT_TRUE(storm[0].is_held);
  EXPECT_EQ(storm[0].alarm.since.value, 0);
  EXPECT_FALSE(storm[0].tree);
  EXPECT_THAT(add(watch, at(0.3, 50, 205'000)), IsEmpty());
  EXPECT_THAT(add(watch, at(0.4, 60, 205'000)), IsEmpty());
  const auto over = add(watch, at(0.5, 70, 205'000));
  ASSERT_EQ(over.size(), 1U);
  EXPECT_FALSE(over[0].alarm.is_storm);
}

TEST(PortPfcWatchdog, IsSilentWhileAPortStillSends) {
  PortPfcWatchdog watch(kOptions);
  for (int i = 0; i < 50; ++i)
    EXPECT_THAT(add(watch, at(0.1 * i, 10 + static_cast<std::uint64_t>(i),
                              static_cast<std::uint64_t>(i) * 99'500)),
                IsEmpty());
}

TEST(PortPfcWatchdog, TellsANicThatHoldsItsSwitch) {
  PortPfcWatchdog watch(kOptions);
  std::vector<PortStormAlarm> all;
  for (int i = 0; i < 4; ++i) {
    PfcPortCounters port{.at = {0.1 * i}, .device = "s0", .port = "eth0", .priority = 3};
    port.holds = {.pauses = 5U * static_cast<std::uint64_t>(i),
                  .paused_us = 100'000U * static_cast<std::uint64_t>(i),
                  .packets = 77};
    for (const PortStormAlarm& alarm : add(watch, port))
      all.push_back(alarm);
  }
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].is_held);
}

// ice counts frames alone.
TEST(PortPfcWatchdog, GuessesHowLongPausesLastThatAreNotTimed) {
  PortPfcWatchdog watch(kOptions);
  std::size_t storms = 0;
  for (int i = 0; i < 4; ++i) {
    PfcPortCounters port{.at = {0.1 * i}, .device = "s0", .port = "eth0", .priority = 1};
    port.held = {.pauses = 100U * static_cast<std::uint64_t>(i), .paused_us = {}, .packets = 8};
    storms += add(watch, port).size();
  }
  EXPECT_EQ(storms, 1U);
  // Without packets nothing is known.
  PortPfcWatchdog blind(kOptions);
  for (int i = 0; i < 9; ++i) {
    PfcPortCounters port{.at = {0.1 * i}, .device = "s0", .port = "eth0", .priority = 1};
    port.held.pauses = 100U * static_cast<std::uint64_t>(i);
    EXPECT_THAT(add(blind, port), IsEmpty());
  }
}

// The counters of a port of a known fabric that is held all the time.
PfcPortCounters held(const std::string& device, const std::string& port, double time,
                     int priority = 3) {
  PfcPortCounters one = at(time, 10, static_cast<std::uint64_t>(1e6 * time));
  one.device = device;
  one.port = port;
  one.priority = priority;
  one.queued = 9000;
  return one;
}

std::vector<std::string> names(const topo::Graph& graph, const std::vector<std::uint32_t>& links) {
  std::vector<std::string> names;
  names.reserve(links.size());
  for (const std::uint32_t link : links)
    names.push_back(graph.links[link / 2].name);
  return names;
}

TEST(PortPfcWatchdog, TracesStormsOfTwoPrioritiesApart) {
  const topo::Graph graph = build_graph(TestFabric::cluster_of(16, 4, {1e9}));
  PortPfcWatchdog watch(kOptions, &graph);
  std::map<int, PauseTree> trees;
  for (int i = 0; i < 4; ++i)
    for (const PfcPortCounters& one :
         {held("leaf0", "s0.nic0-leaf0", 0.1 * i, 3), held("leaf0", "s1.nic0-leaf0", 0.1 * i, 4),
          held("spine1", "leaf0-spine1", 0.1 * i, 3), held("spine2", "leaf0-spine2", 0.1 * i, 4)})
      for (const PortStormAlarm& alarm : add(watch, one))
        trees[alarm.priority] = *alarm.tree;
  EXPECT_EQ(graph.nodes[trees[3].root].name, "s0");
  EXPECT_THAT(names(graph, trees[3].links), ElementsAre("s0.nic0-leaf0", "leaf0-spine1"));
  EXPECT_EQ(graph.nodes[trees[4].root].name, "s1");
  EXPECT_THAT(names(graph, trees[4].links), ElementsAre("s1.nic0-leaf0", "leaf0-spine2"));
}

TEST(PortPfcWatchdog, TracesEveryPriorityToALinkThatIsHeldAsAWhole) {
  const topo::Graph graph = build_graph(TestFabric::cluster_of(16, 4, {1e9}));
  PortPfcWatchdog watch(kOptions, &graph);
  std::vector<PortStormAlarm> last;
  for (int i = 0; i < 4; ++i)
    for (const PfcPortCounters& one : {held("leaf0", "s0.nic0-leaf0", 0.1 * i, kAllPriorities),
                                       held("spine1", "leaf0-spine1", 0.1 * i, 3)})
      if (auto alarms = add(watch, one); !alarms.empty()) last = std::move(alarms);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_THAT(names(graph, last[0].tree->links), ElementsAre("s0.nic0-leaf0", "leaf0-spine1"));
}

// The NIC that holds its leaf, and the leaf that is held, both count; one of them stops to.
TEST(PortPfcWatchdog, KeepsAStormThatTheOtherEndOfTheLinkStillSees) {
  const topo::Graph graph = build_graph(TestFabric::cluster_of(16, 4, {1e9}));
  PortPfcWatchdog watch(kOptions, &graph);
  std::vector<PortStormAlarm> last;
  for (int i = 0; i < 10; ++i) {
    PfcPortCounters nic{.at = {0.1 * i}, .device = "s0", .port = "s0.nic0-leaf0", .priority = 3};
    const auto paused = static_cast<std::uint64_t>(100'000 * std::min(i, 3));
    nic.holds = {.pauses = paused / 100, .paused_us = paused, .packets = 77};
    add(watch, nic);
    add(watch, held("leaf0", "s0.nic0-leaf0", 0.1 * i));
    if (i < 6) continue;
    auto alarms = add(watch, held("spine1", "leaf0-spine1", 0.1 * i));
    if (!alarms.empty()) last = std::move(alarms);
  }
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(graph.nodes[last[0].tree->root].name, "s0");
}

TEST(PortPfcWatchdog, RefusesTimesThatGoBack) {
  PortPfcWatchdog watch(kOptions);
  EXPECT_THAT(add(watch, at(0.2, 10, 0)), IsEmpty());
  EXPECT_THAT(add(watch, at(0.2, 10, 0)), IsEmpty());
  const auto back = watch.add(at(0.1, 10, 0));
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("s0 eth0 goes back from 0.2 s to 0.1 s"));
  // Each priority of a port may be written for itself.
  PfcPortCounters other = at(0.1, 10, 0);
  other.priority = 4;
  EXPECT_THAT(add(watch, other), IsEmpty());
}

// Frames alone are counted: how long pauses last is guessed, but not over a gap.
TEST(PortPfcWatchdog, GuessesNothingWhileAPortCannotBeRead) {
  PortPfcWatchdog watch(kOptions);
  const auto sample = [&](double time, std::uint64_t pauses) {
    PfcPortCounters port{.at = {time}, .device = "", .port = "eth0", .priority = 1};
    port.held = {.pauses = pauses, .paused_us = {}, .packets = 8};
    return add(watch, port).size();
  };
  EXPECT_EQ(sample(0, 1), 0U);
  EXPECT_EQ(sample(0.1, 2), 0U);
  EXPECT_TRUE(watch.lose("", "eth0"));
  EXPECT_FALSE(watch.lose("", "eth0")) << "that is known";
  EXPECT_TRUE(watch.regain("", "eth0"));
  EXPECT_FALSE(watch.regain("", "eth0"));
  EXPECT_EQ(sample(5, 3), 0U);
  EXPECT_EQ(sample(5.1, 4), 0U);
  EXPECT_EQ(sample(5.2, 5), 1U) << "it is watched on";
}

TEST(PortPfcWatchdog, FindsWhereAStormBeganOnAKnownFabric) {
  const topo::Graph graph = build_graph(TestFabric::cluster_of(16, 4, {1e9}));
  PortPfcWatchdog watch(kOptions, &graph);
  std::vector<PortStormAlarm> last;
  for (int i = 0; i < 4; ++i) {
    for (const auto& [device, port] :
         {std::pair("leaf0", "s0.nic0-leaf0"), std::pair("spine1", "leaf0-spine1"),
          std::pair("leaf2", "leaf2-spine1")}) {
      auto alarms = add(watch, held(device, port, 0.1 * i));
      if (!alarms.empty()) last = std::move(alarms);
    }
  }
  ASSERT_EQ(last.size(), 1U);
  ASSERT_TRUE(last[0].tree);
  EXPECT_EQ(graph.nodes[last[0].tree->root].name, "s0");
  EXPECT_THAT(names(graph, last[0].tree->links),
              ElementsAre("s0.nic0-leaf0", "leaf0-spine1", "leaf2-spine1"));
  PfcPortCounters stranger = at(1, 1, 1);
  stranger.device = "leaf0";
  stranger.port = "Ethernet4";
  const auto refused = watch.add(stranger);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the cluster has no link 'Ethernet4' at 'leaf0'; name ports by its links, like "
            "leaf0-spine3");
  stranger.device = "tor7";
  EXPECT_THAT(watch.add(stranger).error().message, HasSubstr("no switch or server 'tor7'"));
}

TEST(PfcPortCountersText, IsReadAndRefusedWithTheLine) {
  const auto port =
      parse_pfc_port_counters("1.5,leaf0,leaf0-spine1,3,1,4096,10,2,100,,0,", "c.csv", 2);
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ(port->queued, 4096U);
  EXPECT_EQ(port->held.packets, 10U);
  EXPECT_FALSE(port->holds.packets);
  EXPECT_EQ(port->holds.pauses, 0U);
  EXPECT_FALSE(port->holds.paused_us);
  for (const auto& [line, what] :
       {std::pair("1,a,b,3,1", "5 fields"), std::pair("x,a,b,3,1,,,,,,,", "at_s is no number"),
        std::pair("1,,b,3,1,,,,,,,", "the device or the port is empty"),
        std::pair("1,a,b,8,1,,,,,,,", "the priority is not 0 to 7"),
        std::pair("1,a,b,3,yes,,,,,,,", "up is neither 0 nor 1"),
        std::pair("1,a,b,3,1,-1,,,,,,", "field 6 is no whole number"),
        std::pair("nan,a,b,3,1,,,,,,,", "at_s is no number")}) {
    const auto refused = parse_pfc_port_counters(line, "c.csv", 7);
    ASSERT_FALSE(refused) << line;
    EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr("c.csv:7: "), HasSubstr(what)));
  }
}

// The parser reads or refuses any bytes.
TEST(PfcPortCountersText, SurvivesDrawnBytes) {
  std::mt19937 random(1);
  const std::string letters = "0123456789,,,,,,,.-einf link\x01\xff";
  for (int i = 0; i < 20'000; ++i) {
    std::string line;
    for (std::size_t length = random() % 60; length > 0; --length)
      line += letters[random() % letters.size()];
    PortPfcWatchdog watch(kOptions);
    const auto port = parse_pfc_port_counters(line, "f", 1);
    EXPECT_TRUE(!port || watch.add(*port)) << line;
  }
}

}  // namespace
}  // namespace regatta::fabric
