#include "regatta/network/simulate/internal/simulation_statistics.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <ranges>
#include <utility>

#include "regatta/network/fabric/routes.h"

namespace regatta::simulate {
namespace {

constexpr std::size_t kSlowest = 20;

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
  for (const std::uint32_t from : workload.rank_classes.classes[bundle.from])
    for (const std::uint32_t to : workload.rank_classes.classes[bundle.to])
      if (some.size() < most && !workload.network.are_joined(from, to)) some.push_back({from, to});
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
  for (const std::uint32_t flow : std::views::reverse(in_order)) {
    const fabric::FlowGraph::Flow& of = workload.traffic.flows()[flow];
    for (const EndpointPair ranks :
         some_ranks_of(workload, of.path, kSlowest - outcome.slowest.size()))
      outcome.slowest.push_back(
          {.operation = workload.operation_of(flow),
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

}  // namespace

void add_statistics(SimulationResult& outcome, const ScenarioWorkload& workload,
                    const std::vector<fabric::FlowTimes>& flows,
                    const std::vector<double>& bytes_of_link) {
  add_operations(outcome, workload, flows);
  add_slowest(outcome, workload, flows);
  add_links(outcome, workload.network, bytes_of_link);
}

}  // namespace regatta::simulate
