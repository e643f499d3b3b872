#include <algorithm>

#include <gmock/gmock.h>

#include "regatta/network/fabric/internal/packet/test_simulate.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

constexpr PfcStormOptions kQuick{.period = {100e-6},
                                 .rule = {.detection = {800e-6}, .recovery = {1e-3}}};

// Servers of two other leaves send to server 0, and one to its neighbour.
TestPacketSetup incast(long long bytes) {
  TestPacketSetup one(16, 4, kRate);
  for (const std::uint32_t from : {4U, 5U, 8U, 9U})
    one.traffic.add(one.pair(from, 0), {bytes});
  one.traffic.add(one.pair(12, 13), {bytes});
  return one;
}

PacketOptions with_a_stuck_nic(const TestPacketSetup& one, double from, double to) {
  PacketOptions options{.pauses = PfcOptions{}};
  options.outages.push_back(
      {.at = {from}, .dead = {}, .back = {}, .routes = {}, .stuck = {one.nics[0]}, .freed = {}});
  if (to > 0)
    options.outages.push_back(
        {.at = {to}, .dead = {}, .back = {}, .routes = {}, .stuck = {}, .freed = {one.nics[0]}});
  options.storms = kQuick;
  return options;
}

TEST(PfcStorms, AreTracedToTheNicThatLetsNothingIn) {
  const TestPacketSetup one = incast(20'000'000);
  const PacketReport report = simulate(one, with_a_stuck_nic(one, 200e-6, 5e-3));
  EXPECT_EQ(report.not_arrived, 0U);
  ASSERT_EQ(report.storms.size(), 1U);
  const PfcStorm& storm = report.storms[0];
  EXPECT_NEAR(storm.since.value, 250e-6, 60e-6);
  EXPECT_NEAR(storm.at.value - storm.since.value, 800e-6, 101e-6);
  ASSERT_TRUE(storm.over);
  EXPECT_GT(storm.over->value, 6e-3);
  EXPECT_EQ(storm.tree.root, 0U);
  EXPECT_THAT(storm.tree.cycle, IsEmpty());
  EXPECT_EQ(storm.tree.links.front(), number_of({one.nics[0], false}));
  for (const std::uint32_t held : {4U, 5U, 8U, 9U})
    EXPECT_THAT(storm.tree.links, Contains(number_of({one.nics[held], true})));
  for (const std::uint32_t free : {12U, 13U, 1U})
    EXPECT_THAT(storm.tree.links, Not(Contains(number_of({one.nics[free], true}))));
}

TEST(PfcStorms, ThatNeverEndAreFoundWhereNothingMovesAnyMore) {
  const TestPacketSetup one = incast(20'000'000);
  const PacketOptions options = with_a_stuck_nic(one, 200e-6, 0);
  const PacketReport packets = simulate(one, options);
  const auto mixed = simulate_mixed(one.setup(), one.traffic, options);
  ASSERT_TRUE(mixed) << mixed.error().message;
  const PacketReport* const reports[] = {&packets, &*mixed};
  for (const PacketReport* report : reports) {
    EXPECT_EQ(report->not_arrived, 4U);
    EXPECT_THAT(report->deadlock, IsEmpty());
    ASSERT_EQ(report->storms.size(), 1U);
    EXPECT_FALSE(report->storms[0].over);
    EXPECT_EQ(report->storms[0].tree.root, 0U);
    EXPECT_LT(report->storms[0].at.value, 1.3e-3);
  }
}

// 13 and 12 go on as fast as ever, so that the mixed level leaps over all but the last polls.
TEST(PfcStorms, AreOverWhenAPollWouldSaySoThoughItIsSkipped) {
  TestPacketSetup one(16, 4, kRate);
  one.traffic.add(one.pair(4, 0), {20'000'000});
  one.traffic.add(one.pair(12, 13), {2'000'000'000});
  const PacketOptions options = with_a_stuck_nic(one, 200e-6, 5e-3);
  const PacketReport packets = simulate(one, options);
  const auto mixed = simulate_mixed(one.setup(), one.traffic, options);
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_GT(mixed->skipped.value, 10e-3);
  ASSERT_EQ(mixed->storms.size(), 1U);
  ASSERT_TRUE(packets.storms.at(0).over && mixed->storms[0].over);
  EXPECT_NEAR(mixed->storms[0].over->value, packets.storms[0].over->value, 201e-6);
}

// The mixed level polls also in the time that it skips: each storm of it has the same origin, and
// begins, is detected and is over within two polls of the same times.
TEST(PfcStorms, AreThoseOfThePacketLevelForDrawnTraffic) {
  double skipped = 0;
  int storms = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomIndex draw(seed);
    TestPacketSetup one(16, 4, kRate);
    one.draw_seeds(seed);
    PacketOptions options{.pauses = PfcOptions{}};
    options.storms = kQuick;
    for (std::uint32_t nic = 0; nic <= seed % 2; ++nic) {
      for (std::uint32_t i = 0; i < 1 + draw(3); ++i)
        one.traffic.add(one.pair(2 + draw(14), nic), {1'000'000 + draw(20'000'000)},
                        {1e-9 * draw(1'000'000)});
      const double at = 1e-9 * draw(2'000'000);
      const double free = at + 1e-3 + 1e-9 * draw(9'000'000);
      const bool is_freed = draw(4) != 0;
      Outage stuck{.at = {at}};
      stuck.stuck = {one.nics[nic]};
      options.outages.push_back(stuck);
      if (!is_freed) continue;
      Outage freed{.at = {free}};
      freed.freed = {one.nics[nic]};
      options.outages.push_back(freed);
    }
    std::ranges::stable_sort(options.outages, {}, &Outage::at);
    for (std::uint32_t i = 0; i < draw(4); ++i)
      one.traffic.add(one.pair(2 + draw(14), 2 + draw(14)), {100'000'000 + draw(900'000'000)},
                      {1e-9 * draw(3'000'000)});
    const PacketReport packets = simulate(one, options);
    const auto mixed = simulate_mixed(one.setup(), one.traffic, options);
    ASSERT_TRUE(mixed) << mixed.error().message;
    skipped += mixed->skipped.value / std::max(mixed->end.value, 1e-9);
    ASSERT_EQ(mixed->storms.size(), packets.storms.size());
    for (std::size_t i = 0; i < packets.storms.size(); ++i) {
      const PfcStorm& of = packets.storms[i];
      const PfcStorm& same = mixed->storms[i];
      ++storms;
      EXPECT_EQ(same.tree.root, of.tree.root);
      EXPECT_NEAR(same.since.value, of.since.value, 201e-6);
      EXPECT_NEAR(same.at.value, of.at.value, 201e-6);
      EXPECT_EQ(same.is_held, of.is_held);
      ASSERT_EQ(same.over.has_value(), of.over.has_value());
      EXPECT_NEAR(same.over.value_or(Seconds{}).value, of.over.value_or(Seconds{}).value, 201e-6);
    }
  }
  EXPECT_GT(storms, 40);
  EXPECT_GT(skipped, 10);
}

TEST(PfcStorms, HoldNothingAtTheEndOfWhatArrivedBeforeTheyWereOver) {
  const TestPacketSetup one = incast(2'000'000);
  const PacketReport freed = simulate(one, with_a_stuck_nic(one, 10e-6, 5e-3));
  EXPECT_EQ(freed.not_arrived, 0U);
  ASSERT_EQ(freed.storms.size(), 1U);
  EXPECT_FALSE(freed.storms[0].over);
  EXPECT_FALSE(freed.storms[0].is_held);
  const PacketReport stuck = simulate(one, with_a_stuck_nic(one, 10e-6, 0));
  ASSERT_EQ(stuck.storms.size(), 1U);
  EXPECT_TRUE(stuck.storms[0].is_held);
}

// By the published rule: packets wait, none goes, and pauses hold it all the time.
TEST(PfcStorms, AreNotWhatABusyNetworkPauses) {
  const TestPacketSetup one = incast(100'000'000);
  PacketOptions options{.pauses = PfcOptions{}};
  options.storms =
      PfcStormOptions{.period = {20e-6}, .rule = {.detection = {60e-6}, .recovery = {100e-6}}};
  const PacketReport report = simulate(one, options);
  EXPECT_GT(report.pauses, 1000U);
  EXPECT_THAT(report.storms, IsEmpty());
}

TEST(PfcStorms, NameTheCycleOfADeadlock) {
  TestPacketSetup one(16, 4, kRate);
  for (std::uint32_t from = 0; from < 16; ++from)
    one.traffic.add(one.pair(from, (from + 4) % 16), {4'000'000});
  const NodeId leaf = one.routes.leaves()[0];
  const NodeId to = one.routes.leaves()[1];
  const std::uint32_t up = one.routes.next_hops(leaf, to)[0];
  one.routes.set_next_hops(leaf, to, std::vector{up});
  one.routes.set_next_hops(one.graph.links[up / 2].b, to, std::vector{up ^ 1U});
  PacketOptions options{.pauses = PfcOptions{}};
  options.storms = PfcStormOptions{.period = {0.1}, .rule = kPublishedPfcWatchdogOptions};
  const PacketReport report = simulate(one, options);
  ASSERT_FALSE(report.deadlock.empty());
  ASSERT_EQ(report.storms.size(), 1U);
  EXPECT_THAT(report.storms[0].tree.cycle, testing::UnorderedElementsAreArray(report.deadlock));
  EXPECT_NEAR(report.storms[0].at.value, 0.3, 1e-9);
  EXPECT_FALSE(report.storms[0].over);
}

}  // namespace
}  // namespace regatta::fabric
