#include "regatta/network/simulate/internal/packets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "regatta/network/fabric/mixed_simulation.h"
#include "regatta/network/simulate/internal/outages.h"

namespace regatta::simulate {
namespace {

constexpr double kMostPackets = 4e9;  // of a message: fabric/packet counts them in 32 bits

fabric::Spread spread_of(RoutePolicy policy) {
  switch (policy) {
    case RoutePolicy::kSpray:
      return fabric::Spread::kRandom;
    case RoutePolicy::kFlowlet:
      return fabric::Spread::kFlowlets;
    case RoutePolicy::kAdaptive:
      return fabric::Spread::kShortestQueue;
    default:
      return fabric::Spread::kHash;
  }
}

fabric::PacketOptions options_of(const Scenario& scenario) {
  const PacketSettings& packet = scenario.packet;
  fabric::PacketOptions options{.mtu = packet.mtu,
                                .header = packet.header,
                                .seed = scenario.seed,
                                .spread = spread_of(scenario.routing.policy),
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

Status check(const Scenario& scenario, const Work& work) {
  const auto refuse = [&](std::string_view what) {
    return Error{Code::kUnsupported, fmt::format("{}: {}", scenario.file, what)};
  };
  if (scenario.routing.policy == RoutePolicy::kDestination)
    return refuse("ways by destination are simulated at the flow level alone; take policy: ecmp");
  if (work.network.graph.links.empty())
    return refuse("the cluster has no fabric, so there are no packets; take the flow level");
  if (!work.rings.empty())
    return refuse("packets do not move in folded rings; write fold: false into the step");
  return {};
}

// More packets of one message than are counted; said of the item that it is of.
Status check_sizes(const Scenario& scenario, const Work& work) {
  const double most = kMostPackets * static_cast<double>(scenario.packet.mtu.value);
  for (std::size_t i = 0; i < work.operations.size(); ++i)
    for (std::uint32_t flow = work.operations[i].first; flow < work.operations[i].last; ++flow)
      if (work.traffic.flows()[flow].bytes >= most)
        return Error{Code::kInvalidInput,
                     fmt::format("{}:{}: a message of {:.0f} bytes in packets of {} are more than "
                                 "can be counted; take a larger packet.mtu, or the flow level",
                                 scenario.file, scenario.traffic[i].line,
                                 work.traffic.flows()[flow].bytes, scenario.packet.mtu.value)};
  return {};
}

// What the packets say of a whole scenario.
Error in_file(const Scenario& scenario, Error error) {
  error.message = scenario.file + ": " + error.message;
  return error;
}

Result<std::vector<fabric::Outage>> packet_outages(const Scenario& scenario,
                                                   const Network& network) {
  std::vector<fabric::Outage> all;
  REGATTA_TRY(outages, outages_of(scenario, network));
  for (Outage& outage : outages) {
    all.push_back({.at = {outage.time}, .dead = outage.dead, .back = outage.back, .routes = {}});
    if (!outage.routes_change) continue;
    all.back().routes = [&network, outage = std::move(outage)] {
      return routes_without(network, outage);
    };
  }
  for (const Failure& failure : scenario.failures) {
    if (failure.stuck.empty()) continue;
    if (!scenario.packet.is_lossless) {
      return Error{Code::kUnsupported,
                   fmt::format("{}:{}: a NIC that is stuck pauses its switch, and this fabric has "
                               "no pauses; write lossless: true",
                               scenario.file, failure.line)};
    }
    REGATTA_TRY(link, stuck_link(scenario, failure, network.graph));
    fabric::Outage begin{.at = failure.at};
    begin.stuck = {link};
    all.push_back(begin);
    if (!std::isfinite(failure.back.value)) continue;
    fabric::Outage end{.at = failure.back};
    end.freed = {link};
    all.push_back(end);
  }
  std::ranges::stable_sort(all, {}, [](const fabric::Outage& outage) { return outage.at; });
  return all;
}

// Flows of nothing go from a NIC to itself.
fabric::Traffic with_paths(const fabric::Traffic& from, std::uint32_t nothing) {
  fabric::Traffic traffic;
  traffic.reserve(from.flows().size(), from.waits().size());
  for (const fabric::Traffic::Flow& flow : from.flows())
    traffic.add(flow.path == kNothing ? nothing : flow.path, {static_cast<long long>(flow.bytes)},
                {flow.delay});
  for (const fabric::Traffic::Wait& wait : from.waits())
    traffic.wait(wait.flow_and_after / 2, wait.before,
                 static_cast<fabric::After>(wait.flow_and_after % 2));
  return traffic;
}

// Out of each device and into it, in rank order, as the network numbers them.
fabric::Pipes pipes_of(const Work& work) {
  fabric::Pipes pipes;
  const Network& network = work.network;
  for (std::size_t link = 2 * network.graph.links.size(); link < network.links.capacity.size();
       ++link)
    pipes.links.add({network.links.capacity[link]}, {network.links.latency[link]});
  const std::uint32_t first = network.link_out_of(0);
  for (std::size_t pair = 0; pair < work.ranks_of.size(); ++pair) {
    pipes.ways.emplace_back();
    const auto [from, to] = work.ranks_of[pair];
    if (work.pairs.pairs[pair].from != work.pairs.pairs[pair].to || from == to) continue;
    pipes.ways.back() = {network.link_out_of(from) - first, network.link_into(to) - first};
  }
  return pipes;
}

PacketOutcome outcome_of(const fabric::PacketReport& report) {
  PacketOutcome outcome{.packets = report.packets,
                        .events = report.events,
                        .marks = report.marks,
                        .pauses = report.pauses,
                        .lost = report.lost + report.lost_on_links,
                        .reordered = report.reordered,
                        .most_held_back = report.most_held_back,
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

Result<PacketRun> simulate_packets(const Scenario& scenario, const Work& work,
                                   const PacketListeners& listeners) {
  REGATTA_TRY_DO(check(scenario, work));
  REGATTA_TRY_DO(check_sizes(scenario, work));
  fabric::Pairs pairs = work.pairs;
  const LinkId any{0};
  const fabric::Traffic traffic = with_paths(work.traffic, pairs.add(any, any));
  const std::vector<std::uint32_t> seeds = seeds_of(work.network, scenario.routing);
  fabric::PacketOptions options = options_of(scenario);
  REGATTA_TRY(outages, packet_outages(scenario, work.network));
  options.outages = std::move(outages);
  options.history = listeners.history;
  options.queues = listeners.queues;
  options.on_arrived = listeners.on_arrived;
  const fabric::Pipes pipes = pipes_of(work);
  const fabric::PacketScene scene{work.network.graph, work.network.routes, seeds, pairs, &pipes};
  if (scenario.level == Level::kMixed) {
    auto report = fabric::simulate_mixed(scene, traffic, options);
    if (!report) return in_file(scenario, report.error());
    PacketOutcome outcome = outcome_of(*report);
    outcome.bound = report->bound.value;
    outcome.leapt = report->leapt.value;
    fabric::PacketReport& times = *report;  // without what leaps say, which the outcome has
    return PacketRun{std::move(times), std::move(outcome)};
  }
  auto report = fabric::simulate_packets(scene, traffic, options);
  if (!report) return in_file(scenario, report.error());
  PacketOutcome outcome = outcome_of(*report);
  return PacketRun{*std::move(report), std::move(outcome)};
}

}  // namespace regatta::simulate
