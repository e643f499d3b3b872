// The rates of drawn instances, as SimGrid and as regatta's fabric say:
// regatta-peer-simgrid-rates [INSTANCES [SEED]]. Prints the largest difference of a flow's rate, in
// parts of the rate; exit status 1 where it is more than 1e-9.
//
// SimGrid's model CM02 without cross traffic and without latency shares links max-min fair. Each
// flow has a pair of hosts and a route of its own; its rate is what it has sent after a second.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/peers/simgrid_engine.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/test_max_min_problem.h"

namespace {

namespace sg = simgrid::s4u;
using regatta::fabric::MaxMinProblem;

constexpr double kMostDifference = 1e-9;

struct HostPair {
  sg::Host* from;
  sg::Host* to;
};

std::vector<HostPair> add_pairs(sg::NetZone& zone, const MaxMinProblem& max_min_problem) {
  std::vector<sg::Link*> links;
  for (const double capacity : max_min_problem.capacity) {
    links.push_back(zone.create_link("link" + std::to_string(links.size()), capacity));
    links.back()->set_latency(0)->seal();
  }
  std::vector<HostPair> pairs;
  for (std::size_t flow = 0; flow < max_min_problem.flows(); ++flow) {
    const HostPair pair{zone.create_host("from" + std::to_string(flow), 1e9),
                        zone.create_host("to" + std::to_string(flow), 1e9)};
    pair.from->seal();
    pair.to->seal();
    std::vector<sg::LinkInRoute> route;
    for (std::size_t at = max_min_problem.first[flow]; at < max_min_problem.first[flow + 1]; ++at)
      route.emplace_back(links[max_min_problem.links[at]]);
    zone.add_route(pair.from->get_netpoint(), pair.to->get_netpoint(), nullptr, nullptr, route,
                   false);
    pairs.push_back(pair);
  }
  return pairs;
}

// One instance per process: SimGrid has one engine, once.
std::vector<double> simgrid_rates(const MaxMinProblem& max_min_problem) {
  regatta::peers::SimgridEngine engine;
  sg::Engine::set_config("maxmin/precision:1e-12");
  auto* const zone = sg::create_full_zone("zone");
  const std::vector<HostPair> pairs = add_pairs(*zone, max_min_problem);
  zone->seal();
  std::vector<double> rates;
  // A whole number, as SimGrid takes no other; more than any flow sends in the second, but not
  // much, for a rate is the difference of two such numbers.
  const double bytes = std::floor(1.5 * *std::ranges::max_element(max_min_problem.capacity));
  sg::Actor::create("all", pairs.front().from, [&] {
    std::vector<sg::CommPtr> flows;
    for (const HostPair& pair : pairs)
      flows.push_back(sg::Comm::sendto_async(pair.from, pair.to, bytes));
    sg::this_actor::sleep_for(1.0);
    for (const sg::CommPtr& flow : flows)
      rates.push_back((bytes - flow->get_remaining()) / sg::Engine::get_clock());
    for (const sg::CommPtr& flow : flows)
      flow->cancel();
  });
  engine.run();
  return rates;
}

std::vector<double> in_a_child(const MaxMinProblem& max_min_problem) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<double> rates = simgrid_rates(max_min_problem);
    const auto bytes = static_cast<ssize_t>(rates.size() * sizeof(double));
    _exit(write(ends[1], rates.data(), rates.size() * sizeof(double)) == bytes ? 0 : 1);
  }
  close(ends[1]);
  std::vector<double> rates(max_min_problem.flows());
  const auto wanted = static_cast<ssize_t>(rates.size() * sizeof(double));
  const bool is_whole = read(ends[0], rates.data(), rates.size() * sizeof(double)) == wanted;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return is_whole ? rates : std::vector<double>{};
}

}  // namespace

int main(int argc, char** argv) {
  const int instances = argc > 1 ? std::atoi(argv[1]) : 1000;
  if (instances < 1) {
    std::fprintf(stderr, "usage: %s [INSTANCES [SEED]], at least one instance\n", argv[0]);
    return 2;
  }
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  double most = 0;
  bool are_equal = true;
  std::size_t flows = 0;
  for (int i = 0; i < instances; ++i) {
    const MaxMinProblem max_min_problem = regatta::fabric::random_max_min_problem(random, {});
    const std::vector<double> theirs = in_a_child(max_min_problem);
    const std::vector<double> ours = regatta::fabric::max_min_rates(max_min_problem);
    if (theirs.size() != ours.size()) {
      std::fprintf(stderr, "instance %d: SimGrid said nothing\n", i);
      return 1;
    }
    flows += ours.size();
    for (std::size_t flow = 0; flow < ours.size(); ++flow) {
      const double difference = std::abs(ours[flow] - theirs[flow]) / theirs[flow];
      most = std::max(most, difference);
      are_equal = are_equal && difference <= kMostDifference;  // not where it is no number
    }
  }
  std::printf("%d instances, %zu flows: rates differ by %.2g at most (bar %.0e)\n", instances,
              flows, most, kMostDifference);
  return are_equal ? 0 : 1;
}
