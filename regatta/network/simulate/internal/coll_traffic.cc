#include "regatta/network/simulate/internal/coll_traffic.h"

#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/algorithms.h"
#include "regatta/model/cost/hierarchical_layout.h"

namespace regatta::simulate {
namespace {

using collective::CollectiveSchedule;
using collective::Step;
using collective::StepIndex;
using collective::StepKind;

// More ranks would take more than twice the time to simulate.
constexpr std::size_t kMostSendingAhead = 64;

bool receives(const Step& step) {
  return step.kind == StepKind::kReceive || step.kind == StepKind::kReceiveReduce;
}

// A message by who sends it, who gets it, and its tag.
struct Key {
  std::uint64_t pair = 0;
  std::uint32_t tag = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return (key.pair * 0x9e3779b97f4a7c15U) ^ (std::size_t{key.tag} * 0xc2b2ae3d27d4eb4fU);
  }
};
Key key_of(std::size_t from, std::size_t to, std::uint32_t tag) {
  return {std::uint64_t{from} << 32U | to, tag};
}

// Memory that no step reads or writes here: only where it lies matters.
collective::Buffers buffers_of(Bytes bytes, std::size_t parts) {
  auto* const in = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44U);   // NOLINT
  auto* const out = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 45U);  // NOLINT
  const auto elements = static_cast<std::size_t>(bytes.value) / 4 / parts;
  return {.in = in, .out = out, .count = elements, .element_bytes = 4};
}

cost::RankLocations sites_of(const SimulatedNetwork& network,
                             std::span<const std::uint32_t> ranks) {
  cost::RankLocations sites;
  for (const std::uint32_t rank : ranks) {
    const ServerId server = network.devices[rank].server;
    sites.server.push_back(network.domain_of[server.index()]);
    sites.rate.push_back(network.cluster.type_of(server).nic_rate);
  }
  return sites;
}

// The senders of all flows from `first` on go on while switches hold the rest.
void set_sends_ahead(ScenarioWorkload& workload, std::size_t first) {
  workload.sends_ahead.resize(workload.ranks_of.size(), false);
  for (std::size_t flow = first; flow < workload.traffic.flows().size(); ++flow)
    if (const std::uint32_t path = workload.traffic.flows()[flow].path; path != kNothing)
      workload.sends_ahead[path] = true;
}

}  // namespace

Status add_schedules(ScenarioWorkload& workload, std::span<const CollectiveSchedule> schedules,
                     std::span<const std::uint32_t> ranks) {
  REGATTA_CHECK(schedules.size() == ranks.size());
  // Each message is a flow; what is no message, a flow of nothing.
  std::unordered_map<Key, std::uint32_t, KeyHash> sent;
  std::vector<std::vector<std::uint32_t>> flow_of(schedules.size());
  // A connection sends one message after the other, so that the first arrives early and what waits
  // for it begins.
  std::unordered_map<std::uint64_t, std::uint32_t> last_of_pair;
  for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
    for (const Step& step : schedules[rank].steps()) {
      if (step.kind != StepKind::kSend) {
        flow_of[rank].push_back(receives(step) ? kNothing : workload.add_pause({}));
        continue;
      }
      const auto peer = static_cast<std::size_t>(step.peer);
      REGATTA_TRY(pair, workload.pair(ranks[rank], ranks[peer]));
      const std::uint32_t flow = workload.traffic.add(pair, {static_cast<long long>(step.bytes)});
      sent[key_of(rank, peer, step.tag)] = flow;
      flow_of[rank].push_back(flow);
      const auto [last, is_first] = last_of_pair.try_emplace(key_of(rank, peer, 0).pair, flow);
      if (!is_first) workload.traffic.depend(flow, last->second, fabric::After::kSent);
      last->second = flow;
    }
  }
  for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
    const std::vector<Step>& steps = schedules[rank].steps();
    std::vector<bool> has_condition(steps.size(), false);
    for (const auto& [earlier, later] : schedules[rank].edges())
      has_condition[later] = true;
    for (StepIndex i = 0; i < steps.size(); ++i) {
      if (!receives(steps[i])) continue;
      const auto found =
          sent.find(key_of(static_cast<std::size_t>(steps[i].peer), rank, steps[i].tag));
      if (found == sent.end()) {
        return Error{Code::kInvalidInput,
                     fmt::format("rank {} waits for a message that rank {} does not send", rank,
                                 steps[i].peer)};
      }
      const std::uint32_t message = found->second;
      // Where the receiver has to do something first, a message that comes earlier waits there.
      if (!has_condition[i]) {
        flow_of[rank][i] = message;
      } else {
        flow_of[rank][i] = workload.add_pause({});
        workload.traffic.depend(flow_of[rank][i], message);
      }
    }
    for (const auto& [earlier, later] : schedules[rank].edges()) {
      const bool has_come = steps[earlier].kind != StepKind::kSend;
      workload.traffic.depend(flow_of[rank][later], flow_of[rank][earlier],
                              has_come ? fabric::After::kArrived : fabric::After::kSent);
    }
  }
  return {};
}

Status add_collective(ScenarioWorkload& workload, TrafficPattern pattern,
                      std::span<const std::uint32_t> ranks, Bytes bytes) {
  std::vector<CollectiveSchedule> schedules(ranks.size());
  const cost::RankLocations sites = sites_of(workload.network, ranks);
  const std::optional<cost::HierarchicalLayout> grid = cost::plan_hierarchical_layout(sites);
  if (pattern == TrafficPattern::kHierarchical && !grid) {
    return Error{Code::kInvalidInput,
                 "these ranks are no equal rows over several servers, so coll would take one ring; "
                 "write ring_all_reduce"};
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const collective::GroupPosition place{static_cast<int>(rank), static_cast<int>(ranks.size())};
    const collective::Buffers whole = buffers_of(bytes, 1);
    const collective::Buffers part = buffers_of(bytes, ranks.size());
    CollectiveSchedule& schedule = schedules[rank];
    switch (pattern) {
      case TrafficPattern::kTree:
        collective::double_tree_all_reduce(schedule, place, whole);
        break;
      case TrafficPattern::kHalvingDoubling:
        collective::halving_doubling_all_reduce(schedule, place, whole);
        break;
      case TrafficPattern::kHierarchical:
        collective::hierarchical_all_reduce(schedule, place, whole, *grid);
        break;
      case TrafficPattern::kPairwise:
        collective::pairwise_all_to_all(schedule, place, part);
        break;
      case TrafficPattern::kRail:
        collective::rail_all_to_all(schedule, place, part, cost::ranks_by_server(sites));
        break;
      default:
        REGATTA_CHECK(false);
    }
  }
  if (pattern == TrafficPattern::kPairwise || pattern == TrafficPattern::kRail ||
      pattern == TrafficPattern::kHalvingDoubling)
    workload.has_exchanges = true;
  const std::size_t first = workload.traffic.flows().size();
  REGATTA_TRY_DO(add_schedules(workload, schedules, ranks));
  // Over rails the ranks of a server gather first; without such ranks it is the pairwise exchange.
  const bool is_pairwise =
      pattern == TrafficPattern::kPairwise ||
      (pattern == TrafficPattern::kRail && cost::ranks_by_server(sites).size() == ranks.size());
  if (is_pairwise && ranks.size() <= kMostSendingAhead) set_sends_ahead(workload, first);
  return {};
}

}  // namespace regatta::simulate
