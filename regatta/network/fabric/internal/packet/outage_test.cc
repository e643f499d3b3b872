#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/internal/packet/test_simulate.h"

namespace regatta::fabric {
namespace {

// The links die, and so much later all switches lead around all that are dead.
void fail(const TestPacketSetup& one, PacketOptions& options, const std::vector<LinkId>& links,
          Seconds at, Seconds converged_after) {
  const Seconds known = at + converged_after;
  options.outages.push_back({.at = at, .dead = links, .back = {}, .routes = {}});
  options.outages.push_back({.at = known, .dead = {}, .back = {}, .routes = {}});
  std::ranges::stable_sort(options.outages, {}, [](const Outage& outage) { return outage.at; });
  FailureSet dead;
  for (Outage& outage : options.outages) {
    dead.links.insert(dead.links.end(), outage.dead.begin(), outage.dead.end());
    if (outage.dead.empty())
      outage.routes = [&one, dead] { return Routes(without(one.graph, dead)); };
  }
}

// The link to a spine that the first connection of a pair takes.
LinkId uplink_of(const TestPacketSetup& one, std::uint32_t pair) {
  const NicPair& of = one.pairs.pairs[pair];
  const auto path =
      one.routes.path(of.from, of.to, EcmpNextHop{one.pairs.tuple(pair, 0), one.seeds});
  return {static_cast<int>((*path)[1] / 2)};
}

TEST(PacketOutages, LoseWhatCrossesTheLinkUntilSwitchesKnow) {
  TestPacketSetup one(16, 4, kRate);
  const std::uint32_t pair = one.pair(0, 15);
  one.traffic.add(pair, {20'000'000});
  const LinkId failed = uplink_of(one, pair);
  PacketOptions options;
  fail(one, options, {failed}, {100e-6}, {250e-6});
  const PacketReport calm = simulate(one, {});
  const PacketReport report = simulate(one, options);
  EXPECT_EQ(report.not_arrived, 0U);
  // The packets in flight are sent again at 200, 300 and 400 us: twice in vain.
  const double in_flight = 2e-6 * kRate.value / 4126;
  EXPECT_NEAR(static_cast<double>(report.lost_on_links), 3 * in_flight, 10);
  EXPECT_EQ(report.lost, 0U);
  EXPECT_GT(report.end.value, calm.end.value + 299e-6);
  EXPECT_LT(report.end.value, calm.end.value + 310e-6);
  // The bytes of 100 us, and what was sent again; the others went over another path.
  EXPECT_LT(report.bytes_of_link[number_of({failed, true})], 110e-6 * kRate.value);
  EXPECT_EQ(report.bytes_of_link[number_of({one.nics[15], false})], 20'000'000);
}

TEST(PacketOutages, LeaveTrafficOnOtherLinksAlone) {
  TestPacketSetup one(16, 4, kRate);
  one.traffic.add(one.pair(0, 1), {20'000'000});
  one.traffic.add(one.pair(0, 15), {1'000'000}, {1e-3});
  PacketOptions options;
  const LinkId failed = uplink_of(one, 1);
  fail(one, options, {failed}, {0}, {0});
  const PacketReport report = simulate(one, options);
  EXPECT_EQ(report.lost_on_links, 0U);
  EXPECT_EQ(report.flows[0].arrived, simulate(one, {}).flows[0].arrived);
  EXPECT_EQ(report.bytes_of_link[number_of({failed, true})], 0);
}

TEST(PacketOutages, CutOffWhomNoWayReaches) {
  TestPacketSetup one(16, 4, kRate);
  one.traffic.add(one.pair(0, 15), {20'000'000});
  one.traffic.add(one.pair(4, 9), {20'000'000});
  PacketOptions options;
  const NodeId leaf = one.graph.links[one.nics[15].index()].b;
  std::vector<LinkId> links;
  for (const LinkId link : one.graph.links_of[leaf.index()])
    if (one.graph.links[link.index()].a_nic < 0) links.push_back(link);
  fail(one, options, links, {50e-6}, {10e-6});
  for (const LoadBalancing load_balancing : {LoadBalancing::kHash, LoadBalancing::kRandom}) {
    options.load_balancing = load_balancing;
    const PacketReport report = simulate(one, options);
    EXPECT_EQ(report.not_arrived, 1U);
    EXPECT_TRUE(std::isinf(report.flows[0].arrived));
    EXPECT_FALSE(std::isinf(report.flows[1].arrived));
    EXPECT_GT(report.expired, 0U);
    EXPECT_TRUE(report.deadlock.empty());
  }
}

// Until it is back, and so much longer as passes until what was lost is sent again.
TEST(PacketOutages, EndWhenTheLinkComesBack) {
  for (const bool is_of_nic : {false, true}) {
    TestPacketSetup one(16, 4, kRate);
    const std::uint32_t pair = one.pair(0, 15);
    one.traffic.add(pair, {20'000'000});
    one.traffic.add(one.pair(4, 9), {20'000'000});
    const LinkId link = is_of_nic ? one.nics[15] : uplink_of(one, pair);
    PacketOptions options;
    options.outages.push_back({.at = {100e-6}, .dead = {link}, .back = {}, .routes = {}});
    options.outages.push_back({.at = {20.1e-3}, .dead = {}, .back = {link}, .routes = {}});
    for (const LoadBalancing load_balancing : {LoadBalancing::kHash, LoadBalancing::kRandom}) {
      options.load_balancing = load_balancing;
      if (load_balancing == LoadBalancing::kRandom && !is_of_nic) continue;  // it takes other paths
      const PacketReport report = simulate(one, options);
      EXPECT_EQ(report.not_arrived, 0U);
      const double calm = simulate(one, {.load_balancing = load_balancing}).flows[0].arrived;
      EXPECT_GE(report.flows[0].arrived, calm + 20e-3 - 1e-6);
      EXPECT_LE(report.flows[0].arrived, calm + 20.1e-3 + 5e-6);
      // It is known when: nothing is tried 200 times in vain.
      EXPECT_LT(report.lost_on_links, 1500U);
    }
  }
}

TEST(PacketOutages, OfANicForGoodLeaveItsMessagesUnsent) {
  TestPacketSetup one(16, 4, kRate);
  for (const std::uint32_t from : {0U, 4U})
    one.traffic.add(one.pair(from, 15), {20'000'000});
  one.traffic.add(one.pair(0, 9), {20'000'000});
  PacketOptions options;
  options.outages.push_back({.at = {100e-6}, .dead = {one.nics[15]}, .back = {}, .routes = {}});
  for (const LoadBalancing load_balancing : {LoadBalancing::kHash, LoadBalancing::kRandom}) {
    options.load_balancing = load_balancing;
    const PacketReport report = simulate(one, options);
    EXPECT_EQ(report.not_arrived, 2U);
    // The other one has the NIC for itself from then on.
    EXPECT_NEAR(report.flows[2].arrived, 450e-6 * 4126 / 4096 + 4e-6, 5e-6);
    EXPECT_NEAR(one.received(report), 20e6 + 100e-6 * kRate.value, 0.4e6);
  }
}

TEST(PacketOutages, LoseNothingForGoodOfDrawnTraffic) {
  constexpr LoadBalancing kSpreads[] = {LoadBalancing::kHash,     LoadBalancing::kConnections,
                                        LoadBalancing::kRandom,   LoadBalancing::kRoundRobin,
                                        LoadBalancing::kFlowlets, LoadBalancing::kShortestQueue};
  for (unsigned seed = 1; seed <= 30; ++seed) {
    RandomIndex draw(seed);
    TestPacketSetup one(16, 4, kRate, 1 + seed % 3);
    one.draw_seeds(seed);
    double bytes = 0;
    for (std::uint32_t flow = 0; flow < 40; ++flow) {
      const std::uint32_t from = draw(16);
      const std::uint32_t to = draw(16);
      const long long size = draw(1'000'000);
      one.traffic.add(one.pair(from, to), {size}, {1e-9 * draw(100'000)});
      bytes += from == to ? 0 : static_cast<double>(size);
    }
    PacketOptions options{.seed = seed, .load_balancing = kSpreads[seed % 6]};
    if (seed % 2 == 0) options.pauses = PfcOptions{};
    while (options.outages.size() < 4) {
      const LinkId link{static_cast<int>(draw(static_cast<std::uint32_t>(one.graph.links.size())))};
      if (one.graph.links[link.index()].a_nic >= 0) continue;
      fail(one, options, {link}, {1e-9 * draw(100'000)}, {1e-9 * draw(200'000)});
    }
    // A NIC that comes back.
    const LinkId nic = one.nics[draw(16)];
    const Seconds back = options.outages.back().at + Seconds{1e-9 * draw(200'000)};
    options.outages.insert(options.outages.begin(),
                           {.at = {0}, .dead = {nic}, .back = {}, .routes = {}});
    options.outages.push_back({.at = back, .dead = {}, .back = {nic}, .routes = {}});
    const PacketReport report = simulate(one, options);
    EXPECT_EQ(report.not_arrived, 0U) << seed;
    EXPECT_EQ(report.expired, 0U) << seed;
    EXPECT_EQ(one.received(report), bytes) << seed;
  }
}

TEST(PacketOutages, AreRefusedWhereTheyCannotBe) {
  TestPacketSetup one(16, 4, kRate);
  one.traffic.add(one.pair(0, 15), {1});
  const auto at = [&](double seconds, LinkId link) {
    return Outage{.at = {seconds}, .dead = {link}, .back = {}, .routes = {}};
  };
  const LinkId link = uplink_of(one, 0);
  for (const std::vector<Outage>& outages :
       {std::vector{at(0, LinkId{100'000})}, std::vector{at(0, LinkId{-1})},
        std::vector{at(-1, link)}, std::vector{at(1, link), at(0.5, link)}}) {
    PacketOptions options;
    options.outages = outages;
    EXPECT_FALSE(simulate_packets(one.setup(), one.traffic, options));
  }
}

}  // namespace
}  // namespace regatta::fabric
