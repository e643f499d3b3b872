#include "regatta/network/simulate/internal/ways.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/network/simulate/internal/outages.h"
#include "regatta/network/simulate/internal/path_finder.h"

namespace regatta::simulate {
namespace {

using fabric::After;

std::uint32_t add(fabric::Paths& paths, const Way& way) {
  if (way.amounts.empty()) return paths.add(way.links);
  return paths.add(way.links, way.amounts, {way.latency});
}

// The flows of the work, each divided over the ways of its pair.
class Divider {
 public:
  Divider(const Work& work, const PathFinder& finder, std::uint32_t nothing)
      : work_(work), finder_(finder), nothing_(nothing) {}

  void divide(FlowProblem& problem) {
    const std::vector<fabric::Traffic::Flow>& flows = work_.traffic.flows();
    fabric::Traffic& traffic = problem.traffic;
    traffic.reserve(flows.size(), work_.traffic.waits().size());
    const bool is_one_to_one = finder_.ways_of_pair() == 1;
    for (const fabric::Traffic::Flow& flow : flows) {
      if (!is_one_to_one)
        problem.parts.push_back(static_cast<std::uint32_t>(traffic.flows().size()));
      add_parts(traffic, flow);
    }
    if (is_one_to_one) {
      for (const fabric::Traffic::Wait& wait : work_.traffic.waits())
        traffic.wait(wait.flow_and_after / 2, wait.before, after_of(wait));
      return;
    }
    problem.parts.push_back(static_cast<std::uint32_t>(traffic.flows().size()));
    for (const fabric::Traffic::Wait& wait : work_.traffic.waits())
      add_wait(problem, wait);
  }

 private:
  static After after_of(const fabric::Traffic::Wait& wait) {
    return static_cast<After>(wait.flow_and_after % 2);
  }

  void add_parts(fabric::Traffic& traffic, const fabric::Traffic::Flow& flow) {
    const auto bytes = static_cast<long long>(flow.bytes);
    if (flow.path == kNothing) {
      traffic.add(nothing_, {bytes}, {flow.delay});
    } else if (is_bundle(flow.path)) {
      traffic.add(finder_.first_bundle() + (flow.path & ~kBundleBits), {bytes}, {flow.delay});
    } else if (is_ring(flow.path)) {
      traffic.add(finder_.first_ring() + (flow.path & ~kRingBit), {bytes}, {flow.delay});
    } else {
      const auto ways = static_cast<long long>(finder_.ways_of_pair());
      for (long long i = 0; i < ways; ++i)
        traffic.add(flow.path * finder_.ways_of_pair() + static_cast<std::uint32_t>(i),
                    {bytes / ways + (i < bytes % ways ? 1 : 0)}, {flow.delay});
    }
  }

  // All parts of one wait for all of the other: through a flow of nothing where these are many.
  void add_wait(FlowProblem& problem, const fabric::Traffic::Wait& wait) {
    const std::uint32_t flow = wait.flow_and_after / 2;
    const std::uint32_t begin = problem.parts[wait.before];
    const std::uint32_t end = problem.parts[wait.before + 1];
    for (std::uint32_t one = problem.parts[flow]; one < problem.parts[flow + 1]; ++one) {
      if (end - begin <= 2) {
        for (std::uint32_t before = begin; before < end; ++before)
          problem.traffic.wait(one, before, after_of(wait));
      } else {
        problem.traffic.wait(one, join(problem.traffic, wait.before, begin, end, after_of(wait)));
      }
    }
  }

  std::uint32_t join(fabric::Traffic& traffic, std::uint32_t flow, std::uint32_t begin,
                     std::uint32_t end, After after) {
    std::vector<std::uint32_t>& joins = joins_[static_cast<std::size_t>(after)];
    if (joins.empty()) joins.assign(work_.traffic.flows().size(), kNothing);
    if (joins[flow] == kNothing) {
      joins[flow] = traffic.add(nothing_, {0});
      for (std::uint32_t before = begin; before < end; ++before)
        traffic.wait(joins[flow], before, after);
    }
    return joins[flow];
  }

  const Work& work_;
  const PathFinder& finder_;
  const std::uint32_t nothing_;
  std::vector<std::uint32_t> joins_[2];  // per flow, for kSent and kArrived
};

// Calls use(directed link, capacity) for what an outage changes.
template <typename Use>
void for_each_capacity(const Network& network, const Outage& outage, Use&& use) {
  for (const bool is_alive : {false, true})
    for (const LinkId link : is_alive ? outage.back : outage.dead)
      for (const bool forward : {true, false}) {
        const std::uint32_t number = fabric::number_of({link, forward});
        use(number, is_alive ? network.links.capacity[number] : 0);
      }
}

// Links that all sprayed ways cross alike, before and after each outage.
std::vector<std::uint32_t> first_alike(const Work& work, PathFinder& finder,
                                       const std::vector<Outage>& outages) {
  LinkFold fold(work.network.links);
  finder.take(work.network.routes);
  finder.show_spreads(fold);
  for (const Outage& outage : outages) {
    for_each_capacity(work.network, outage, [&](std::uint32_t link, double capacity) {
      fold.see_change(link, outage.time, capacity);
    });
    if (!outage.routes_change) continue;
    const fabric::Routes routes = routes_without(work.network, outage);
    finder.take(routes);
    finder.show_spreads(fold);
  }
  return fold.first_alike();
}

// What the outages change for each way, in turn.
void add_changes(const Work& work, PathFinder& finder, const StandIns& stand_ins,
                 const std::vector<Outage>& outages, std::vector<Way> ways, FlowProblem& problem) {
  using Kind = fabric::NetworkChange::Kind;
  for (const Outage& outage : outages) {
    for_each_capacity(work.network, outage, [&](std::uint32_t link, double capacity) {
      problem.changes.push_back(
          {.time = outage.time, .kind = Kind::kCapacity, .which = link, .capacity = capacity});
      if (const std::uint32_t* stand_in = stand_ins.find(link))
        problem.changes.push_back({.time = outage.time,
                                   .kind = Kind::kCapacity,
                                   .which = *stand_in,
                                   .capacity = capacity});
    });
    if (!outage.routes_change) continue;
    const fabric::Routes routes = routes_without(work.network, outage);
    finder.take(routes);
    for (std::uint32_t number = 0; number < ways.size(); ++number) {
      std::optional<Way> way = finder.find(number);
      if (!way || *way == ways[number]) continue;  // without a way it waits on the one it had
      problem.changes.push_back({.time = outage.time,
                                 .kind = Kind::kPath,
                                 .which = number,
                                 .other = add(problem.paths, *way)});
      ways[number] = std::move(*way);
    }
  }
}

}  // namespace

Result<FlowProblem> lead_flows(const Scenario& scenario, const Work& work, bool folds_links) {
  const Routing& routing = scenario.routing;
  if (routing.policy == RoutePolicy::kFlowlet || routing.policy == RoutePolicy::kAdaptive) {
    return Error{Code::kUnsupported,
                 fmt::format("{}: switches that look at their queues (routing.policy flowlet, "
                             "adaptive) need --level packet; the flow level knows ecmp, "
                             "destination and spray",
                             scenario.file)};
  }
  for (const Failure& failure : scenario.failures) {
    if (failure.stuck.empty()) continue;
    return Error{Code::kUnsupported,
                 fmt::format("{}:{}: flows know no pauses, so that no NIC is stuck; take --level "
                             "packet",
                             scenario.file, failure.line)};
  }
  REGATTA_TRY(outages, outages_of(scenario, work.network));
  FlowProblem problem{.links = work.network.links};
  const StandIns stand_ins(work, problem.links);
  problem.stand_ins = stand_ins.all();
  PathFinder finder(work, routing, stand_ins);
  if (folds_links && routing.policy == RoutePolicy::kSpray) {
    problem.first_alike = first_alike(work, finder, outages);
    finder.fold(problem.first_alike);
  }
  finder.take(work.network.routes);
  std::vector<Way> ways;
  for (std::uint32_t number = 0; number < finder.count(); ++number) {
    std::optional<Way> way = finder.find(number);
    if (!way) {
      const RankPair ranks = finder.ranks_of(number);
      return Error{Code::kInvalidInput,
                   fmt::format("{}: no way leads from {} to {}; give the cluster a fabric that "
                               "joins them",
                               scenario.file,
                               to_string(work.network.cluster, work.network.devices[ranks.from]),
                               to_string(work.network.cluster, work.network.devices[ranks.to]))};
    }
    add(problem.paths, *way);
    if (!outages.empty()) ways.push_back(std::move(*way));
  }
  const std::uint32_t nothing = problem.paths.add({});
  Divider(work, finder, nothing).divide(problem);
  add_changes(work, finder, stand_ins, outages, std::move(ways), problem);
  return problem;
}

}  // namespace regatta::simulate
