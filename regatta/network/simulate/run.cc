#include "regatta/network/simulate/run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <ranges>
#include <utility>

#include "regatta/network/diag/polarisation.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/simulate/internal/bundles.h"
#include "regatta/network/simulate/internal/packets.h"
#include "regatta/network/simulate/internal/ways.h"

namespace regatta::simulate {
namespace {

constexpr std::size_t kBins = 240;
constexpr double kFirstWidth = 1e-6;
constexpr std::size_t kSlowest = 20;
constexpr std::size_t kBetweenProgress = 1U << 16U;

// Which operation a flow belongs to; flows of none join others.
class OperationOf {
 public:
  explicit OperationOf(const Work& work) : work_(work) {}
  std::size_t operator()(std::uint32_t flow) const {
    const auto after = std::ranges::upper_bound(work_.operations, flow, {}, &Operation::first);
    return static_cast<std::size_t>(after - work_.operations.begin()) - 1;
  }

 private:
  const Work& work_;
};

// The times of the work's flows from those of their parts.
std::vector<fabric::FlowTimes> whole_times(const Work& work, const FlowProblem& problem,
                                           std::vector<fabric::FlowTimes> parts) {
  if (problem.parts.empty()) {
    parts.resize(work.traffic.flows().size());
    return parts;
  }
  std::vector<fabric::FlowTimes> flows(work.traffic.flows().size());
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
class Teller {
 public:
  Teller(const Work& work, const FlowProblem& problem, const RunOptions& options)
      : work_(work), options_(options), operation_of_(work) {
    for (const fabric::Traffic::Flow& flow : work.traffic.flows())
      messages_ += work.messages_of(flow.path);
    if (problem.parts.empty()) return;
    left_.resize(work.traffic.flows().size());
    flow_of_.resize(problem.parts.back());
    for (std::uint32_t flow = 0; flow < left_.size(); ++flow) {
      left_[flow] = problem.parts[flow + 1] - problem.parts[flow];
      for (std::uint32_t part = problem.parts[flow]; part < problem.parts[flow + 1]; ++part)
        flow_of_[part] = flow;
    }
  }

  std::size_t messages() const { return messages_; }

  void tell(std::uint32_t part, const fabric::FlowTimes& times) {
    std::uint32_t flow = part;
    if (!left_.empty()) {
      if (part >= flow_of_.size()) return;  // a join
      flow = flow_of_[part];
      if (--left_[flow] != 0) return;
    }
    const fabric::Traffic::Flow& one = work_.traffic.flows()[flow];
    const std::uint64_t messages = work_.messages_of(one.path);
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
      for_each_message(work_, work_.bundles[path & ~kBundleBits], use);
    else
      use(work_.ranks_of[path].from, work_.ranks_of[path].to);
  }

  const Work& work_;
  const RunOptions& options_;
  const OperationOf operation_of_;
  std::size_t messages_ = 0;
  std::size_t sent_ = 0;
  std::vector<std::uint32_t> left_;     // parts of each flow
  std::vector<std::uint32_t> flow_of_;  // each part
};

// How long the busiest NIC of an operation sends or gets at least.
class NicBounds {
 public:
  explicit NicBounds(const Work& work) : work_(work), bytes_(2 * work.network.graph.links.size()) {}

  void add(const fabric::Traffic::Flow& flow) {
    if (flow.path == kNothing) return;
    if (is_bundle(flow.path)) {
      add(work_.bundles[flow.path & ~kBundleBits], flow.bytes);
      return;
    }
    if (!is_ring(flow.path)) {
      add(flow.path, flow.bytes);
      return;
    }
    for (const std::uint32_t pair : work_.rings[flow.path & ~kRingBit])
      add(pair, flow.bytes);
  }

  // In seconds, and begins anew.
  double take() {
    double most = 0;
    for (const std::uint32_t link : used_) {
      most = std::max(most, bytes_[link] / work_.network.links.capacity[link]);
      bytes_[link] = 0;
    }
    used_.clear();
    return most;
  }

 private:
  void add(std::uint32_t pair, double bytes) {
    const auto [from, to] = work_.pairs.pairs[pair];
    if (from == to) return;
    add_to(fabric::number_of({from, true}), bytes);
    add_to(fabric::number_of({to, false}), bytes);
  }
  // NICs that are alike send and get as much as the one that stands for them.
  void add(const Bundle& bundle, double bytes) {
    if (bundle.is_inside) return;
    const auto nic_of = [&](std::uint32_t group) {
      return work_.alike.nic_like[work_.alike.groups[group].front()];
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

  const Work& work_;
  std::vector<double> bytes_;
  std::vector<std::uint32_t> used_;
};

double crossing_bytes(const Work& work, const fabric::Traffic::Flow& flow) {
  const auto crosses = [&](std::uint32_t pair) {
    return work.pairs.pairs[pair].from == work.pairs.pairs[pair].to ? 0.0 : flow.bytes;
  };
  if (flow.path == kNothing) return 0;
  if (is_bundle(flow.path)) {
    const Bundle& bundle = work.bundles[flow.path & ~kBundleBits];
    return bundle.is_inside ? 0 : flow.bytes * static_cast<double>(bundle.messages);
  }
  if (!is_ring(flow.path)) return crosses(flow.path);
  double sum = 0;
  for (const std::uint32_t pair : work.rings[flow.path & ~kRingBit])
    sum += crosses(pair);
  return sum;
}

void add_operations(Outcome& outcome, const Work& work,
                    const std::vector<fabric::FlowTimes>& flows) {
  NicBounds bounds(work);
  for (const Operation& operation : work.operations) {
    OperationOutcome one{.name = operation.name, .start = std::numeric_limits<double>::infinity()};
    for (std::uint32_t flow = operation.first; flow < operation.last; ++flow) {
      const fabric::Traffic::Flow& of = work.traffic.flows()[flow];
      // A pause before the first message is no part of it; what a step computes is.
      const std::uint64_t messages = work.messages_of(of.path);
      if (messages > 0 || operation.bytes.value == 0)
        one.start = std::min(one.start, flows[flow].start - of.delay);
      one.end = std::max(one.end, flows[flow].arrived);
      one.messages += messages;
      one.network_bytes += crossing_bytes(work, of);
      bounds.add(of);
    }
    one.bound = bounds.take();
    if (operation.bytes.value > 0 && operation.bus_factor > 0 && one.time() > 0) {
      one.algbw = static_cast<double>(operation.bytes.value) * operation.repeat / one.time();
      one.busbw = one.algbw * operation.bus_factor;
    }
    outcome.operations.push_back(std::move(one));
  }
}

// NICs like those that a message, or those of a bundle, goes between.
fabric::Pair nics_of(const Work& work, std::uint32_t path) {
  if (!is_bundle(path)) return work.pairs.pairs[path];
  const Bundle& bundle = work.bundles[path & ~kBundleBits];
  const auto& [groups, group_of, nic_like] = work.alike;
  return {nic_like[groups[bundle.from].front()], nic_like[groups[bundle.to].front()]};
}

bool crosses_nics(const Work& work, std::uint32_t path) {
  if (is_bundle(path)) return !work.bundles[path & ~kBundleBits].is_inside;
  return work.pairs.pairs[path].from != work.pairs.pairs[path].to;
}

double time_alone(const Network& network, const fabric::Pair& pair, double bytes) {
  const double first = network.links.capacity[fabric::number_of({pair.from, true})];
  const double last = network.links.capacity[fabric::number_of({pair.to, false})];
  return bytes / std::min(first, last);
}

// Some messages of a flow: those that are told of it.
std::vector<RankPair> some_ranks_of(const Work& work, std::uint32_t path, std::size_t most) {
  if (!is_bundle(path)) return {work.ranks_of[path]};
  std::vector<RankPair> some;
  const Bundle& bundle = work.bundles[path & ~kBundleBits];
  const auto& devices = work.network.devices;
  for (const std::uint32_t from : work.alike.groups[bundle.from])
    for (const std::uint32_t to : work.alike.groups[bundle.to])
      if (some.size() < most && devices[from].server != devices[to].server)
        some.push_back({from, to});
  return some;
}

void add_slowest(Outcome& outcome, const Work& work, const std::vector<fabric::FlowTimes>& flows) {
  using Entry = std::pair<double, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> slowest;
  for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
    const fabric::Traffic::Flow& of = work.traffic.flows()[flow];
    if (work.messages_of(of.path) == 0 || of.bytes <= 0) continue;
    if (!crosses_nics(work, of.path)) continue;
    const double times = (flows[flow].arrived - flows[flow].start) /
                         time_alone(work.network, nics_of(work, of.path), of.bytes);
    if (!(times >= 0)) continue;  // it never started
    slowest.emplace(times, flow);
    if (slowest.size() > kSlowest) slowest.pop();
  }
  std::vector<std::uint32_t> in_order;
  for (; !slowest.empty(); slowest.pop())
    in_order.push_back(slowest.top().second);
  const OperationOf operation_of(work);
  for (const std::uint32_t flow : std::views::reverse(in_order)) {
    const fabric::Traffic::Flow& of = work.traffic.flows()[flow];
    for (const RankPair ranks : some_ranks_of(work, of.path, kSlowest - outcome.slowest.size()))
      outcome.slowest.push_back(
          {.operation = operation_of(flow),
           .from = ranks.from,
           .to = ranks.to,
           .start = flows[flow].start,
           .arrived = flows[flow].arrived,
           .bytes = of.bytes,
           .alone = time_alone(work.network, nics_of(work, of.path), of.bytes)});
    if (outcome.slowest.size() == kSlowest) break;
  }
}

void add_links(Outcome& outcome, const Network& network, const std::vector<double>& bytes) {
  for (std::uint32_t link = 0; link < bytes.size(); ++link) {
    LinkOutcome one{.link = link, .bytes = bytes[link]};
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

void describe(Outcome& outcome, const Work& work, const std::vector<fabric::FlowTimes>& flows,
              const std::vector<double>& bytes_of_link) {
  add_operations(outcome, work, flows);
  add_slowest(outcome, work, flows);
  add_links(outcome, work.network, bytes_of_link);
}

// As the counters of real switches would show it.
void add_polarisation(Outcome& outcome, const topo::Graph& graph) {
  std::vector<std::uint64_t> bytes(2 * graph.links.size());
  for (std::size_t link = 0; link < bytes.size(); ++link)
    bytes[link] = static_cast<std::uint64_t>(outcome.links[link].bytes);
  outcome.polarisation = diag::find_polarisation(graph, bytes);
}

Status run_flows(const Scenario& scenario, const Work& work, const RunOptions& options,
                 Outcome& outcome) {
  REGATTA_TRY(problem, lead_flows(scenario, work));
  const Network& network = work.network;
  const std::size_t links = options.keeps_history ? problem.links.capacity.size() : 0;
  outcome.history = fabric::LinkHistory(links, kBins, kFirstWidth);
  Teller teller(work, problem, options);
  REGATTA_TRY(report,
              fabric::simulate_flows(
                  problem.links, problem.paths, problem.traffic,
                  {.changes = problem.changes,
                   .history = options.keeps_history ? &outcome.history : nullptr,
                   .on_sent = [&](std::uint32_t part,
                                  const fabric::FlowTimes& times) { teller.tell(part, times); },
                   .resolution = scenario.resolution.value}));
  const auto carry = [&](std::uint32_t from, std::uint32_t to) {
    report.bytes_of_link[to] += report.bytes_of_link[from];
    if (options.keeps_history) outcome.history.add_all(from, to);
  };
  for (std::uint32_t link = 0; link < problem.first_alike.size(); ++link)
    if (problem.first_alike[link] != link) carry(problem.first_alike[link], link);
  for (const auto& [stand_in, link] : problem.stand_ins)
    carry(stand_in, link);
  report.bytes_of_link.resize(network.links.capacity.size());
  outcome.unfinished = report.unfinished;
  for (std::uint32_t flow = 0; !work.bundles.empty() && flow < report.flows.size(); ++flow)
    if (std::isinf(report.flows[flow].arrived))
      outcome.unfinished +=
          std::max<std::uint64_t>(work.messages_of(work.traffic.flows()[flow].path), 1) - 1;
  outcome.end = report.end.value;
  describe(outcome, work, whole_times(work, problem, std::move(report.flows)),
           report.bytes_of_link);
  return {};
}

Status run_packets(const Scenario& scenario, const Work& work, const RunOptions& options,
                   Outcome& outcome) {
  const std::size_t links = options.keeps_history ? work.network.links.capacity.size() : 0;
  outcome.history = fabric::LinkHistory(links, kBins, kFirstWidth);
  outcome.queues = fabric::QueueHistory(links, kBins, kFirstWidth);
  const FlowProblem whole;
  Teller teller(work, whole, options);
  PacketListeners listeners{.on_arrived = [&](std::uint32_t flow, const fabric::FlowTimes& times) {
    teller.tell(flow, times);
  }};
  if (options.keeps_history) {
    listeners.history = &outcome.history;
    listeners.queues = &outcome.queues;
  }
  REGATTA_TRY(report, simulate_packets(scenario, work, listeners));
  outcome.unfinished = report.times.not_arrived;
  outcome.end = report.times.end.value;
  outcome.packets = std::move(report.outcome);
  std::vector<double> bytes = std::move(report.times.bytes_of_link);
  bytes.resize(work.network.links.capacity.size());
  describe(outcome, work, report.times.flows, bytes);
  for (std::uint32_t link = 0; link < report.times.longest_queue.size(); ++link)
    outcome.links[link].queue = report.times.longest_queue[link];
  return {};
}

}  // namespace

Result<Outcome> run(const Scenario& scenario, const Network& network, const RunOptions& options) {
  REGATTA_TRY(work, build_work(scenario, network, options.memory));
  Outcome outcome{.level = scenario.level};
  if (scenario.routing.plans_ports)
    outcome.ports = plan_ports(work, scenario.routing, scenario.seed);
  for (const fabric::Traffic::Flow& flow : work.traffic.flows())
    outcome.messages += work.messages_of(flow.path);
  if (scenario.level == Level::kFlow)
    REGATTA_TRY_DO(run_flows(scenario, work, options, outcome));
  else
    REGATTA_TRY_DO(run_packets(scenario, work, options, outcome));
  // Failures leave links empty, too.
  if (scenario.routing.policy == RoutePolicy::kEcmp && scenario.failures.empty())
    add_polarisation(outcome, network.graph);
  return outcome;
}

}  // namespace regatta::simulate
