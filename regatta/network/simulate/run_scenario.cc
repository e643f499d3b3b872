#include "regatta/network/simulate/run_scenario.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "regatta/network/diag/polarisation.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/simulate/internal/coarse_packets.h"
#include "regatta/network/simulate/internal/flow_problem.h"
#include "regatta/network/simulate/internal/message_reporter.h"
#include "regatta/network/simulate/internal/packet_level.h"
#include "regatta/network/simulate/internal/port_planning.h"
#include "regatta/network/simulate/internal/simulation_statistics.h"

namespace regatta::simulate {
namespace {

constexpr std::size_t kBins = 240;
constexpr double kFirstWidth = 1e-6;

// The times of the work's flows from those of their parts.
std::vector<fabric::FlowTimes> whole_times(const ScenarioWorkload& workload,
                                           const FlowProblem& problem,
                                           std::vector<fabric::FlowTimes> parts) {
  if (problem.parts.empty()) {
    parts.resize(workload.traffic.flows().size());
    return parts;
  }
  std::vector<fabric::FlowTimes> flows(workload.traffic.flows().size());
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    fabric::FlowTimes& whole = flows[flow];
    whole.start = std::numeric_limits<double>::infinity();
    for (std::uint32_t part = problem.parts[flow]; part < problem.parts[flow + 1]; ++part) {
      whole.start = std::min(whole.start, parts[part].start);
      whole.sent = std::max(whole.sent, parts[part].sent);
      whole.arrived = std::max(whole.arrived, parts[part].arrived);
    }
  }
  return flows;
}

// As the counters of real switches would show it.
void add_polarisation(SimulationResult& outcome, const topo::Graph& graph) {
  std::vector<std::uint64_t> bytes(2 * graph.links.size());
  for (std::size_t link = 0; link < bytes.size(); ++link)
    bytes[link] = static_cast<std::uint64_t>(outcome.links[link].bytes);
  outcome.polarisation = diag::find_polarisation(graph, bytes);
}

Status run_flows(const Scenario& scenario, const ScenarioWorkload& workload,
                 const SimulateOptions& options, SimulationResult& outcome) {
  REGATTA_TRY(problem, build_flow_problem(scenario, workload));
  const SimulatedNetwork& network = workload.network;
  const std::size_t links = options.keeps_history ? problem.links.capacity.size() : 0;
  outcome.history = fabric::LinkHistory(links, kBins, kFirstWidth);
  MessageReporter reporter(workload, problem, options);
  REGATTA_TRY(report,
              fabric::simulate_flows(
                  problem.links, problem.paths, problem.traffic,
                  {.changes = problem.changes,
                   .history = options.keeps_history ? &outcome.history : nullptr,
                   .on_sent = [&](std::uint32_t part,
                                  const fabric::FlowTimes& times) { reporter.report(part, times); },
                   .resolution = scenario.resolution.value,
                   .stop = options.stop}));
  const auto carry = [&](std::uint32_t from, std::uint32_t to) {
    report.bytes_of_link[to] += report.bytes_of_link[from];
    if (options.keeps_history) outcome.history.add_all(from, to);
  };
  for (std::uint32_t link = 0; link < problem.link_representatives.size(); ++link)
    if (problem.link_representatives[link] != link) carry(problem.link_representatives[link], link);
  for (const auto& [aggregate_link, link] : problem.aggregate_links)
    carry(aggregate_link, link);
  report.bytes_of_link.resize(network.links.capacity.size());
  outcome.unfinished = report.unfinished;
  for (std::uint32_t flow = 0; !workload.bundles.empty() && flow < report.flows.size(); ++flow)
    if (std::isinf(report.flows[flow].arrived))
      outcome.unfinished +=
          std::max<std::uint64_t>(workload.messages_of(workload.traffic.flows()[flow].path), 1) - 1;
  outcome.end = report.end.value;
  if (report.is_stopped) outcome.stopped_at = outcome.end;
  add_statistics(outcome, workload, whole_times(workload, problem, std::move(report.flows)),
                 report.bytes_of_link);
  return {};
}

Status run_coarse_packets(const Scenario& scenario, const ScenarioWorkload& workload,
                          const CoarsePacketPlan& plan, const SimulateOptions& options,
                          SimulationResult& outcome) {
  const std::size_t links = options.keeps_history ? workload.network.links.capacity.size() : 0;
  outcome.history = fabric::LinkHistory(links, kBins, kFirstWidth);
  MessageReporter reporter(workload, FlowProblem{}, options);
  REGATTA_TRY(
      report,
      simulate_coarse_packets(
          scenario, workload, plan,
          {.history = options.keeps_history ? &outcome.history : nullptr,
           .on_arrived = [&](std::uint32_t flow,
                             const fabric::FlowTimes& times) { reporter.report(flow, times); },
           .stop = options.stop}));
  outcome.unfinished = report.unfinished;
  outcome.end = report.end.value;
  if (report.is_stopped) outcome.stopped_at = outcome.end;
  report.flows.resize(workload.traffic.flows().size());
  report.bytes_of_link.resize(workload.network.links.capacity.size());
  add_statistics(outcome, workload, report.flows, report.bytes_of_link);
  return {};
}

Status run_packets(const Scenario& scenario, const ScenarioWorkload& workload,
                   const SimulateOptions& options, SimulationResult& outcome) {
  const std::size_t links = options.keeps_history ? workload.network.links.capacity.size() : 0;
  outcome.history = fabric::LinkHistory(links, kBins, kFirstWidth);
  outcome.queues = fabric::QueueHistory(links, kBins, kFirstWidth);
  const FlowProblem whole;
  MessageReporter reporter(workload, whole, options);
  PacketListeners listeners{
      .on_arrived = [&](std::uint32_t flow,
                        const fabric::FlowTimes& times) { reporter.report(flow, times); },
      .stop = options.stop};
  if (options.keeps_history) {
    listeners.history = &outcome.history;
    listeners.queues = &outcome.queues;
  }
  REGATTA_TRY(report, simulate_packets(scenario, workload, listeners));
  outcome.unfinished = report.times.not_arrived;
  outcome.end = report.times.end.value;
  if (report.times.is_stopped) outcome.stopped_at = outcome.end;
  outcome.packets = std::move(report.outcome);
  std::vector<double> bytes = std::move(report.times.bytes_of_link);
  bytes.resize(workload.network.links.capacity.size());
  add_statistics(outcome, workload, report.times.flows, bytes);
  for (std::uint32_t link = 0; link < report.times.longest_queue.size(); ++link)
    outcome.links[link].queue = report.times.longest_queue[link];
  return {};
}

}  // namespace

Result<SimulationResult> run_scenario(const Scenario& scenario, const SimulatedNetwork& network,
                                      const SimulateOptions& options) {
  REGATTA_TRY(workload, build_workload(scenario, network, options.memory));
  SimulationResult outcome{.level = scenario.level};
  draw_ports(workload, scenario.seed);
  if (scenario.routing.plans_ports)
    outcome.ports = plan_ports(workload, scenario.routing, scenario.seed);
  for (const fabric::FlowGraph::Flow& flow : workload.traffic.flows())
    outcome.messages += workload.messages_of(flow.path);
  const std::optional<CoarsePacketPlan> coarse =
      scenario.level == Level::kFlow ? plan_coarse_packets(scenario, workload) : std::nullopt;
  if (coarse)
    REGATTA_TRY_DO(run_coarse_packets(scenario, workload, *coarse, options, outcome));
  else if (scenario.level == Level::kFlow)
    REGATTA_TRY_DO(run_flows(scenario, workload, options, outcome));
  else
    REGATTA_TRY_DO(run_packets(scenario, workload, options, outcome));
  // Failures and an early end leave links empty, too.
  if (scenario.routing.policy == RoutePolicy::kEcmp && scenario.failures.empty() &&
      !outcome.stopped_at)
    add_polarisation(outcome, network.graph);
  return outcome;
}

}  // namespace regatta::simulate
