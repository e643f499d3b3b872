#include "regatta/network/simulate/internal/flow_problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/simulate/internal/path_finder.h"
#include "regatta/network/simulate/internal/topology_events.h"

namespace regatta::simulate {
namespace {

using fabric::After;

constexpr double kEndless = std::numeric_limits<double>::infinity();

// Bytes that switches hold of a sender before they pause it, or else drop packets.
double held_bytes(const PacketSettings& packet) {
  return static_cast<double>(packet.is_lossless ? fabric::PfcOptions{}.xon.value
                                                : packet.buffer.value);
}

std::uint32_t add(fabric::Paths& paths, const WeightedPath& path, const PacketSettings& packet) {
  if (path.amounts.empty()) return paths.add(path.links);
  const std::uint32_t number = paths.add(path.links, path.amounts, {path.latency});
  if (path.lost > 0)
    paths.set_packet_loss(number, {.share = path.lost,
                                   .packet = static_cast<double>(packet.mtu.value),
                                   .again_after = fabric::PacketOptions{}.retransmit_after.value,
                                   .until = kEndless});
  return number;
}

// Lets the senders of pairs go on while switches hold the rest of what they sent.
void add_send_aheads(const ScenarioWorkload& workload, std::uint32_t paths_of_pair,
                     const PacketSettings& packet, fabric::Paths& paths) {
  for (std::uint32_t pair = 0; pair < workload.sends_ahead.size(); ++pair) {
    if (!workload.sends_ahead[pair]) continue;
    const bool is_inside = workload.pairs.pairs[pair].from == workload.pairs.pairs[pair].to;
    for (std::uint32_t path = pair * paths_of_pair; path < (pair + 1) * paths_of_pair; ++path) {
      const auto links = paths.links(path);
      if (links.size() < 2) continue;
      const std::vector<std::uint32_t> rest(links.begin() + 1, links.end());
      std::uint32_t number = 0;
      if (paths.has_amounts()) {
        std::vector<double> amounts;
        for (std::uint32_t hop = 1; hop < links.size(); ++hop)
          amounts.push_back(paths.amount(path, hop));
        number = paths.add(rest, amounts, {});
      } else {
        number = paths.add(rest);
      }
      // Inside a server the link out of a device has room for all.
      paths.set_send_ahead(path,
                           {.rest = number, .bytes = is_inside ? kEndless : held_bytes(packet)});
    }
  }
}

// The flows of the workload, each divided over the paths of its pair.
class Divider {
 public:
  Divider(const ScenarioWorkload& workload, const PathFinder& finder, std::uint32_t nothing)
      : workload_(workload), finder_(finder), nothing_(nothing) {}

  void divide(FlowProblem& problem) {
    const std::vector<fabric::FlowGraph::Flow>& flows = workload_.traffic.flows();
    fabric::FlowGraph& traffic = problem.traffic;
    traffic.reserve(flows.size(), workload_.traffic.dependencies().size());
    const bool is_one_to_one = finder_.paths_of_pair() == 1;
    for (const fabric::FlowGraph::Flow& flow : flows) {
      if (!is_one_to_one)
        problem.parts.push_back(static_cast<std::uint32_t>(traffic.flows().size()));
      add_parts(traffic, flow);
    }
    if (is_one_to_one) {
      for (const fabric::FlowGraph::Dependency& wait : workload_.traffic.dependencies())
        traffic.depend(wait.flow_and_after / 2, wait.before, after_of(wait));
      return;
    }
    problem.parts.push_back(static_cast<std::uint32_t>(traffic.flows().size()));
    for (const fabric::FlowGraph::Dependency& wait : workload_.traffic.dependencies())
      add_wait(problem, wait);
  }

 private:
  static After after_of(const fabric::FlowGraph::Dependency& wait) {
    return static_cast<After>(wait.flow_and_after % 2);
  }

  void add_parts(fabric::FlowGraph& traffic, const fabric::FlowGraph::Flow& flow) {
    const auto bytes = static_cast<long long>(flow.bytes);
    if (flow.path == kNothing) {
      traffic.add(nothing_, {bytes}, {flow.delay});
    } else if (is_bundle(flow.path)) {
      traffic.add(finder_.first_bundle() + (flow.path & ~kBundleBits), {bytes}, {flow.delay});
    } else if (is_ring(flow.path)) {
      traffic.add(finder_.first_ring() + (flow.path & ~kRingBit), {bytes}, {flow.delay});
    } else {
      const auto paths = static_cast<long long>(finder_.paths_of_pair());
      for (long long i = 0; i < paths; ++i)
        traffic.add(flow.path * finder_.paths_of_pair() + static_cast<std::uint32_t>(i),
                    {bytes / paths + (i < bytes % paths ? 1 : 0)}, {flow.delay});
    }
  }

  // All parts of one wait for all of the other: through a flow of nothing where these are many.
  void add_wait(FlowProblem& problem, const fabric::FlowGraph::Dependency& wait) {
    const std::uint32_t flow = wait.flow_and_after / 2;
    const std::uint32_t begin = problem.parts[wait.before];
    const std::uint32_t end = problem.parts[wait.before + 1];
    for (std::uint32_t one = problem.parts[flow]; one < problem.parts[flow + 1]; ++one) {
      if (end - begin <= 2) {
        for (std::uint32_t before = begin; before < end; ++before)
          problem.traffic.depend(one, before, after_of(wait));
      } else {
        problem.traffic.depend(one, join(problem.traffic, wait.before, begin, end, after_of(wait)));
      }
    }
  }

  std::uint32_t join(fabric::FlowGraph& traffic, std::uint32_t flow, std::uint32_t begin,
                     std::uint32_t end, After after) {
    std::vector<std::uint32_t>& joins = joins_[static_cast<std::size_t>(after)];
    if (joins.empty()) joins.assign(workload_.traffic.flows().size(), kNothing);
    if (joins[flow] == kNothing) {
      joins[flow] = traffic.add(nothing_, {0});
      for (std::uint32_t before = begin; before < end; ++before)
        traffic.depend(joins[flow], before, after);
    }
    return joins[flow];
  }

  const ScenarioWorkload& workload_;
  const PathFinder& finder_;
  const std::uint32_t nothing_;
  std::vector<std::uint32_t> joins_[2];  // per flow, for kSent and kArrived
};

// Calls use(directed link, capacity) for what an outage changes.
template <typename Use>
void for_each_capacity(const SimulatedNetwork& network, const TopologyEvent& outage, Use&& use) {
  for (const bool is_alive : {false, true})
    for (const LinkId link : is_alive ? outage.back : outage.dead)
      for (const bool forward : {true, false}) {
        const std::uint32_t number = fabric::number_of({link, forward});
        use(number, is_alive ? network.links.capacity[number] : 0);
      }
}

// The cables that are dead during the events of a topology, one after the other.
class DeadCables {
 public:
  explicit DeadCables(std::size_t cables) : is_dead_(cables, false) {}

  const std::vector<bool>& after(const TopologyEvent& event) {
    for (const LinkId link : event.dead)
      is_dead_[link.index()] = true;
    for (const LinkId link : event.back)
      is_dead_[link.index()] = false;
    return is_dead_;
  }

 private:
  std::vector<bool> is_dead_;
};

// Whether paths may change: those of sprayed packets do as soon as a link dies.
bool changes_paths(const TopologyEvent& event, RoutePolicy policy) {
  return event.routes_change || policy == RoutePolicy::kSpray;
}

// Links that all sprayed paths cross alike, before and after each outage.
std::vector<std::uint32_t> link_representatives(const ScenarioWorkload& workload,
                                                PathFinder& finder,
                                                const std::vector<TopologyEvent>& outages) {
  LinkClasses classes(workload.network.links);
  finder.set_routes(workload.network.routes);
  finder.add_sprayed_paths(classes);
  DeadCables dead(workload.network.graph.links.size());
  for (const TopologyEvent& outage : outages) {
    for_each_capacity(workload.network, outage, [&](std::uint32_t link, double capacity) {
      classes.add_change(link, outage.time, capacity);
    });
    const fabric::Routes routes = routes_without(workload.network, outage);
    finder.set_routes(routes);
    finder.set_dead(dead.after(outage));
    finder.add_sprayed_paths(classes);
  }
  finder.set_dead({});
  return classes.link_representatives();
}

// Adds the changes that the outages make to each path, in turn.
void add_changes(const ScenarioWorkload& workload, PathFinder& finder,
                 const AggregateLinks& aggregate_links, const std::vector<TopologyEvent>& outages,
                 const Scenario& scenario, std::vector<WeightedPath> paths, FlowProblem& problem) {
  const RoutePolicy policy = scenario.routing.policy;
  std::map<std::uint32_t, std::uint32_t> lossy;  // by path: the path that it takes now
  using Kind = fabric::NetworkChange::Kind;
  DeadCables dead(workload.network.graph.links.size());
  for (const TopologyEvent& outage : outages) {
    for_each_capacity(workload.network, outage, [&](std::uint32_t link, double capacity) {
      problem.changes.push_back(
          {.time = outage.time, .kind = Kind::kCapacity, .which = link, .capacity = capacity});
      if (const std::uint32_t* aggregate_link = aggregate_links.find(link))
        problem.changes.push_back({.time = outage.time,
                                   .kind = Kind::kCapacity,
                                   .which = *aggregate_link,
                                   .capacity = capacity});
    });
    const std::vector<bool>& is_dead = dead.after(outage);
    if (!changes_paths(outage, policy)) continue;
    const fabric::Routes routes = routes_without(workload.network, outage);
    finder.set_routes(routes);
    finder.set_dead(is_dead);
    for (std::uint32_t number = 0; number < paths.size(); ++number) {
      std::optional<WeightedPath> path = finder.find(number);
      if (!path || *path == paths[number]) continue;  // without a path it waits on the one it had
      const std::uint32_t other = add(problem.paths, *path, scenario.packet);
      problem.changes.push_back(
          {.time = outage.time, .kind = Kind::kPath, .which = number, .other = other});
      if (const auto before = lossy.find(number); before != lossy.end()) {
        problem.paths.end_packet_loss(before->second, outage.time);
        lossy.erase(before);
      }
      if (path->lost > 0) lossy[number] = other;
      paths[number] = std::move(*path);
    }
  }
}

}  // namespace

Result<FlowProblem> build_flow_problem(const Scenario& scenario, const ScenarioWorkload& workload,
                                       bool merges_links) {
  const Routing& routing = scenario.routing;
  if (routing.policy == RoutePolicy::kFlowlet || routing.policy == RoutePolicy::kAdaptive) {
    return Error{Code::kUnsupported,
                 fmt::format("{}: switches that look at their queues (routing.policy flowlet, "
                             "adaptive) need --level packet; the flow level knows ecmp, "
                             "destination and spray",
                             scenario.file)};
  }
  for (const Failure& failure : scenario.failures) {
    if (failure.pausing_nic.empty()) continue;
    return Error{Code::kUnsupported,
                 fmt::format("{}:{}: pausing_nic: the flow level has no pauses; take --level "
                             "packet",
                             scenario.file, failure.line)};
  }
  REGATTA_TRY(outages, topology_events_of(scenario, workload.network));
  FlowProblem problem{.links = workload.network.links};
  const AggregateLinks aggregate_links(workload, problem.links);
  problem.aggregate_links = aggregate_links.all();
  PathFinder finder(workload, routing, aggregate_links);
  if (merges_links && routing.policy == RoutePolicy::kSpray) {
    problem.link_representatives = link_representatives(workload, finder, outages);
    finder.merge_links(problem.link_representatives);
  }
  finder.set_routes(workload.network.routes);
  std::vector<WeightedPath> paths;
  for (std::uint32_t number = 0; number < finder.count(); ++number) {
    std::optional<WeightedPath> path = finder.find(number);
    if (!path) {
      const EndpointPair ranks = finder.ranks_of(number);
      return Error{
          Code::kInvalidInput,
          fmt::format("{}: no way leads from {} to {}; give the cluster a fabric that "
                      "joins them",
                      scenario.file,
                      to_string(workload.network.cluster, workload.network.devices[ranks.from]),
                      to_string(workload.network.cluster, workload.network.devices[ranks.to]))};
    }
    add(problem.paths, *path, scenario.packet);
    if (!outages.empty()) paths.push_back(std::move(*path));
  }
  const std::uint32_t nothing = problem.paths.add({});
  Divider(workload, finder, nothing).divide(problem);
  add_send_aheads(workload, finder.paths_of_pair(), scenario.packet, problem.paths);
  add_changes(workload, finder, aggregate_links, outages, scenario, std::move(paths), problem);
  return problem;
}

}  // namespace regatta::simulate
