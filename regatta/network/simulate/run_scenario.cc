#include "regatta/network/simulate/run_scenario.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <ranges>
#include <utility>

#include "regatta/network/diag/polarisation.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/simulate/internal/bundles.h"
#include "regatta/network/simulate/internal/coarse_packets.h"
#include "regatta/network/simulate/internal/flow_problem.h"
#include "regatta/network/simulate/internal/packet_level.h"

namespace regatta::simulate {
namespace {

constexpr std::size_t kBins = 240;
constexpr double kFirstWidth = 1e-6;
constexpr std::size_t kSlowest = 20;
constexpr std::size_t kBetweenProgress = 1U << 16U;

// Which operation a flow belongs to; flows of none join others.
class OperationOfFlow {
 public:
  explicit OperationOfFlow(const ScenarioWorkload& workload) : workload_(workload) {}
  std::size_t operator()(std::uint32_t flow) const {
    const auto after =
        std::ranges::upper_bound(workload_.operations, flow, {}, &ScenarioOperation::first);
    return static_cast<std::size_t>(after - workload_.operations.begin()) - 1;
  }

 private:
  const ScenarioWorkload& workload_;
};

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

// Tells of messages while parts of them are sent.
class MessageReporter {
 public:
  MessageReporter(const ScenarioWorkload& workload, const FlowProblem& problem,
                  const SimulateOptions& options)
      : workload_(workload), options_(options), operation_of_(workload) {
    for (const fabric::FlowGraph::Flow& flow : workload.traffic.flows())
      messages_ += workload.messages_of(flow.path);
    if (problem.parts.empty()) return;
    left_.resize(workload.traffic.flows().size());
    flow_of_.resize(problem.parts.back());
    for (std::uint32_t flow = 0; flow < left_.size(); ++flow) {
      left_[flow] = problem.parts[flow + 1] - problem.parts[flow];
      for (std::uint32_t part = problem.parts[flow]; part < problem.parts[flow + 1]; ++part)
        flow_of_[part] = flow;
    }
  }

  std::size_t messages() const { return messages_; }

  void report(std::uint32_t part, const fabric::FlowTimes& times) {
    std::uint32_t flow = part;
    if (!left_.empty()) {
      if (part >= flow_of_.size()) return;  // a join
      flow = flow_of_[part];
      if (--left_[flow] != 0) return;
    }
    const fabric::FlowGraph::Flow& one = workload_.traffic.flows()[flow];
    const std::uint64_t messages = workload_.messages_of(one.path);
    if (messages == 0) return;
    const std::size_t before = sent_;
    sent_ += messages;
    if (options_.on_progress && before / kBetweenProgress != sent_ / kBetweenProgress)
      options_.on_progress(times.sent, sent_, messages_);
    if (!options_.on_message) return;
    for_each_message_of(one.path, [&](std::uint32_t from, std::uint32_t to) {
      options_.on_message({.operation = operation_of_(flow),
                           .from = from,
                           .to = to,
                           .bytes = one.bytes,
                           .start = times.start,
                           .arrived = times.arrived});
    });
  }

 private:
  template <typename Use>
  void for_each_message_of(std::uint32_t path, Use&& use) const {
    if (is_bundle(path))
      for_each_message(workload_, workload_.bundles[path & ~kBundleBits], use);
    else
      use(workload_.ranks_of[path].from, workload_.ranks_of[path].to);
  }

  const ScenarioWorkload& workload_;
  const SimulateOptions& options_;
  const OperationOfFlow operation_of_;
  std::size_t messages_ = 0;
  std::size_t sent_ = 0;
  std::vector<std::uint32_t> left_;     // parts of each flow
  std::vector<std::uint32_t> flow_of_;  // each part
};

// How long the busiest NIC of an operation sends or gets at least.
class NicBounds {
 public:
  explicit NicBounds(const ScenarioWorkload& workload)
      : workload_(workload), bytes_(2 * workload.network.graph.links.size()) {}

  void add(const fabric::FlowGraph::Flow& flow) {
    if (flow.path == kNothing) return;
    if (is_bundle(flow.path)) {
      add(workload_.bundles[flow.path & ~kBundleBits], flow.bytes);
      return;
    }
    if (!is_ring(flow.path)) {
      add(flow.path, flow.bytes);
      return;
    }
    for (const std::uint32_t pair : workload_.rings[flow.path & ~kRingBit])
      add(pair, flow.bytes);
  }

  // In seconds, and begins anew.
  double consume() {
    double most = 0;
    for (const std::uint32_t link : used_) {
      most = std::max(most, bytes_[link] / workload_.network.links.capacity[link]);
      bytes_[link] = 0;
    }
    used_.clear();
    return most;
  }

 private:
  void add(std::uint32_t pair, double bytes) {
    const auto [from, to] = workload_.pairs.pairs[pair];
    if (from == to) return;
    add_to(fabric::number_of({from, true}), bytes);
    add_to(fabric::number_of({to, false}), bytes);
  }
  // NICs that are alike send and get as much as the one that stands for them.
  void add(const Bundle& bundle, double bytes) {
    if (bundle.is_inside) return;
    const auto nic_of = [&](std::uint32_t group) {
      return workload_.rank_classes
          .representative_nic[workload_.rank_classes.classes[group].front()];
    };
    add_to(fabric::number_of({nic_of(bundle.from), true}),
           bytes * static_cast<double>(bundle.sends));
    add_to(fabric::number_of({nic_of(bundle.to), false}),
           bytes * static_cast<double>(bundle.receives));
  }
  void add_to(std::uint32_t link, double bytes) {
    if (bytes_[link] == 0) used_.push_back(link);
    bytes_[link] += bytes;
  }

  const ScenarioWorkload& workload_;
  std::vector<double> bytes_;
  std::vector<std::uint32_t> used_;
};

double crossing_bytes(const ScenarioWorkload& workload, const fabric::FlowGraph::Flow& flow) {
  const auto crosses = [&](std::uint32_t pair) {
    return workload.pairs.pairs[pair].from == workload.pairs.pairs[pair].to ? 0.0 : flow.bytes;
  };
  if (flow.path == kNothing) return 0;
  if (is_bundle(flow.path)) {
    const Bundle& bundle = workload.bundles[flow.path & ~kBundleBits];
    return bundle.is_inside ? 0 : flow.bytes * static_cast<double>(bundle.messages);
  }
  if (!is_ring(flow.path)) return crosses(flow.path);
  double sum = 0;
  for (const std::uint32_t pair : workload.rings[flow.path & ~kRingBit])
    sum += crosses(pair);
  return sum;
}

void add_operations(SimulationResult& outcome, const ScenarioWorkload& workload,
                    const std::vector<fabric::FlowTimes>& flows) {
  NicBounds bounds(workload);
  for (const ScenarioOperation& operation : workload.operations) {
    OperationStats one{.name = operation.name, .start = std::numeric_limits<double>::infinity()};
    for (std::uint32_t flow = operation.first; flow < operation.last; ++flow) {
      const fabric::FlowGraph::Flow& of = workload.traffic.flows()[flow];
      // A pause before the first message is no part of it; what a step computes is.
      const std::uint64_t messages = workload.messages_of(of.path);
      if (messages > 0 || operation.bytes.value == 0)
        one.start = std::min(one.start, flows[flow].start - of.delay);
      one.end = std::max(one.end, flows[flow].arrived);
      one.messages += messages;
      one.network_bytes += crossing_bytes(workload, of);
      bounds.add(of);
    }
    one.bound = bounds.consume();
    if (operation.bytes.value > 0 && operation.bus_factor > 0 && one.time() > 0) {
      one.algbw = static_cast<double>(operation.bytes.value) * operation.repeat / one.time();
      one.busbw = one.algbw * operation.bus_factor;
    }
    outcome.operations.push_back(std::move(one));
  }
}

// NICs like those that a message, or those of a bundle, goes between.
fabric::NicPair nics_of(const ScenarioWorkload& workload, std::uint32_t path) {
  if (!is_bundle(path)) return workload.pairs.pairs[path];
  const Bundle& bundle = workload.bundles[path & ~kBundleBits];
  const auto& [groups, group_of, representative_nic] = workload.rank_classes;
  return {representative_nic[groups[bundle.from].front()],
          representative_nic[groups[bundle.to].front()]};
}

bool crosses_nics(const ScenarioWorkload& workload, std::uint32_t path) {
  if (is_bundle(path)) return !workload.bundles[path & ~kBundleBits].is_inside;
  return workload.pairs.pairs[path].from != workload.pairs.pairs[path].to;
}

double time_alone(const SimulatedNetwork& network, const fabric::NicPair& pair, double bytes) {
  const double first = network.links.capacity[fabric::number_of({pair.from, true})];
  const double last = network.links.capacity[fabric::number_of({pair.to, false})];
  return bytes / std::min(first, last);
}

// Some messages of a flow: those that are told of it.
std::vector<EndpointPair> some_ranks_of(const ScenarioWorkload& workload, std::uint32_t path,
                                        std::size_t most) {
  if (!is_bundle(path)) return {workload.ranks_of[path]};
  std::vector<EndpointPair> some;
  const Bundle& bundle = workload.bundles[path & ~kBundleBits];
  const auto& devices = workload.network.devices;
  for (const std::uint32_t from : workload.rank_classes.classes[bundle.from])
    for (const std::uint32_t to : workload.rank_classes.classes[bundle.to])
      if (some.size() < most && devices[from].server != devices[to].server)
        some.push_back({from, to});
  return some;
}

void add_slowest(SimulationResult& outcome, const ScenarioWorkload& workload,
                 const std::vector<fabric::FlowTimes>& flows) {
  using Entry = std::pair<double, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> slowest;
  for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
    const fabric::FlowGraph::Flow& of = workload.traffic.flows()[flow];
    if (workload.messages_of(of.path) == 0 || of.bytes <= 0) continue;
    if (!crosses_nics(workload, of.path)) continue;
    const double times = (flows[flow].arrived - flows[flow].start) /
                         time_alone(workload.network, nics_of(workload, of.path), of.bytes);
    if (!(times >= 0)) continue;  // it never started
    slowest.emplace(times, flow);
    if (slowest.size() > kSlowest) slowest.pop();
  }
  std::vector<std::uint32_t> in_order;
  for (; !slowest.empty(); slowest.pop())
    in_order.push_back(slowest.top().second);
  const OperationOfFlow operation_of(workload);
  for (const std::uint32_t flow : std::views::reverse(in_order)) {
    const fabric::FlowGraph::Flow& of = workload.traffic.flows()[flow];
    for (const EndpointPair ranks :
         some_ranks_of(workload, of.path, kSlowest - outcome.slowest.size()))
      outcome.slowest.push_back(
          {.operation = operation_of(flow),
           .from = ranks.from,
           .to = ranks.to,
           .start = flows[flow].start,
           .arrived = flows[flow].arrived,
           .bytes = of.bytes,
           .alone = time_alone(workload.network, nics_of(workload, of.path), of.bytes)});
    if (outcome.slowest.size() == kSlowest) break;
  }
}

void add_links(SimulationResult& outcome, const SimulatedNetwork& network,
               const std::vector<double>& bytes) {
  for (std::uint32_t link = 0; link < bytes.size(); ++link) {
    LinkStats one{.link = link, .bytes = bytes[link]};
    const double capacity = network.links.capacity[link];
    // Packets that never arrive may be sent again after the last one has.
    if (outcome.end > 0) one.mean = std::min(1.0, bytes[link] / capacity / outcome.end);
    for (std::size_t bin = 0; bin < outcome.history.used(); ++bin)
      one.peak =
          std::max(one.peak, outcome.history.bytes(link, bin) / capacity / outcome.history.width());
    one.peak = std::min(1.0, one.peak);  // but for rounding, and where a look falls into a packet
    outcome.links.push_back(one);
  }
}

void describe(SimulationResult& outcome, const ScenarioWorkload& workload,
              const std::vector<fabric::FlowTimes>& flows,
              const std::vector<double>& bytes_of_link) {
  add_operations(outcome, workload, flows);
  add_slowest(outcome, workload, flows);
  add_links(outcome, workload.network, bytes_of_link);
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
  describe(outcome, workload, whole_times(workload, problem, std::move(report.flows)),
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
  describe(outcome, workload, report.flows, report.bytes_of_link);
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
  describe(outcome, workload, report.times.flows, bytes);
  for (std::uint32_t link = 0; link < report.times.longest_queue.size(); ++link)
    outcome.links[link].queue = report.times.longest_queue[link];
  return {};
}

}  // namespace

Result<SimulationResult> run_scenario(const Scenario& scenario, const SimulatedNetwork& network,
                                      const SimulateOptions& options) {
  REGATTA_TRY(workload, build_workload(scenario, network, options.memory));
  SimulationResult outcome{.level = scenario.level};
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
