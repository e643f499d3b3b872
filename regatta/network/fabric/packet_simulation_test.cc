#include "regatta/network/fabric/packet_simulation.h"

#include <cmath>

#include <gmock/gmock.h>

#include "regatta/network/fabric/internal/packet/test_simulate.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

// The time of a packet with so many bytes on a link of kRate.
double wire_time(double bytes) {
  return (bytes + 30) / kRate.value;
}

TEST(PacketSimulation, TakesAPacketOverEachLinkAfterTheOther) {
  TestPacketSetup one(8, 2, kRate);
  one.traffic.add(one.pair(0, 1), {1000});
  one.traffic.add(one.pair(2, 7), {1000});
  const PacketReport report = simulate(one);
  EXPECT_NEAR(report.flows[0].sent, wire_time(1000), 1e-12);
  EXPECT_NEAR(report.flows[0].arrived, 2 * wire_time(1000) + 2e-6, 1e-12);
  EXPECT_NEAR(report.flows[1].arrived, 4 * wire_time(1000) + 4e-6, 1e-12);
  EXPECT_EQ(report.packets, 2U);
  EXPECT_EQ(report.crossings, 6U);
  EXPECT_EQ(report.end.value, report.flows[1].arrived);
}

TEST(PacketSimulation, SendsTheNextPacketWhileTheFirstIsUnderWay) {
  TestPacketSetup one(8, 2, kRate);
  one.traffic.add(one.pair(0, 7), {10 * 4096 + 1});
  const PacketReport report = simulate(one);
  // The short packet goes last, and waits for none but the one before it.
  EXPECT_NEAR(report.flows[0].sent, 10 * wire_time(4096) + wire_time(1), 1e-12);
  EXPECT_NEAR(report.flows[0].arrived, 4e-6 + 13 * wire_time(4096) + wire_time(1), 1e-12);
  EXPECT_EQ(report.packets, 11U);
  EXPECT_DOUBLE_EQ(std::accumulate(report.bytes_of_link.begin(), report.bytes_of_link.end(), 0.0),
                   4.0 * (10 * 4096 + 1));
}

// The product of a packet's bytes and the picoseconds of a byte overflowed on links of 1 kbps.
TEST(PacketSimulation, TakesItsTimeOnSlowAndOnFastLinks) {
  for (const double rate : {125.0, 1e3, 7e3, 1e5, 50e9, 1e13, 1e14}) {
    SCOPED_TRACE(rate);
    TestPacketSetup one(4, 4, {rate});
    one.traffic.add(one.pair(0, 1), {3 * 65'535});
    for (const bool is_lossless : {false, true}) {
      PacketOptions options{.mtu = {65'535}, .header = {65'535}};
      if (is_lossless) options.pauses = PfcOptions{};
      options.buffer = is_lossless ? std::nullopt : std::optional<Bytes>(1LL << 40);
      const PacketReport report = simulate(one, options);
      const double packet = 2 * 65'535 / rate;
      const double rounding = std::max(1e-4 * packet, 4e-12);
      EXPECT_NEAR(report.flows[0].sent, 3 * packet, rounding);
      EXPECT_NEAR(report.end.value, 4 * packet + 2e-6, rounding);
      EXPECT_EQ(report.lost, 0U);
    }
  }
}

TEST(PacketSimulation, RefusesWhatTakesLongerThanPicosecondsCount) {
  TestPacketSetup one(4, 4, {125});
  one.traffic.add(one.pair(0, 1), {1'000'000'000});
  const auto packets = simulate_packets(one.setup(), one.traffic);
  const auto mixed = simulate_mixed(one.setup(), one.traffic);
  ASSERT_FALSE(packets || mixed);
  EXPECT_EQ(packets.error().message,
            "packets take more than 4e+06 s, which is more than picoseconds can count; send fewer "
            "bytes, or take faster links or the flow level");
  EXPECT_EQ(mixed.error().message, packets.error().message);
}

TEST(PacketSimulation, DividesALinkPacketByPacketAndTellsWhoWaits) {
  TestPacketSetup one(4, 4, kRate);
  for (const std::uint32_t from : {0U, 1U})
    one.traffic.add(one.pair(from, 3), {100 * 4096});
  const PacketReport report = simulate(one);
  const double last = 2e-6 + 201 * wire_time(4096);
  EXPECT_NEAR(report.end.value, last, 1e-12);
  EXPECT_NEAR(std::min(report.flows[0].arrived, report.flows[1].arrived), last - wire_time(4096),
              1e-12);
  // Two come while one goes: 100 of 200 wait when the last one comes.
  const std::uint32_t down = number_of({one.nics[3], false});
  EXPECT_NEAR(report.longest_queue[down], 100 * 4126, 4126);
  for (std::uint32_t link = 0; link < report.longest_queue.size(); ++link)
    EXPECT_TRUE(link == down || report.longest_queue[link] == 0) << link;
}

TEST(PacketSimulation, LetsTheConnectionsOfANicTakeTurns) {
  TestPacketSetup one(4, 4, kRate);
  one.traffic.add(one.pair(0, 1), {100 * 4096});
  one.traffic.add(one.pair(0, 2), {10 * 4096});
  one.traffic.add(one.pair(0, 2), {10 * 4096});  // another one between the same two
  const PacketReport report = simulate(one);
  // The first one had sent a packet when the others came.
  EXPECT_NEAR(report.flows[1].sent, 30 * wire_time(4096), 1e-12);
  EXPECT_NEAR(report.flows[2].sent, 31 * wire_time(4096), 1e-12);
  EXPECT_NEAR(report.flows[0].sent, 120 * wire_time(4096), 1e-12);
}

TEST(PacketSimulation, SendsMessagesOfOneConnectionInTurn) {
  TestPacketSetup one(4, 4, kRate);
  const std::uint32_t pair = one.pair(0, 1);
  one.traffic.add(pair, {10 * 4096});
  one.traffic.add(pair, {10 * 4096});
  const PacketReport report = simulate(one);
  EXPECT_NEAR(report.flows[0].sent, 10 * wire_time(4096), 1e-12);
  EXPECT_NEAR(report.flows[1].sent, 20 * wire_time(4096), 1e-12);
}

TEST(PacketSimulation, DividesAMessageAmongTheConnectionsOfAPair) {
  TestPacketSetup one(32, 16, kRate, 8);
  const std::uint32_t pair = one.pair(0, 31);
  one.traffic.add(pair, {8 * 4096 + 3});
  one.traffic.add(pair, {0});
  one.traffic.add(pair, {5});
  const PacketReport report = simulate(one);
  EXPECT_EQ(report.packets, 8U + 3U + 1U + 5U);
  EXPECT_EQ(report.not_arrived, 0U);
  int used = 0;
  for (const LinkId link : one.graph.links_of[32])
    used += report.bytes_of_link[number_of({link, true})] > 0 &&
            one.graph.links[link.index()].a_nic < 0;
  EXPECT_GT(used, 1);  // by other spines
  EXPECT_LE(used, 8);
}

TEST(PacketSimulation, StartsFlowsAfterThoseThatTheyWaitFor) {
  TestPacketSetup one(4, 4, kRate);
  const auto first = one.traffic.add(one.pair(0, 1), {4096});
  const auto second = one.traffic.add(one.pair(1, 2), {4096}, {5e-6});
  const auto third = one.traffic.add(one.pair(0, 3), {4096});
  const auto inside = one.traffic.add(one.pair(2, 2), {4096});
  one.traffic.depend(second, first);
  one.traffic.depend(third, first, After::kSent);
  one.traffic.depend(inside, second);
  const PacketReport report = simulate(one);
  EXPECT_NEAR(report.flows[second].start, report.flows[first].arrived + 5e-6, 1e-12);
  EXPECT_NEAR(report.flows[third].start, report.flows[first].sent, 1e-12);
  EXPECT_EQ(report.flows[inside].start, report.flows[second].arrived);
  EXPECT_EQ(report.flows[inside].arrived, report.flows[inside].start);
}

TEST(PacketSimulation, RefusesFlowsThatWaitForEachOther) {
  TestPacketSetup one(4, 4, kRate);
  const std::uint32_t pair = one.pair(0, 1);
  for (int i = 0; i < 3; ++i)
    one.traffic.add(pair, {1});
  one.traffic.depend(1, 2);
  one.traffic.depend(2, 1);
  const auto report = simulate_packets(one.setup(), one.traffic);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, testing::HasSubstr("waits for itself"));
}

TEST(PacketSimulation, RefusesPairsWithoutAWay) {
  TestPacketSetup one(8, 2, kRate);
  one.traffic.add(one.pair(0, 7), {1});
  one.routes.set_next_hops(one.routes.leaves()[0], one.routes.leaves()[3], {});
  const auto report = simulate_packets(one.setup(), one.traffic);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "no way leads from s0.nic0-leaf0 to s7.nic0-leaf3; change the routes or the pair");
}

TEST(PacketSimulation, RefusesPacketsThatAreTooLarge) {
  const TestPacketSetup one(4, 4, kRate);
  for (const long long bytes : {0LL, 65536LL})
    EXPECT_FALSE(simulate_packets(one.setup(), one.traffic, {.mtu = {bytes}}));
  EXPECT_FALSE(simulate_packets(one.setup(), one.traffic, {.header = {-1}}));
}

TEST(PacketSimulation, SendsAMessageInAFewCoarsePackets) {
  struct Case {
    long long bytes;
    std::uint64_t packets;
  };
  for (const auto [bytes, packets] : {Case{1'000'000, 20}, Case{100'000, 20}, Case{10'000, 3},
                                      Case{1'000'000'000, 15'260}, Case{0, 1}}) {
    SCOPED_TRACE(bytes);
    TestPacketSetup one(4, 4, kRate);
    one.traffic.add(one.pair(0, 1), {bytes});
    const PacketOptions options{.mtu = {65'535},
                                .coarse = CoarsePackets{.per_message = 20, .least = {4096}}};
    const PacketReport report = simulate(one, options);
    EXPECT_EQ(report.packets, packets);
    EXPECT_DOUBLE_EQ(one.received(report), static_cast<double>(bytes));
  }
}

TEST(PacketSimulation, RefusesCoarsePacketsThatAreLongerThanTheMtuAndTheMixedLevel) {
  const TestPacketSetup one(4, 4, kRate);
  const auto simulates = [&](const CoarsePackets& coarse) {
    return simulate_packets(one.setup(), one.traffic, {.mtu = {9000}, .coarse = coarse})
        .has_value();
  };
  EXPECT_TRUE(simulates({.per_message = 1, .least = {9000}}));
  EXPECT_FALSE(simulates({.per_message = 1, .least = {9001}}));
  EXPECT_FALSE(simulates({.per_message = 1, .least = {0}}));
  EXPECT_FALSE(simulates({.per_message = 0, .least = {9000}}));
  EXPECT_FALSE(simulate_mixed(one.setup(), one.traffic, {.coarse = CoarsePackets{}}));
}

// A route that sends back what comes: packets go round until they have crossed 64 links.
TEST(PacketSimulation, LosesPacketsThatGoRoundInALoop) {
  TestPacketSetup one(8, 2, kRate);
  one.traffic.add(one.pair(0, 7), {10 * 4096});
  one.traffic.add(one.pair(2, 3), {4096});
  const NodeId from = one.routes.leaves()[0];
  const NodeId to = one.routes.leaves()[3];
  const std::uint32_t up = one.routes.next_hops(from, to)[0];
  one.routes.set_next_hops(from, to, std::vector{up});
  one.routes.set_next_hops(one.graph.links[up / 2].b, to, std::vector{up ^ 1U});
  const PacketReport report = simulate(one);
  EXPECT_EQ(report.expired, 10U);
  EXPECT_EQ(report.not_arrived, 1U);
  EXPECT_TRUE(std::isinf(report.flows[0].arrived));
  EXPECT_FALSE(std::isinf(report.flows[1].arrived));
}

// In picoseconds ns-3 says 2.959 ms, in its own nanoseconds 2.974 (bench/peers/ns3_peer.cc).
TEST(PacketSimulation, AgreesWithNs3OnARingOf64) {
  TestPacketSetup one(64, 8, kRate);
  add_ring_all_reduce(one.traffic, 64, {64LL << 20},
                      [&](std::uint32_t from, std::uint32_t to) { return one.pair(from, to); });
  const PacketReport report = simulate(one);
  EXPECT_NEAR(report.end.value, 2.959e-3, 0.001e-3);
  EXPECT_EQ(report.packets, 126U * 64 * 256);
}

// Bytes are kept, nothing arrives before light would, and the same seed says the same.
TEST(PacketSimulation, BringsAllBytesOfDrawnTraffic) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    RandomIndex draw(seed);
    TestPacketSetup one(16, 4, kRate, 1 + seed % 3);
    one.draw_seeds(seed);
    double bytes = 0;
    double leaving = 0;
    for (std::uint32_t flow = 0; flow < 40; ++flow) {
      const std::uint32_t from = draw(16);
      const std::uint32_t to = draw(16);
      const long long size = draw(100'000);
      one.traffic.add(one.pair(from, to), {size}, {1e-9 * draw(10'000)});
      if (flow > 4 && draw(2) == 0)
        one.traffic.depend(flow, draw(flow - 1), draw(2) == 0 ? After::kSent : After::kArrived);
      bytes += from == to ? 0 : static_cast<double>(size);
      leaving += from / 4 == to / 4 ? 0 : static_cast<double>(size);
    }
    const PacketReport report = simulate(one);
    EXPECT_EQ(report.not_arrived, 0U) << seed;
    EXPECT_EQ(std::accumulate(report.bytes_of_link.begin(), report.bytes_of_link.end(), 0.0),
              2 * bytes + 2 * leaving)
        << seed;
    for (const FlowTimes& times : report.flows)
      EXPECT_TRUE(times.start <= times.sent && times.sent <= times.arrived) << seed;
    EXPECT_EQ(simulate(one).end.value, report.end.value) << seed;
  }
}

}  // namespace
}  // namespace regatta::fabric
