// An all_reduce by one connection from rank to rank, all of which cross an emulated fabric at once:
// from source ports drawn at random, as a kernel assigns them, and from planned ones. The gain of
// the plan has to be the one that the simulator predicts for the same ports. The noise of a call
// shrinks with its length: REGATTA_ALL_REDUCE_ELEMENTS, of four bytes.
//   REGATTA_ALL_REDUCE_ELEMENTS=4000000 bench_test --gtest_filter='PlannedPorts.*' --gtest_repeat=5
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/runtime/bench/test_lab_ranks.h"

namespace regatta::bench {
namespace {

constexpr int kRanks = 8;
constexpr int kCalls = 3;

std::size_t elements() {
  const char* text = std::getenv("REGATTA_ALL_REDUCE_ELEMENTS");
  return text != nullptr ? static_cast<std::size_t>(std::atoll(text)) : 1'000'000;
}

class PlannedPorts : public LabRanks {
 protected:
  PlannedPorts()
      : LabRanks(two_leaves("ports", 4, 4, 100)),
        graph_(topo::build_graph(cluster_)),
        routes_(graph_),
        seeds_(topo::hash_seeds(cluster_, graph_)),
        links_(fabric::links_of(graph_)) {
    for (int rank = 0; rank < kRanks; ++rank)
      server_of_.push_back(crossing(rank));
  }

  // The ring in rank order stays below a leaf but twice; this one crosses at every step.
  static std::size_t crossing(int place) {
    return static_cast<std::size_t>(place / 2 + place % 2 * (kRanks / 2));
  }

  struct Times {
    double measured = 0;  // seconds of a call, the median
    double simulated = 0;
    std::uint32_t most = 0;  // of the ring's connections on one uplink
  };

  // `seed` draws the ports; none: planned.
  Times all_reduce(std::optional<unsigned> seed) {
    std::vector<std::uint16_t> ring_ports(kRanks);
    std::vector<std::uint16_t> listens(kRanks);
    std::vector<double> times;
    const auto ports = [&](const std::vector<comm::RankAddress>& ranks, Rank from, Rank to) {
      const std::uint16_t port = port_of(ranks, from, to, seed);
      if (to.value == (from.value + 1) % kRanks) {
        ring_ports[from.index()] = port;
        listens[to.index()] = ranks[to.index()].port;
      }
      return comm::PlannedPorts{.ports = {port}};
    };
    run_ranks(
        [&](comm::Communicator& world) {
          std::vector<float> data(elements(), 1);
          for (int call = 0; call < kCalls; ++call) {
            ASSERT_TRUE(world.barrier().wait());
            const Seconds start = os::monotonic_now();
            ASSERT_TRUE(world
                            .all_reduce(data.data(), data.data(), data.size(), comm::DataType::kF32,
                                        comm::ReduceOp::kSum)
                            .wait());
            ASSERT_TRUE(world.barrier().wait());
            if (world.rank().value == 0) times.push_back((os::monotonic_now() - start).value);
          }
        },
        [&](comm::CommunicatorOptions& options) {
          options.connections = 1;
          options.forced.algorithm = comm::Algorithm::kRing;
          options.source_ports = ports;
        });
    std::ranges::sort(times);
    Times result = simulate(ring_ports, listens);
    result.measured = times.empty() ? 0 : times[times.size() / 2];
    return result;
  }

  std::uint16_t port_of(const std::vector<comm::RankAddress>& ranks, Rank from, Rank to,
                        std::optional<unsigned> seed) const {
    if (seed) {
      std::mt19937 random(*seed * 1000 + static_cast<unsigned>(from.value * kRanks + to.value));
      return static_cast<std::uint16_t>(
          std::uniform_int_distribution<unsigned>(49152, 65535)(random));
    }
    std::vector<fabric::RankEndpoint> places;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      places.push_back({topo::address_of(nic(rank)), ranks[rank].port});
    std::vector<std::size_t> order(ranks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::vector<fabric::RankPairs> sets{fabric::ring_of(order)};
    const auto plan = fabric::plan_rank_ports(graph_, routes_, seeds_, places, 1, sets);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan->between(from.index(), to.index())[0];
  }

  LinkId nic(std::size_t rank) const {
    return topo::nic_link(graph_, ServerId{static_cast<int>(server_of_[rank])}, 0);
  }

  Times simulate(const std::vector<std::uint16_t>& from_ports,
                 const std::vector<std::uint16_t>& to_ports) const {
    fabric::Paths paths;
    fabric::FlowGraph traffic;
    std::vector<std::uint32_t> on_link(links_.capacity.size(), 0);
    Times times;
    const auto path = [&](std::uint32_t from, std::uint32_t to) {
      const fabric::FiveTuple flow{.from = topo::address_of(nic(from)),
                                   .to = topo::address_of(nic(to)),
                                   .from_port = from_ports[from],
                                   .to_port = to_ports[to],
                                   .protocol = 6};
      const auto variant = routes_.path(nic(from), nic(to), fabric::EcmpNextHop{flow, seeds_});
      EXPECT_TRUE(variant);
      for (const std::uint32_t link : *variant)
        times.most = std::max(times.most, ++on_link[link]);
      return paths.add(*variant);
    };
    fabric::add_ring_all_reduce(traffic, kRanks, {static_cast<long long>(4 * elements())}, path);
    const auto report = fabric::simulate_flows(links_, paths, traffic);
    EXPECT_TRUE(report) << report.error().message;
    times.simulated = report->end.value;
    return times;
  }

  const topo::Graph graph_;
  const fabric::Routes routes_;
  const std::vector<std::uint32_t> seeds_;
  const fabric::Links links_;
};

TEST_F(PlannedPorts, GainWhatTheSimulatorSays) {
  const Times planned = all_reduce(std::nullopt);
  EXPECT_EQ(planned.most, 1U);
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const Times chance = all_reduce(seed);
    const double gain = chance.measured / planned.measured;
    const double said = chance.simulated / planned.simulated;
    fmt::print(
        "up to {} of 8 connections on an uplink by chance: {:.3f} s, {:.3f} s planned; {:.3f} "
        "times, "
        "simulated {:.3f}: {:+.1f} %\n",
        chance.most, chance.measured, planned.measured, gain, said, 100 * (gain / said - 1));
    EXPECT_NEAR(gain / said, 1, 0.15);
  }
}

}  // namespace
}  // namespace regatta::bench
