// One collective on a fabric of two tiers, simulated by regatta's fabric and by SimGrid:
// regatta-peer-simgrid-flows ring|all_to_all|halving_doubling RANKS [ours|simgrid].
// Prints what each says that it takes, and what the simulation itself took.
//
// 64 MiB on each rank, one NIC of 400 Gbit/s, 1 us for each link, as many spines as servers to a
// leaf, the spine chosen by the destination. SimGrid: model CM02 without cross traffic, one wait
// for all flows of a step, for that is what it is fast at; regatta's ranks wait for their
// neighbours.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

#include "bench/peers/child_process.h"
#include "bench/peers/simgrid_engine.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/fabric/traffic.h"

namespace {

namespace sg = simgrid::s4u;

constexpr long long kBytes = 64LL << 20;
constexpr double kRate = 50e9;
constexpr double kLatency = 1e-6;

struct Case {
  std::string name;
  unsigned ranks = 0;
  unsigned per_leaf = 0;
};

double simulate_ours(const Case& one) {
  using namespace regatta::fabric;
  TestFabric fabric(static_cast<int>(one.ranks), static_cast<int>(one.per_leaf), {kRate});
  FlowGraph traffic;
  const auto path = [&](std::uint32_t from, std::uint32_t to) { return fabric.path(from, to); };
  if (one.name == "ring") add_ring_all_reduce(traffic, one.ranks, {kBytes}, path);
  if (one.name == "all_to_all") add_all_to_all(traffic, one.ranks, {kBytes}, path);
  if (one.name == "halving_doubling") add_halving_doubling(traffic, one.ranks, {kBytes}, path);
  const auto report = simulate_flows(fabric.links, fabric.paths, traffic);
  if (!report) {
    std::fprintf(stderr, "%s\n", report.error().message.c_str());
    std::exit(1);
  }
  return report->end.value;
}

// The steps of a collective: in each, pairs that send so many bytes.
struct Step {
  double bytes = 0;
  std::vector<std::pair<unsigned, unsigned>> pairs;
};

std::vector<Step> steps_of(const Case& one) {
  std::vector<Step> steps;
  const unsigned n = one.ranks;
  const auto add = [&](double bytes, auto&& peer) {
    steps.push_back({bytes, {}});
    for (unsigned rank = 0; rank < n; ++rank)
      steps.back().pairs.emplace_back(rank, peer(rank));
  };
  if (one.name == "ring")
    for (unsigned step = 0; step < 2 * (n - 1); ++step)
      add(static_cast<double>(kBytes / n), [n](unsigned rank) { return (rank + 1) % n; });
  for (unsigned d = n / 2; d > 0 && one.name == "halving_doubling"; d /= 2)
    add(static_cast<double>(kBytes * d / n), [d](unsigned rank) { return rank ^ d; });
  for (unsigned d = 1; d < n && one.name == "halving_doubling"; d *= 2)
    add(static_cast<double>(kBytes * d / n), [d](unsigned rank) { return rank ^ d; });
  if (one.name == "all_to_all") {
    steps.push_back({static_cast<double>(kBytes / n), {}});
    for (unsigned from = 0; from < n; ++from)
      for (unsigned to = 0; to < n; ++to)
        if (from != to) steps.back().pairs.emplace_back(from, to);
  }
  return steps;
}

double simulate_theirs(const Case& one) {
  regatta::peers::SimgridEngine engine;
  std::vector<sg::Host*> hosts;
  const auto add_host = [&hosts](sg::NetZone* zone, const std::vector<unsigned long>&,
                                 unsigned long id) {
    auto* const host = zone->create_host("host" + std::to_string(id), 1e9)->seal();
    hosts.push_back(host);
    return std::make_pair(host->get_netpoint(),
                          static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  const unsigned leaves = one.ranks / one.per_leaf;
  auto* const zone = sg::create_fatTree_zone(
      "fabric", nullptr, {2, {one.per_leaf, leaves}, {1, one.per_leaf}, {1, 1}},
      sg::ClusterCallbacks(add_host), kRate, kLatency, sg::Link::SharingPolicy::SPLITDUPLEX);
  zone->seal();
  sg::Actor::create("all", hosts.front(), [&] {
    for (const Step& step : steps_of(one)) {
      std::vector<sg::CommPtr> flows;
      for (const auto& [from, to] : step.pairs)
        flows.push_back(
            sg::Comm::sendto_async(hosts[from], hosts[to], static_cast<std::uint64_t>(step.bytes)));
      sg::Comm::wait_all(flows);
    }
  });
  engine.run();
  return sg::Engine::get_clock();
}

}  // namespace

int main(int argc, char** argv) {
  const std::set<std::string> names = {"ring", "all_to_all", "halving_doubling"};
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 0;
  const std::string who = argc > 3 ? argv[3] : "";
  const bool fits = argc > 2 && ranks >= 4 && names.contains(argv[1]) &&
                    (who.empty() || who == "ours" || who == "simgrid") &&
                    (argv[1] != std::string("halving_doubling") || (ranks & (ranks - 1)) == 0);
  if (!fits) {
    std::fprintf(
        stderr,
        "usage: %s ring|all_to_all|halving_doubling RANKS [ours|simgrid]; at least 4 ranks, "
        "a power of two for halving_doubling\n",
        argv[0]);
    return 2;
  }
  Case one{.name = argv[1], .ranks = static_cast<unsigned>(ranks)};
  one.per_leaf = static_cast<unsigned>(std::lround(std::sqrt(one.ranks)));
  while (one.ranks % one.per_leaf != 0)
    --one.per_leaf;
  std::printf("%s, %u ranks, %u to a leaf\n", argv[1], one.ranks, one.per_leaf);
  bool is_well = true;
  if (who != "simgrid")
    is_well = regatta::peers::run_and_report("regatta", [&] { return simulate_ours(one); });
  if (who != "ours")
    is_well =
        regatta::peers::run_and_report("SimGrid", [&] { return simulate_theirs(one); }) && is_well;
  return is_well ? 0 : 1;
}
