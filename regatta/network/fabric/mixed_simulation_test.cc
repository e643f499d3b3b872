#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/network/fabric/internal/packet/test_packet_setup.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

// Both levels, and that the bound of the mixed one holds for each flow.
std::pair<PacketReport, MixedReport> simulate(const TestPacketSetup& one,
                                              const PacketOptions& options) {
  auto packets = simulate_packets(one.setup(), one.traffic, options);
  auto mixed = simulate_mixed(one.setup(), one.traffic, options);
  EXPECT_TRUE(packets && mixed);
  double farthest = 0;
  for (std::size_t flow = 0; flow < packets->flows.size(); ++flow) {
    const FlowTimes& a = packets->flows[flow];
    const FlowTimes& b = mixed->flows[flow];
    for (const double off : {a.start - b.start, a.sent - b.sent, a.arrived - b.arrived})
      farthest = std::max(farthest, std::abs(off));
  }
  EXPECT_LE(farthest, mixed->bound.value + 1e-11);
  const double again = options.retransmit_after.value * static_cast<double>(options.outages.size());
  EXPECT_LE(mixed->bound.value, 0.02 * mixed->end.value + again);
  EXPECT_EQ(packets->packets, mixed->packets);
  EXPECT_EQ(packets->crossings, mixed->crossings);
  EXPECT_EQ(packets->bytes_of_link, mixed->bytes_of_link);
  EXPECT_EQ(packets->not_arrived, mixed->not_arrived);
  EXPECT_LE(mixed->skipped.value, mixed->end.value);
  return {*std::move(packets), *std::move(mixed)};
}

auto pairs_of(TestPacketSetup& one) {
  return [&one](std::uint32_t from, std::uint32_t to) { return one.pair(from, to); };
}

TEST(MixedSimulation, FastForwardsThroughARingAndRepeatsItsStepsWithoutError) {
  TestPacketSetup one(64, 8, kRate);
  add_ring_all_reduce(one.traffic, 64, {64LL << 20}, pairs_of(one));
  const auto [packets, mixed] = simulate(one, {});
  EXPECT_EQ(mixed.bound.value, 0);
  EXPECT_GE(mixed.fast_forwards, 1U);
  EXPECT_LT(mixed.events, packets.events / 20);
  EXPECT_GE(mixed.cycles, 10U);                      // of 8 steps: as many as servers on a leaf
  EXPECT_NEAR(mixed.end.value, 2.959e-3, 0.001e-3);  // as ns-3 says
}

TEST(MixedSimulation, FastForwardsThroughHalvingAndDoublingWhereNothingCollides) {
  TestPacketSetup one(16, 16, kRate);
  add_halving_doubling(one.traffic, 16, {64LL << 20}, pairs_of(one));
  const auto [packets, mixed] = simulate(one, {});
  EXPECT_EQ(mixed.bound.value, 0);
  EXPECT_LT(mixed.events, packets.events / 10);
}

TEST(MixedSimulation, FastForwardsWhereSendersShareTheirNic) {
  TestPacketSetup one(16, 4, kRate);
  for (const std::uint32_t to : {5U, 6U, 7U})
    one.traffic.add(one.pair(0, to), {30'000'000 + to});
  const auto [packets, mixed] = simulate(one, {});
  EXPECT_LT(mixed.events, packets.events / 10);
  EXPECT_EQ(mixed.fast_forwards, mixed.fast_forwards_by_max_min);
}

// Pauses come and go, and after a while as they did before.
TEST(MixedSimulation, FastForwardsOverPausesThatRecur) {
  TestPacketSetup one(16, 4, kRate);
  for (std::uint32_t from = 4; from < 12; ++from)
    one.traffic.add(one.pair(from, 0), {40'000'000});
  const auto [packets, mixed] = simulate(one, {.pauses = PfcOptions{}});
  EXPECT_EQ(mixed.bound.value, 0);
  EXPECT_GE(mixed.fast_forwards_by_recurrence, 1U);
  EXPECT_LT(mixed.events, packets.events / 2);
}

// With buffers without end an incast only fills them: nothing about it stays.
TEST(MixedSimulation, DoesNotFastForwardWhileQueuesGrow) {
  TestPacketSetup one(16, 4, kRate);
  for (std::uint32_t from = 4; from < 12; ++from)
    one.traffic.add(one.pair(from, 0), {4'000'000});
  const auto [packets, mixed] = simulate(one, {});
  EXPECT_EQ(mixed.fast_forwards, 0U);
  EXPECT_EQ(mixed.end.value, packets.end.value);
}

TEST(MixedSimulation, IsThePacketLevelWhereSwitchesChooseOrRatesAreControlled) {
  TestPacketSetup one(16, 4, kRate);
  one.traffic.add(one.pair(0, 15), {10'000'000});
  const PacketOptions load_balancing{.load_balancing = LoadBalancing::kRandom};
  const PacketOptions controlled{.marks = EcnOptions{}, .rate_control = Dcqcn{}};
  for (const PacketOptions& options : {load_balancing, controlled})
    EXPECT_EQ(simulate(one, options).second.fast_forwards, 0U);
}

// A permutation whose paths collide: what shares links with few others soon does the same again,
// whatever the rest does.
TEST(MixedSimulation, FastForwardsInEachPartOfTheTrafficForItself) {
  TestPacketSetup one(128, 16, kRate);
  std::vector<std::uint32_t> to(128);
  std::iota(to.begin(), to.end(), 0U);
  std::ranges::shuffle(to, std::mt19937(1));
  for (std::uint32_t from = 0; from < 128; ++from)
    one.traffic.add(one.pair(from, to[from]), {16'000'000 + from});
  const auto [packets, mixed] = simulate(one, {.pauses = PfcOptions{}});
  EXPECT_EQ(mixed.bound.value, 0);
  EXPECT_GT(packets.pauses, 1000U);
  EXPECT_GT(mixed.fast_forwards_by_recurrence, 20U);
  EXPECT_LT(mixed.events, packets.events * 6 / 10);
  EXPECT_GT(mixed.skipped.value, 0.4 * mixed.end.value);
}

TEST(MixedSimulation, SimulatesPartsAsTheWholeWhereNothingFastForwards) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomIndex draw(seed);
    TestPacketSetup one(32, 4, kRate, 1 + seed % 2);
    one.draw_seeds(seed);
    for (std::uint32_t flow = 0; flow < 24; ++flow) {
      one.traffic.add(one.pair(draw(32), draw(32)), {draw(20'000)}, {1e-9 * draw(10'000)});
      if (flow > 0 && draw(8) == 0) one.traffic.depend(flow, flow - 1);
    }
    PacketOptions options;
    if (seed % 3 == 1) options.pauses = PfcOptions{.xoff = {20'000}, .xon = {15'000}};
    if (seed % 3 == 2) options.buffer = Bytes{50'000};
    std::vector<std::uint32_t> order;
    options.on_arrived = [&](std::uint32_t flow, const FlowTimes&) { order.push_back(flow); };
    auto mixed = simulate_mixed(one.setup(), one.traffic, options);
    ASSERT_TRUE(mixed);
    EXPECT_EQ(order.size(), one.traffic.flows().size());
    EXPECT_TRUE(std::ranges::is_sorted(
        order, {}, [&](std::uint32_t flow) { return mixed->flows[flow].arrived; }));
    const auto packets = simulate_packets(one.setup(), one.traffic, options);
    EXPECT_EQ(mixed->fast_forwards, 0U);
    EXPECT_EQ(mixed->end.value, packets->end.value);
    EXPECT_EQ(mixed->pauses, packets->pauses);
    EXPECT_EQ(mixed->lost, packets->lost);
    EXPECT_EQ(mixed->longest_queue, packets->longest_queue);
    EXPECT_EQ(mixed->mean_queue, packets->mean_queue);
    for (std::size_t flow = 0; flow < packets->flows.size(); ++flow)
      EXPECT_EQ(mixed->flows[flow].arrived, packets->flows[flow].arrived);
  }
}

// Up to the outage, and after it again.
TEST(MixedSimulation, FastForwardsBetweenOutages) {
  TestPacketSetup one(16, 4, kRate);
  one.traffic.add(one.pair(0, 5), {600'000'000});
  one.traffic.add(one.pair(9, 13), {600'000'000});
  PacketOptions options;
  options.outages.push_back({.at = {1e-3}, .dead = {one.nics[13]}, .back = {}, .routes = {}});
  options.outages.push_back({.at = {11e-3}, .dead = {}, .back = {one.nics[13]}, .routes = {}});
  const auto [packets, mixed] = simulate(one, options);
  EXPECT_GE(mixed.fast_forwards, 3U);
  EXPECT_LT(mixed.events, packets.events / 10);
  EXPECT_NEAR(mixed.end.value, 10e-3 + 12e-3 * 4126 / 4096, 0.12e-3);
}

TEST(MixedSimulation, KeepsItsBoundForDrawnTraffic) {
  std::uint64_t fast_forwards = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    RandomIndex draw(seed);
    TestPacketSetup one(16, 4, kRate, 1 + seed % 2);
    one.draw_seeds(seed);
    for (std::uint32_t flow = 0; flow < 30; ++flow) {
      const std::uint32_t from = draw(16);
      const std::uint32_t pair = flow > 9 && draw(4) == 0 ? draw(9) : one.pair(from, draw(16));
      one.traffic.add(pair, {draw(5'000'000)}, {1e-9 * draw(100'000)});
      if (flow > 4 && draw(2) == 0)
        one.traffic.depend(flow, draw(flow - 1), draw(2) == 0 ? After::kSent : After::kArrived);
    }
    PacketOptions options;
    if (seed % 3 == 1) options.pauses = PfcOptions{};
    if (seed % 3 == 2) options.buffer = Bytes{1'000'000};
    if (seed % 4 == 3) {  // a link is dead for a while
      const LinkId link{static_cast<int>(draw(static_cast<std::uint32_t>(one.graph.links.size())))};
      const double at = 1e-9 * draw(300'000);
      const double back = at + 1e-9 * draw(3'000'000);
      options.outages.push_back({.at = {at}, .dead = {link}, .back = {}, .routes = {}});
      options.outages.push_back({.at = {back}, .dead = {}, .back = {link}, .routes = {}});
    }
    SCOPED_TRACE(seed);
    fast_forwards += simulate(one, options).second.fast_forwards;
  }
  EXPECT_GT(fast_forwards, 60U);
}

// A pattern of flows that wait for some of the last time, again and again.
TEST(MixedSimulation, RepeatsStepsThatAreLikeThoseBefore) {
  int repeated = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    RandomIndex draw(seed);
    TestPacketSetup one(16, 4, kRate, 1 + seed % 2);
    one.draw_seeds(seed);
    const std::uint32_t flows = 2 + draw(6);
    const std::uint32_t steps = 30 + draw(30);
    for (std::uint32_t i = 0; i < flows; ++i)
      one.pair(draw(16), draw(16));
    std::vector<std::uint32_t> sizes(flows);
    std::vector<std::uint32_t> before(flows);
    for (std::uint32_t i = 0; i < flows; ++i) {
      sizes[i] = draw(300'000);
      before[i] = draw(flows);
    }
    for (std::uint32_t step = 0; step < steps; ++step)
      for (std::uint32_t i = 0; i < flows; ++i) {
        const std::uint32_t flow = one.traffic.add(i, {sizes[i]}, {i % 2 == 0 ? 0 : 1e-6});
        if (step == 0) continue;
        one.traffic.depend(flow, (step - 1) * flows + before[i]);
        one.traffic.depend(flow, (step - 1) * flows + i, After::kSent);
      }
    PacketOptions options;
    if (seed % 3 == 1) options.pauses = PfcOptions{};
    if (seed % 3 == 2) options.buffer = Bytes{500'000};
    SCOPED_TRACE(seed);
    repeated += simulate(one, options).second.cycles > 0;
  }
  EXPECT_GT(repeated, 5);
}

// The last steps differ from those before: what is repeated ends before them.
TEST(MixedSimulation, RepeatsOnlyWhatIsAlike) {
  TestPacketSetup one(16, 4, kRate);
  add_ring_all_reduce(one.traffic, 16, {16LL << 20}, pairs_of(one));
  const std::uint32_t odd = one.traffic.add(one.pair(3, 12), {100'000});
  one.traffic.depend(odd, 16 * 20);
  const std::uint32_t last = one.traffic.add(0, {100'000});
  one.traffic.depend(last, 16 * 30 - 1);
  const auto [packets, mixed] = simulate(one, {});
  EXPECT_GT(mixed.cycles, 0U);
}

TEST(MixedSimulation, RefusesWhatThePacketLevelDoes) {
  TestPacketSetup one(4, 4, kRate);
  one.traffic.add(one.pair(0, 1), {1});
  EXPECT_FALSE(simulate_mixed(one.setup(), one.traffic, {.mtu = {0}}));
  EXPECT_FALSE(simulate_mixed(one.setup(), one.traffic, {}, {.tolerance = -1}));
  EXPECT_FALSE(simulate_mixed(one.setup(), one.traffic, {}, {.most_error = 1}));
  EXPECT_FALSE(simulate_mixed(one.setup(), one.traffic, {}, {.window = {0}}));
}

}  // namespace
}  // namespace regatta::fabric
