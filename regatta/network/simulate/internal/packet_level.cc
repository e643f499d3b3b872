#include "regatta/network/simulate/internal/packet_level.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/simulate/internal/coarse_packets.h"
#include "regatta/network/simulate/internal/topology_events.h"

namespace regatta::simulate {
namespace {

constexpr double kMostPackets = 4e9;  // of a message: fabric/packet counts them in 32 bits

fabric::LoadBalancing load_balancing_of(RoutePolicy policy) {
  switch (policy) {
    case RoutePolicy::kSpray:
      return fabric::LoadBalancing::kRandom;
    case RoutePolicy::kFlowlet:
      return fabric::LoadBalancing::kFlowlets;
    case RoutePolicy::kAdaptive:
      return fabric::LoadBalancing::kShortestQueue;
    default:
      return fabric::LoadBalancing::kHash;
  }
}

fabric::PacketOptions options_of(const Scenario& scenario) {
  const PacketSettings& packet = scenario.packet;
  fabric::PacketOptions options{.mtu = packet.mtu,
                                .header = packet.header,
                                .seed = scenario.seed,
                                .load_balancing = load_balancing_of(scenario.routing.policy),
                                .flowlet_gap = scenario.routing.flowlet_gap};
  if (packet.is_lossless) {
    options.pauses.emplace();
    // A storm begins between two polls, so that the rule is to hold for less than all of that time.
    options.storms = {.period = packet.storm_after * 0.1,
                      .rule = {.detection = packet.storm_after * 0.8}};
  } else {
    options.buffer = packet.buffer;
  }
  if (packet.has_dcqcn) {
    options.marks.emplace();
    options.rate_control.emplace();
  }
  return options;
}

Status check(const Scenario& scenario, const ScenarioWorkload& workload) {
  const auto refuse = [&](std::string_view what) {
    return Error{Code::kUnsupported, fmt::format("{}: {}", scenario.file, what)};
  };
  if (scenario.routing.policy == RoutePolicy::kDestination)
    return refuse("policy destination needs the flow level; take policy: ecmp");
  if (workload.network.graph.links.empty())
    return refuse("the cluster has no fabric, so there are no packets; take the flow level");
  if (!workload.rings.empty())
    return refuse("packets have no aggregated rings; write aggregate: false into the step");
  return {};
}

// More packets of one message than are counted; said of the item that it is of.
Status check_sizes(const Scenario& scenario, const ScenarioWorkload& workload) {
  const double most = kMostPackets * static_cast<double>(scenario.packet.mtu.value);
  for (std::size_t i = 0; i < workload.operations.size(); ++i)
    for (std::uint32_t flow = workload.operations[i].first; flow < workload.operations[i].last;
         ++flow)
      if (workload.traffic.flows()[flow].bytes >= most)
        return Error{Code::kInvalidInput,
                     fmt::format("{}:{}: a message of {:.0f} bytes in packets of {} are more than "
                                 "can be counted; take a larger packet.mtu, or the flow level",
                                 scenario.file, scenario.traffic[i].line,
                                 workload.traffic.flows()[flow].bytes, scenario.packet.mtu.value)};
  return {};
}

// An error about the whole scenario.
Error in_file(const Scenario& scenario, Error error) {
  error.message = scenario.file + ": " + error.message;
  return error;
}

Result<std::vector<fabric::Outage>> packet_outages(const Scenario& scenario,
                                                   const SimulatedNetwork& network) {
  std::vector<fabric::Outage> all;
  REGATTA_TRY(outages, topology_events_of(scenario, network));
  for (TopologyEvent& outage : outages) {
    all.push_back({.at = {outage.time}, .dead = outage.dead, .back = outage.back, .routes = {}});
    if (!outage.routes_change) continue;
    all.back().routes = [&network, outage = std::move(outage)] {
      return routes_without(network, outage);
    };
  }
  for (const Failure& failure : scenario.failures) {
    if (failure.pausing_nic.empty()) continue;
    if (!scenario.packet.is_lossless) {
      return Error{
          Code::kUnsupported,
          fmt::format("{}:{}: pausing_nic: this fabric has no pauses; write lossless: true",
                      scenario.file, failure.line)};
    }
    REGATTA_TRY(link, pausing_nic_link(scenario, failure, network.graph));
    fabric::Outage begin{.at = failure.at};
    begin.stuck = {link};
    all.push_back(begin);
    if (!std::isfinite(failure.until.value)) continue;
    fabric::Outage end{.at = failure.until};
    end.freed = {link};
    all.push_back(end);
  }
  std::ranges::stable_sort(all, {}, [](const fabric::Outage& outage) { return outage.at; });
  return all;
}

// Flows of nothing go from a NIC to itself.
fabric::FlowGraph with_paths(const fabric::FlowGraph& from, std::uint32_t nothing,
                             double scale = 1) {
  fabric::FlowGraph traffic;
  traffic.reserve(from.flows().size(), from.dependencies().size());
  for (const fabric::FlowGraph::Flow& flow : from.flows())
    traffic.add(flow.path == kNothing ? nothing : flow.path,
                {static_cast<long long>(std::ceil(flow.bytes / scale))}, {flow.delay});
  for (const fabric::FlowGraph::Dependency& wait : from.dependencies())
    traffic.depend(wait.flow_and_after / 2, wait.before,
                   static_cast<fabric::After>(wait.flow_and_after % 2));
  return traffic;
}

// Out of each device and into it, in rank order, as the network numbers them.
fabric::IntraServerLinks intra_server_links_of(const ScenarioWorkload& workload, double scale = 1) {
  fabric::IntraServerLinks intra_server_links;
  const SimulatedNetwork& network = workload.network;
  for (std::size_t link = 2 * network.graph.links.size(); link < network.links.capacity.size();
       ++link)
    intra_server_links.links.add({network.links.capacity[link] / scale},
                                 {network.links.latency[link]});
  const std::uint32_t first = network.link_out_of(0);
  for (std::size_t pair = 0; pair < workload.ranks_of.size(); ++pair) {
    intra_server_links.paths.emplace_back();
    const auto [from, to] = workload.ranks_of[pair];
    if (workload.pairs.pairs[pair].from != workload.pairs.pairs[pair].to || from == to) continue;
    intra_server_links.paths.back() = {network.link_out_of(from) - first,
                                       network.link_into(to) - first};
  }
  return intra_server_links;
}

PacketStats outcome_of(const fabric::PacketReport& report) {
  PacketStats outcome{.packets = report.packets,
                      .events = report.events,
                      .marks = report.marks,
                      .pauses = report.pauses,
                      .lost = report.lost + report.lost_on_links,
                      .reordered = report.reordered,
                      .reorder_buffer_peak = report.reorder_buffer_peak,
                      .deadlock = report.deadlock,
                      .storms = report.storms};
  const auto longest = std::ranges::max_element(report.longest_queue);
  if (longest != report.longest_queue.end()) {
    outcome.longest_queue = *longest;
    outcome.longest_queue_link = static_cast<std::uint32_t>(longest - report.longest_queue.begin());
  }
  return outcome;
}

}  // namespace

Result<PacketRun> simulate_packets(const Scenario& scenario, const ScenarioWorkload& workload,
                                   const PacketListeners& listeners) {
  REGATTA_TRY_DO(check(scenario, workload));
  REGATTA_TRY_DO(check_sizes(scenario, workload));
  fabric::NicPairs pairs = workload.pairs;
  const LinkId any{0};
  const fabric::FlowGraph traffic = with_paths(workload.traffic, pairs.add(any, any));
  const std::vector<std::uint32_t> seeds = seeds_of(workload.network, scenario.routing);
  fabric::PacketOptions options = options_of(scenario);
  REGATTA_TRY(outages, packet_outages(scenario, workload.network));
  options.outages = std::move(outages);
  options.history = listeners.history;
  options.queues = listeners.queues;
  options.on_arrived = listeners.on_arrived;
  options.stop = listeners.stop;
  const fabric::IntraServerLinks intra_server_links = intra_server_links_of(workload);
  const fabric::PacketSetup setup{workload.network.graph, workload.network.routes, seeds, pairs,
                                  &intra_server_links};
  if (scenario.level == Level::kMixed) {
    auto report = fabric::simulate_mixed(setup, traffic, options);
    if (!report) return in_file(scenario, report.error());
    PacketStats outcome = outcome_of(*report);
    outcome.bound = report->bound.value;
    outcome.skipped = report->skipped.value;
    fabric::PacketReport& times = *report;  // without what fast-forwards say, which the outcome has
    return PacketRun{std::move(times), std::move(outcome)};
  }
  auto report = fabric::simulate_packets(setup, traffic, options);
  if (!report) return in_file(scenario, report.error());
  PacketStats outcome = outcome_of(*report);
  return PacketRun{*std::move(report), std::move(outcome)};
}

Result<fabric::FlowReport> simulate_coarse_packets(const Scenario& scenario,
                                                   const ScenarioWorkload& workload,
                                                   const CoarsePacketPlan& plan,
                                                   const PacketListeners& listeners) {
  topo::Graph graph = workload.network.graph;
  for (topo::Link& link : graph.links)
    link.rate.value /= plan.scale;
  fabric::NicPairs pairs = workload.pairs;
  const LinkId any{0};
  const fabric::FlowGraph traffic = with_paths(workload.traffic, pairs.add(any, any), plan.scale);
  const std::vector<std::uint32_t> seeds = seeds_of(workload.network, scenario.routing);
  fabric::PacketOptions options = options_of(scenario);
  options.mtu = plan.most;
  options.coarse = fabric::CoarsePackets{.per_message = plan.per_message, .least = plan.least};
  options.header = {};
  options.storms.reset();
  REGATTA_TRY(outages, packet_outages(scenario, workload.network));
  options.outages = std::move(outages);
  options.history = listeners.history;
  options.on_arrived = listeners.on_arrived;
  options.stop = listeners.stop;
  const fabric::IntraServerLinks intra_server_links = intra_server_links_of(workload, plan.scale);
  auto report = fabric::simulate_packets(
      {graph, workload.network.routes, seeds, pairs, &intra_server_links}, traffic, options);
  if (!report) return in_file(scenario, report.error());
  report->unfinished = report->not_arrived;
  for (double& bytes : report->bytes_of_link)
    bytes *= plan.scale;
  if (listeners.history != nullptr) listeners.history->multiply(plan.scale);
  // NOLINTNEXTLINE(cppcoreguidelines-slicing): the flow level has no queues and pauses to report
  return fabric::FlowReport(*std::move(report));
}

}  // namespace regatta::simulate
