#include "regatta/network/fabric/internal/packet/recorder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/network/fabric/internal/packet/test_packet_setup.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

struct Seen {
  LinkHistory links;
  QueueHistory queues;
  std::vector<std::uint32_t> arrived;
  PacketReport report;
};

Seen look(const TestPacketSetup& one, PacketOptions options, bool is_mixed) {
  Seen seen{.links = LinkHistory(one.links.capacity.size(), 64, 1e-6),
            .queues = QueueHistory(one.links.capacity.size(), 64, 1e-6),
            .arrived = {},
            .report = {}};
  options.history = &seen.links;
  options.queues = &seen.queues;
  double last = 0;
  options.on_arrived = [&](std::uint32_t flow, const FlowTimes& times) {
    EXPECT_GE(times.arrived, last);
    EXPECT_GE(times.arrived, times.sent);
    last = times.arrived;
    seen.arrived.push_back(flow);
  };
  if (is_mixed) {
    auto report = simulate_mixed(one.setup(), one.traffic, options);
    EXPECT_TRUE(report) << report.error().message;
    seen.report = *std::move(report);  // NOLINT(cppcoreguidelines-slicing): what leaps say
  } else {
    auto report = simulate_packets(one.setup(), one.traffic, options);
    EXPECT_TRUE(report) << report.error().message;
    seen.report = *std::move(report);
  }
  return seen;
}

double sum_of(const Seen& seen, std::uint32_t link) {
  double sum = 0;
  for (std::size_t bin = 0; bin < seen.links.used(); ++bin)
    sum += seen.links.bytes(link, bin);
  return sum;
}

// Each link's bins hold its bytes, and none more than the link can carry; each flow is told once.
void expect_whole(const TestPacketSetup& one, const Seen& seen) {
  for (std::uint32_t link = 0; link < one.links.capacity.size(); ++link) {
    EXPECT_NEAR(sum_of(seen, link), seen.report.bytes_of_link[link],
                1e-5 * seen.report.bytes_of_link[link] + 1);
    double deepest = 0;
    for (std::size_t bin = 0; bin < seen.links.used(); ++bin) {
      EXPECT_LE(seen.links.bytes(link, bin), kRate.value * seen.links.width() + 2 * 4126) << bin;
      deepest = std::max(deepest, seen.queues.bytes(link, bin));
    }
    EXPECT_NEAR(deepest, seen.report.longest_queue[link], 1e-6 * deepest + 1);
  }
  std::vector<std::uint32_t> flows = seen.arrived;
  std::ranges::sort(flows);
  EXPECT_TRUE(std::ranges::adjacent_find(flows) == flows.end());
  EXPECT_EQ(flows.size(), one.traffic.flows().size() - seen.report.not_arrived);
}

TEST(PacketRecorder, WritesDownWhatCrossedLinksWhen) {
  for (const bool is_mixed : {false, true}) {
    TestPacketSetup one(16, 4, kRate);
    one.traffic.add(one.pair(0, 15), {5'000'000});
    const std::uint32_t later = one.traffic.add(one.pair(0, 15), {5'000'000}, {1e-3});
    one.traffic.depend(later, 0);
    const Seen seen = look(one, {}, is_mixed);
    expect_whole(one, seen);
    const std::uint32_t nic = number_of({one.nics[0], true});
    const auto bytes_at = [&](double time) {
      return seen.links.bytes(nic, static_cast<std::size_t>(time / seen.links.width()));
    };
    const double full = kRate.value * seen.links.width() * 4096 / 4126;
    EXPECT_NEAR(bytes_at(50e-6), full, 0.02 * full);
    EXPECT_EQ(bytes_at(600e-6), 0);
    EXPECT_NEAR(bytes_at(1.15e-3), full, 0.02 * full);
  }
}

TEST(PacketRecorder, WritesDownHowLongQueuesWereWhen) {
  TestPacketSetup one(16, 4, kRate);
  for (const std::uint32_t from : {1U, 2U, 3U})
    one.traffic.add(one.pair(from, 0), {4'000'000});
  const Seen seen = look(one, {}, false);
  expect_whole(one, seen);
  const std::uint32_t down = number_of({one.nics[0], false});
  const auto bytes_at = [&](double time) {
    return seen.queues.bytes(down, static_cast<std::size_t>(time / seen.queues.width()));
  };
  // It grows by two of three while all send, and then shrinks by what the last link carries.
  EXPECT_NEAR(bytes_at(81e-6), 8e6, 0.2e6);
  EXPECT_NEAR(bytes_at(120e-6) - bytes_at(160e-6), 40e-6 * kRate.value, 0.2e6);
}

TEST(PacketRecorder, LosesNothingWhereTimeSkipsAndStepsRepeat) {
  for (const bool is_mixed : {false, true}) {
    TestPacketSetup one(16, 4, kRate);
    add_ring_all_reduce(one.traffic, 16, {64LL << 20},
                        [&](std::uint32_t from, std::uint32_t to) { return one.pair(from, to); });
    expect_whole(one, look(one, {}, is_mixed));
  }
}

TEST(PacketRecorder, LosesNothingOfDrawnTraffic) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    RandomIndex draw(seed);
    TestPacketSetup one(16, 4, kRate, 1 + seed % 2);
    one.draw_seeds(seed);
    for (std::uint32_t flow = 0; flow < 30; ++flow)
      one.traffic.add(one.pair(draw(16), draw(16)), {draw(2'000'000)}, {1e-9 * draw(5'000'000)});
    PacketOptions options;
    if (seed % 3 == 1) options.pauses = PfcOptions{};
    if (seed % 3 == 2) options.buffer = Bytes{500'000};
    if (seed % 5 == 0) {
      const LinkId link = one.nics[draw(16)];
      options.outages.push_back({.at = {1e-3}, .dead = {link}, .back = {}, .routes = {}});
      options.outages.push_back({.at = {2e-3}, .dead = {}, .back = {link}, .routes = {}});
    }
    expect_whole(one, look(one, options, seed % 2 == 0));
  }
}

// Samples are as rare as bins are wide that still hold all of the time, also where nothing is sent.
TEST(PacketRecorder, SamplesRarelyWhileNothingIsSentForLong) {
  const packet::PacketNetwork network;
  const PacketOptions options;
  packet::CalendarQueue calendar(1, 1000);
  packet::Random random(1);
  packet::LinkQueues link_queues(network, options, calendar, random);
  LinkHistory links(0, 64, 1e-6);
  QueueHistory queues(0, 64, 1e-6);
  packet::Recorder recorder(&links, &queues);
  int samples = 0;
  for (; recorder.next_at() < packet::picoseconds(1000); ++samples)
    recorder.sample(link_queues, recorder.next_at(), recorder.next_at());
  EXPECT_LT(samples, 2000);
}

// Looking changes nothing.
TEST(PacketRecorder, LeavesTheSimulationAsItIs) {
  TestPacketSetup one(16, 4, kRate);
  for (std::uint32_t from = 1; from < 16; ++from)
    one.traffic.add(one.pair(from, from / 2), {1'000'000}, {1e-6 * from});
  const PacketOptions options{
      .pauses = PfcOptions{}, .marks = EcnOptions{}, .rate_control = Dcqcn{}};
  const PacketReport seen = look(one, options, false).report;
  const auto unseen = simulate_packets(one.setup(), one.traffic, options);
  EXPECT_EQ(seen.end.value, unseen->end.value);
  EXPECT_EQ(seen.events, unseen->events);
  EXPECT_EQ(seen.longest_queue, unseen->longest_queue);
}

}  // namespace
}  // namespace regatta::fabric
