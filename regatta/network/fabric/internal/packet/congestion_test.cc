#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "regatta/network/fabric/internal/packet/test_simulate.h"

namespace regatta::fabric {
namespace {

// Servers 4 to 11, of two leaves, send to server 0, of another one.
TestPacketSetup incast(long long bytes, Seconds apart = {}) {
  TestPacketSetup one(16, 4, kRate);
  for (std::uint32_t from = 4; from < 12; ++from)
    one.traffic.add(one.pair(from, 0), {bytes}, Seconds{apart.value * from});
  return one;
}

double longest(const PacketReport& report) {
  return *std::ranges::max_element(report.longest_queue);
}

TEST(PacketPauses, KeepAnIncastFromLosingAnything) {
  const TestPacketSetup one = incast(4'000'000);
  const PacketReport report = simulate(one, {.pauses = PfcOptions{}});
  EXPECT_EQ(report.lost, 0U);
  EXPECT_EQ(report.not_arrived, 0U);
  EXPECT_GT(report.pauses, 0U);
  EXPECT_TRUE(report.deadlock.empty());
  // The last link is never idle: nothing but it is needed.
  const double least = 8 * 4e6 / kRate.value * 4126 / 4096;
  EXPECT_NEAR(report.end.value, least, 0.01 * least);
  // At most what fits behind the links into its switch waits.
  EXPECT_LT(longest(report), 8 * 320'000);
}

// A switch pauses its peers because of a link that is paused itself, or of the one that all share.
TEST(PacketPauses, SpreadAsATreeFromWhatIsShared) {
  TestPacketSetup one = incast(4'000'000);
  one.traffic.add(one.pair(12, 13), {4'000'000});  // has nothing to do with it
  const PacketReport report = simulate(one, {.pauses = PfcOptions{}});
  const NodeId root = one.graph.links[one.nics[0].index()].b;
  int paused = 0;
  for (std::uint32_t link = 0; link < one.graph.links.size() * 2; ++link) {
    if (report.pauses_of_link[link].count == 0) continue;
    ++paused;
    EXPECT_GT(report.pauses_of_link[link].time.value, 0);
    const NodeId end = head_of(one.graph, link);
    const auto& around = one.graph.links_of[end.index()];
    EXPECT_TRUE(
        end == root ||
        std::ranges::any_of(around,
                            [&](LinkId next) {
                              const bool leaves = one.graph.links[next.index()].a == end;
                              return report.pauses_of_link[number_of({next, leaves})].count > 0;
                            }))
        << one.graph.links[link / 2].name;
  }
  EXPECT_GT(paused, 4);
  for (const std::uint32_t calm : {12U, 13U})
    EXPECT_EQ(report.pauses_of_link[number_of({one.nics[calm], true})].count, 0U);
  EXPECT_NEAR(report.flows[8].arrived, 4e6 / kRate.value * 4126 / 4096 + 2.1e-6, 0.2e-6);
}

TEST(PacketPauses, LosePacketsWithoutRoomForWhatIsUnderWay) {
  const TestPacketSetup one = incast(1'000'000);
  const PacketReport report = simulate(one, {.pauses = PfcOptions{.headroom = Bytes{20'000}}});
  EXPECT_GT(report.lost, 0U);
  EXPECT_EQ(report.not_arrived, 0U);  // they were sent again
}

TEST(PacketBuffers, DropWhatFindsNoRoomAndSendItAgain) {
  const TestPacketSetup one = incast(1'000'000);
  const PacketReport free = simulate(one, {});
  EXPECT_EQ(free.lost, 0U);
  const PacketReport full = simulate(one, {.buffer = Bytes{500'000}});
  EXPECT_GT(full.lost, 0U);
  EXPECT_EQ(full.not_arrived, 0U);
  EXPECT_EQ(full.packets, free.packets);
  EXPECT_LE(longest(full), 500'000);
  EXPECT_GT(full.end.value, free.end.value);
}

TEST(PacketMarks, AreMadeFromTheThresholdOn) {
  const TestPacketSetup one = incast(1'000'000);
  const PacketReport sure =
      simulate(one, {.marks = EcnOptions{.from = {100'000}, .to = {100'000}, .most = 1}});
  const std::uint32_t down = number_of({one.nics[0], false});
  // 8 MB in packets of 4 kB come and most of them find the queue.
  EXPECT_GT(sure.marks_of_link[down], 1500U);
  const PacketReport never =
      simulate(one, {.marks = EcnOptions{.from = {100'000'000}, .to = {100'000'000}, .most = 1}});
  EXPECT_EQ(never.marks, 0U);
  const PacketReport some =
      simulate(one, {.marks = EcnOptions{.from = {0}, .to = {100'000'000}, .most = 1}});
  EXPECT_GT(some.marks, 0U);
  EXPECT_LT(some.marks, sure.marks);
  EXPECT_EQ(sure.cnps, 0U);  // nobody listens
}

// After the first moments the queue stays where it is marked by chance, nobody pauses, and the
// senders get the same.
TEST(PacketRateControl, KeepsQueuesShortAndRatesFair) {
  const TestPacketSetup one = incast(200'000'000);
  const std::uint32_t down = number_of({one.nics[0], false});
  PacketOptions options{.pauses = PfcOptions{.xoff = {1'000'000}, .xon = {800'000}},
                        .marks = EcnOptions{}};
  const PacketReport without = simulate(one, options);
  options.rate_control = Dcqcn{};
  const PacketReport with = simulate(one, options);
  EXPECT_EQ(with.lost, 0U);
  EXPECT_GT(with.cnps, 100U);
  EXPECT_LT(with.pauses, without.pauses / 10);
  EXPECT_GT(without.mean_queue[down], 2'000'000);
  EXPECT_LT(with.mean_queue[down], 500'000);
  const double least = 8 * 200e6 / kRate.value * 4126 / 4096;
  EXPECT_LT(with.end.value, 1.25 * least);
  double first = 1;
  for (const FlowTimes& times : with.flows)
    first = std::min(first, times.arrived);
  EXPECT_GT(first, 0.75 * with.end.value);  // all were about as fast
}

NodeId node_of(const topo::Graph& graph, const std::string& name) {
  const auto at = std::ranges::find(graph.nodes, name, &topo::Node::name);
  return {static_cast<int>(at - graph.nodes.begin())};
}

std::uint32_t link_between(const topo::Graph& graph, NodeId from, NodeId to) {
  for (const LinkId id : graph.links_of[from.index()]) {
    const topo::Link& link = graph.links[id.index()];
    if (link.a == to || link.b == to) return number_of({id, link.a == from});
  }
  ADD_FAILURE() << "no link";
  return 0;
}

// 32 servers on 8 leaves of 4; all of leaf4 to leaf7, and of the two that bounce what is not
// theirs, send to leaf2 and leaf3.
TestPacketSetup two_targets() {
  TestPacketSetup one(32, 4, kRate);
  for (std::uint32_t from = 0; from < 32; ++from) {
    if (from / 4 == 2 || from / 4 == 3) continue;
    for (const std::uint32_t to : {8 + from % 4, 12 + from % 4})
      one.traffic.add(one.pair(from, to), {4'000'000});
  }
  return one;
}

// The example of Tagger (CoNEXT 2017), as in deadlock_test.cc.
TEST(PacketDeadlocks, HappenOnTheCycleThatTheRoutesAllow) {
  TestPacketSetup one = two_targets();
  const auto node = [&](const char* name) { return node_of(one.graph, name); };
  const auto link = [&](const char* from, const char* to) {
    return link_between(one.graph, node(from), node(to));
  };
  const auto lead = [&](const char* at, const char* to, const char* next) {
    one.routes.set_next_hops(node(at), node(to), std::vector{link(at, next)});
  };
  lead("spine0", "leaf2", "leaf0");
  lead("leaf0", "leaf2", "spine1");
  lead("spine1", "leaf3", "leaf1");
  lead("leaf1", "leaf3", "spine0");
  const auto cycle = find_dependency_cycle(one.graph, one.routes);
  ASSERT_TRUE(cycle);
  const PacketReport report = simulate(one, {.pauses = PfcOptions{}});
  EXPECT_GT(report.not_arrived, 0U);
  EXPECT_THAT(report.deadlock, testing::UnorderedElementsAreArray(*cycle));
  EXPECT_EQ(report.lost, 0U);
  // Switches that drop packets do not wait.
  const PacketReport dropping = simulate(one, {.buffer = Bytes{1'000'000}});
  EXPECT_EQ(dropping.not_arrived, 0U);
  EXPECT_TRUE(dropping.deadlock.empty());
}

TEST(PacketDeadlocks, DoNotHappenWhereWaysGoUpAndDownOnce) {
  const TestPacketSetup one = two_targets();
  ASSERT_FALSE(find_dependency_cycle(one.graph, one.routes));
  const PacketReport report = simulate(one, {.pauses = PfcOptions{}});
  EXPECT_GT(report.pauses, 0U);
  EXPECT_EQ(report.not_arrived, 0U);
  EXPECT_TRUE(report.deadlock.empty());
}

// A spine that sends back what comes: packets go round until they fill both buffers.
TEST(PacketDeadlocks, HappenInALoopOfTwoSwitches) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    TestPacketSetup one(16, 4, kRate);
    for (std::uint32_t from = 0; from < 16; ++from)
      one.traffic.add(one.pair(from, (from + 4) % 16), {4'000'000});
    const NodeId leaf = one.routes.leaves()[random() % 4];
    const NodeId to = one.routes.leaves()[(static_cast<std::size_t>(leaf.value) - 16 + 1) % 4];
    const std::uint32_t up = one.routes.next_hops(leaf, to)[random() % 4];
    one.routes.set_next_hops(leaf, to, std::vector{up});
    one.routes.set_next_hops(one.graph.links[up / 2].b, to, std::vector{up ^ 1U});
    const auto cycle = find_dependency_cycle(one.graph, one.routes);
    ASSERT_TRUE(cycle);
    const PacketReport report = simulate(one, {.pauses = PfcOptions{}});
    EXPECT_THAT(report.deadlock, testing::UnorderedElementsAre(up, up ^ 1U)) << seed;
  }
}

// Under any traffic, a fabric with pauses and up-down paths loses nothing and stops nowhere.
TEST(PacketPauses, LoseNothingOfDrawnTraffic) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    RandomIndex draw(seed);
    TestPacketSetup one(16, 4, kRate, 1 + seed % 2);
    one.draw_seeds(seed);
    double bytes = 0;
    for (std::uint32_t flow = 0; flow < 60; ++flow) {
      const std::uint32_t from = draw(16);
      const std::uint32_t to = seed % 3 == 0 ? draw(3) : draw(16);
      const long long size = draw(2'000'000);
      one.traffic.add(one.pair(from, to), {size}, {1e-9 * draw(10'000)});
      bytes += from == to ? 0 : static_cast<double>(size);
    }
    PacketOptions options{.pauses = PfcOptions{.xoff = {20'000 + draw(100'000)}, .xon = {20'000}}};
    if (seed % 2 == 0) {
      options.marks = EcnOptions{};
      options.rate_control = Dcqcn{};
    }
    const PacketReport report = simulate(one, options);
    EXPECT_EQ(report.lost, 0U) << seed;
    EXPECT_EQ(report.not_arrived, 0U) << seed;
    EXPECT_EQ(one.received(report), bytes) << seed;
  }
}

TEST(PacketOptions, RefuseWhatCannotBe) {
  TestPacketSetup one(4, 4, kRate);
  one.traffic.add(one.pair(0, 1), {1});
  const auto refuses = [&](const PacketOptions& options) {
    const auto report = simulate_packets(one.setup(), one.traffic, options);
    return !report && report.error().code == Code::kInvalidInput;
  };
  EXPECT_TRUE(refuses({.pauses = PfcOptions{.xoff = {1000}, .xon = {2000}}}));
  EXPECT_TRUE(refuses({.pauses = PfcOptions{.headroom = Bytes{-1}}}));
  EXPECT_TRUE(refuses({.pauses = PfcOptions{}, .buffer = Bytes{1000}}));
  EXPECT_TRUE(refuses({.buffer = Bytes{-1}}));
  EXPECT_TRUE(refuses({.retransmit_after = {0}}));
  EXPECT_TRUE(refuses({.marks = EcnOptions{.from = {2}, .to = {1}}}));
  EXPECT_TRUE(refuses({.marks = EcnOptions{.most = 1.5}}));
  EXPECT_TRUE(refuses({.rate_control = Dcqcn{.g = 0}}));
  EXPECT_TRUE(refuses({.rate_control = Dcqcn{.alpha_timer = {0}}}));
  EXPECT_TRUE(refuses({.rate_control = Dcqcn{.least = {0}}}));
  EXPECT_TRUE(refuses({.rate_control = Dcqcn{.byte_counter = {0}}}));
}

}  // namespace
}  // namespace regatta::fabric
