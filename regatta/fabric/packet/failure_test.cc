#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "regatta/fabric/packet/test_scene.h"

namespace regatta::fabric {
namespace {

constexpr BytesPerSecond kRate{50e9};

PacketReport simulate(const TestScene& one, const PacketOptions& options) {
  auto report = simulate_packets(one.scene(), one.traffic, options);
  EXPECT_TRUE(report) << report.error().message;
  return *std::move(report);
}

// The link to a spine that the first connection of a pair takes.
LinkId uplink_of(const TestScene& one, std::uint32_t pair) {
  const Pair& of = one.pairs.pairs[pair];
  const auto way = one.routes.way(of.from, of.to, ByHash{one.pairs.tuple(pair, 0), one.seeds});
  return {static_cast<int>((*way)[1] / 2)};
}

TEST(PacketFailures, LoseWhatCrossesTheLinkUntilSwitchesKnow) {
  TestScene one(16, 4, kRate);
  const std::uint32_t pair = one.pair(0, 15);
  one.traffic.add(pair, {20'000'000});
  const LinkId failed = uplink_of(one, pair);
  PacketOptions options;
  options.failures = {{.link = failed, .at = {100e-6}, .converged_after = {50e-6}}};
  const PacketReport calm = simulate(one, {});
  const PacketReport report = simulate(one, options);
  EXPECT_EQ(report.not_arrived, 0U);
  // 50 us of packets, and those that were sent again in vain.
  EXPECT_GE(report.lost_on_links, 600U);
  EXPECT_LT(report.lost_on_links, 1300U);
  EXPECT_EQ(report.lost, 0U);
  EXPECT_GT(report.end.value, calm.end.value + 45e-6);
  // The bytes of 150 us at most crossed it; the others went another way.
  EXPECT_LT(report.bytes_of_link[number_of({failed, true})], 151e-6 * kRate.value);
  EXPECT_EQ(report.bytes_of_link[number_of({one.nics[15], false})], 20'000'000);
}

TEST(PacketFailures, LeaveTrafficOnOtherLinksAlone) {
  TestScene one(16, 4, kRate);
  one.traffic.add(one.pair(0, 1), {20'000'000});
  one.traffic.add(one.pair(0, 15), {1'000'000}, {1e-3});
  PacketOptions options;
  options.failures = {{.link = uplink_of(one, 1), .at = {0}, .converged_after = {0}}};
  const PacketReport report = simulate(one, options);
  EXPECT_EQ(report.lost_on_links, 0U);
  EXPECT_EQ(report.flows[0].arrived, simulate(one, {}).flows[0].arrived);
  EXPECT_EQ(report.bytes_of_link[number_of({options.failures[0].link, true})], 0);
}

TEST(PacketFailures, CutOffWhomNoWayReaches) {
  TestScene one(16, 4, kRate);
  one.traffic.add(one.pair(0, 15), {20'000'000});
  one.traffic.add(one.pair(4, 9), {20'000'000});
  PacketOptions options;
  const NodeId leaf = one.graph.links[one.nics[15].index()].b;
  for (const LinkId link : one.graph.links_of[leaf.index()])
    if (one.graph.links[link.index()].a_nic < 0)
      options.failures.push_back({.link = link, .at = {50e-6}, .converged_after = {10e-6}});
  for (const Spread spread : {Spread::kHash, Spread::kRandom}) {
    options.spread = spread;
    const PacketReport report = simulate(one, options);
    EXPECT_EQ(report.not_arrived, 1U);
    EXPECT_TRUE(std::isinf(report.flows[0].arrived));
    EXPECT_FALSE(std::isinf(report.flows[1].arrived));
    EXPECT_GT(report.expired, 0U);
    EXPECT_TRUE(report.deadlock.empty());
  }
}

TEST(PacketFailures, LoseNothingForGoodOfDrawnTraffic) {
  constexpr Spread kSpreads[] = {Spread::kHash,       Spread::kConnections, Spread::kRandom,
                                 Spread::kRoundRobin, Spread::kFlowlets,    Spread::kShortestQueue};
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&random](std::uint32_t below) {
      return static_cast<std::uint32_t>(random() % below);
    };
    TestScene one(16, 4, kRate, 1 + seed % 3);
    one.draw_seeds(seed);
    double bytes = 0;
    for (std::uint32_t flow = 0; flow < 40; ++flow) {
      const std::uint32_t from = draw(16);
      const std::uint32_t to = draw(16);
      const long long size = draw(1'000'000);
      one.traffic.add(one.pair(from, to), {size}, {1e-9 * draw(100'000)});
      bytes += from == to ? 0 : static_cast<double>(size);
    }
    PacketOptions options{.seed = seed, .spread = kSpreads[seed % 6]};
    if (seed % 2 == 0) options.pauses = Pauses{};
    while (options.failures.size() < 2) {
      const LinkId link{static_cast<int>(draw(static_cast<std::uint32_t>(one.graph.links.size())))};
      if (one.graph.links[link.index()].a_nic >= 0) continue;
      options.failures.push_back(
          {.link = link, .at = {1e-9 * draw(100'000)}, .converged_after = {1e-9 * draw(200'000)}});
    }
    const PacketReport report = simulate(one, options);
    EXPECT_EQ(report.not_arrived, 0U) << seed;
    EXPECT_EQ(report.expired, 0U) << seed;
    EXPECT_EQ(one.received(report), bytes) << seed;
  }
}

TEST(PacketFailures, AreRefusedWhereTheyCannotBe) {
  TestScene one(16, 4, kRate);
  one.traffic.add(one.pair(0, 15), {1});
  for (const LinkFailure& failure :
       {LinkFailure{.link = one.nics[0]}, LinkFailure{.link = LinkId{100'000}},
        LinkFailure{.link = uplink_of(one, 0), .at = {-1}},
        LinkFailure{.link = uplink_of(one, 0), .converged_after = {-1}}}) {
    PacketOptions options;
    options.failures = {failure};
    EXPECT_FALSE(simulate_packets(one.scene(), one.traffic, options));
  }
}

}  // namespace
}  // namespace regatta::fabric
