#include "regatta/network/simulate/internal/scenario_workload.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/cost/collective.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/simulate/internal/bundles.h"
#include "regatta/network/simulate/internal/coll_traffic.h"
#include "regatta/network/simulate/internal/rank_sets.h"
#include "regatta/network/simulate/internal/step_traffic.h"
#include "regatta/network/simulate/internal/topology_events.h"

namespace regatta::simulate {
namespace {

constexpr std::size_t kMostScheduled = 2048;  // ranks whose schedules are made at once
constexpr double kMostFlows = 1U << 27U;      // some 10 GB

double bus_factor_of(TrafficPattern pattern, std::size_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (pattern) {
    case TrafficPattern::kRing:
    case TrafficPattern::kTree:
    case TrafficPattern::kHalvingDoubling:
    case TrafficPattern::kHierarchical:
      return 2 * cost::pass_share(n);
    case TrafficPattern::kAllToAll:
    case TrafficPattern::kPairwise:
    case TrafficPattern::kRail:
      return cost::pass_share(n);
    case TrafficPattern::kPermutation:
      return 1;
    default:
      return 0;
  }
}

class Builder {
 public:
  Builder(const Scenario& scenario, const SimulatedNetwork& network, Bytes memory)
      : scenario_(scenario),
        network_(network),
        memory_(memory),
        random_(scenario.seed),
        workload_(network, static_cast<std::uint32_t>(scenario.routing.connections)) {}

  Result<ScenarioWorkload> build() {
    REGATTA_TRY_DO(find_what_folds());
    REGATTA_TRY_DO(check_memory(scenario_, network_, aggregates_, memory_));
    for (const TrafficItem& item : scenario_.traffic)
      REGATTA_TRY_DO(add(item));
    if (!workload_.status) return workload_.status.error();
    return std::move(workload_);
  }

 private:
  Status add(const TrafficItem& item) {
    std::uint32_t begin = kNothing;
    if (!item.after.empty()) begin = join(spans_[place_of(item.after)]);
    if (item.start.value > 0) begin = pause(item.start, begin);
    ScenarioOperation operation{.name = item.name, .first = next(), .repeat = item.repeat};
    if (item.pattern != TrafficPattern::kStep && item.pattern != TrafficPattern::kTrace)
      operation.bytes = item.bytes;
    Span all{.first = next(), .first_wait = workload_.traffic.dependencies().size()};
    for (int i = 0; i < item.repeat; ++i) {
      Span once{.first = next(), .first_wait = workload_.traffic.dependencies().size()};
      REGATTA_TRY_DO(add_once(item, operation));
      if (!workload_.status)
        return wrong_at(scenario_, item.line, workload_.status.error().message);
      if (begin != kNothing) hold_until(once.first, begin);
      if (i + 1 == item.repeat) break;
      end(once);
      begin = join(once);
    }
    operation.last = next();
    end(all);
    spans_.push_back(all);
    workload_.operations.push_back(std::move(operation));
    return {};
  }

  // Looks for ranks that are alike in all that aggregates; where most are not, nothing does.
  Status find_what_folds() {
    aggregates_ = items_to_aggregate(scenario_);
    std::vector<Ranks> sets;
    for (std::size_t i = 0; i < aggregates_.size(); ++i) {
      if (!aggregates_[i]) continue;
      REGATTA_TRY(groups, groups_of(scenario_, scenario_.traffic[i], network_));
      sets.insert(sets.end(), groups.begin(), groups.end());
    }
    if (sets.empty()) return {};
    std::vector<std::uint64_t> marks(network_.graph.links.size(), 0);
    for (std::size_t i = 0; i < scenario_.failures.size(); ++i) {
      REGATTA_TRY(links, links_that_fail(scenario_, scenario_.failures[i], network_.graph));
      for (const LinkId link : links)
        marks[link.index()] = marks[link.index()] * 1'000'003 + i + 1;
    }
    auto rank_classes = find_rank_classes(network_, sets, marks);
    double messages = 0;
    std::size_t bundles = 0;
    for (const Ranks& set : sets) {
      messages += static_cast<double>(set.size()) * static_cast<double>(set.size());
      bundles += rank_classes ? count_bundles(*rank_classes, set) : 0;
    }
    // Without NICs the messages themselves are complained of.
    if (rank_classes && static_cast<double>(bundles) < messages / 2)
      workload_.rank_classes = *std::move(rank_classes);
    else
      aggregates_.assign(aggregates_.size(), false);
    return {};
  }

  // Flows, and the waits that came with them.
  struct Span {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::size_t first_wait = 0;
    std::size_t last_wait = 0;
  };
  void end(Span& span) const {
    span.last = next();
    span.last_wait = workload_.traffic.dependencies().size();
  }

  std::uint32_t next() const {
    return static_cast<std::uint32_t>(workload_.traffic.flows().size());
  }

  std::size_t place_of(const std::string& name) const {
    const auto found = std::ranges::find(workload_.operations, name, &ScenarioOperation::name);
    return static_cast<std::size_t>(found - workload_.operations.begin());
  }

  std::uint32_t pause(Seconds time, std::uint32_t before) {
    const std::uint32_t flow = workload_.add_pause(time);
    if (before != kNothing) workload_.traffic.depend(flow, before);
    return flow;
  }

  // A flow of nothing that ends with the last of them.
  std::uint32_t join(const Span& span) {
    std::vector<bool> is_waited_for(span.last - span.first, false);
    for (std::size_t i = span.first_wait; i < span.last_wait; ++i) {
      const std::uint32_t before = workload_.traffic.dependencies()[i].before;
      if (before >= span.first && before < span.last) is_waited_for[before - span.first] = true;
    }
    const std::uint32_t flow = workload_.add_pause({});
    for (std::uint32_t one = span.first; one < span.last; ++one)
      if (!is_waited_for[one - span.first]) workload_.traffic.depend(flow, one);
    return flow;
  }

  // Flows from `first` on that wait for nothing wait for `begin`.
  void hold_until(std::uint32_t first, std::uint32_t begin) {
    for (std::uint32_t flow = first; flow < next(); ++flow)
      if (flow != begin && workload_.traffic.flows()[flow].pending_dependencies == 0)
        workload_.traffic.depend(flow, begin);
  }

  Status check_count(const TrafficItem& item, double ranks) const {
    if (next() + flows_of(item, ranks) <= kMostFlows) return {};
    return wrong_at(scenario_, item.line,
                    "more than 2^27 messages; name fewer ranks, repeats or micro-batches");
  }

  Status add_once(const TrafficItem& item, ScenarioOperation& operation) {
    REGATTA_TRY_DO(check_count(item, 2));
    switch (item.pattern) {
      case TrafficPattern::kMessage:
        return add_message(item, item.from, item.to, item.bytes, item.line);
      case TrafficPattern::kTrace:
        return add_trace(item);
      case TrafficPattern::kStep:
        return add_step(workload_, scenario_, item);
      default:
        break;
    }
    REGATTA_TRY(groups, groups_of(scenario_, item, network_));
    for (const Ranks& ranks : groups) {
      if (ranks.size() < 2)
        return wrong_at(scenario_, item.line, "one rank has nobody to send to; name at least two");
      const bool aggregates = aggregates_[workload_.operations.size()];
      if (!aggregates) REGATTA_TRY_DO(check_count(item, static_cast<double>(ranks.size())));
      operation.bus_factor = bus_factor_of(item.pattern, ranks.size());
      if (aggregates)
        add_bundles(workload_, ranks, {item.bytes.value / static_cast<long long>(ranks.size())});
      else
        REGATTA_TRY_DO(add_group(item, ranks));
    }
    return {};
  }

  Status add_group(const TrafficItem& item, const Ranks& ranks) {
    const auto count = static_cast<std::uint32_t>(ranks.size());
    const auto path = [&](std::uint32_t from, std::uint32_t to) {
      return workload_.pair_or_fail(ranks[from], ranks[to]);
    };
    switch (item.pattern) {
      case TrafficPattern::kRing:
        fabric::add_ring_all_reduce(workload_.traffic, count, item.bytes, path);
        return {};
      case TrafficPattern::kAllToAll:
        fabric::add_all_to_all(workload_.traffic, count, item.bytes, path);
        return {};
      case TrafficPattern::kPermutation:
        return add_permutation(item, ranks);
      case TrafficPattern::kIncast:
        return add_incast(item, ranks);
      default:
        break;
    }
    if (ranks.size() > kMostScheduled) {
      return wrong_at(scenario_, item.line,
                      fmt::format("{} ranks; this pattern takes up to {}, ring_all_reduce and "
                                  "all_to_all any number",
                                  ranks.size(), kMostScheduled));
    }
    return add_collective(workload_, item.pattern, ranks, item.bytes);
  }

  // Everybody sends to one, and gets from one, that is not itself.
  Status add_permutation(const TrafficItem& item, const Ranks& ranks) {
    Ranks to(ranks.size());
    std::iota(to.begin(), to.end(), 0U);
    // Sattolo's: one circle through all.
    for (std::size_t i = to.size() - 1; i > 0; --i)
      std::swap(to[i], to[std::uniform_int_distribution<std::size_t>(0, i - 1)(random_)]);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      workload_.traffic.add(workload_.pair_or_fail(ranks[i], ranks[to[i]]), item.bytes);
    return {};
  }

  Status add_incast(const TrafficItem& item, const Ranks& ranks) {
    REGATTA_TRY(to, find_rank(scenario_, item.line, network_, item.to));
    for (const std::uint32_t from : ranks)
      if (from != to) workload_.traffic.add(workload_.pair_or_fail(from, to), item.bytes);
    return {};
  }

  Status add_message(const TrafficItem& item, const std::string& from, const std::string& to,
                     Bytes bytes, int line, Seconds start = {}) {
    const auto begin = parse_device(network_.cluster, from);
    const auto end = parse_device(network_.cluster, to);
    for (const auto* one : {&begin, &end}) {
      if (*one) continue;
      const std::string& file = item.trace_file.empty() ? scenario_.file : item.trace_file;
      return Error{Code::kInvalidInput, fmt::format("{}:{}: {}", file, line, one->error().message)};
    }
    if (*begin == *end) {
      const std::string& file = item.trace_file.empty() ? scenario_.file : item.trace_file;
      return Error{Code::kInvalidInput,
                   fmt::format("{}:{}: {} sends to itself; name another device", file, line, from)};
    }
    const std::uint32_t pair =
        workload_.pair_or_fail(network_.rank_of(*begin), network_.rank_of(*end));
    workload_.traffic.add(pair, bytes, start);
    return {};
  }

  Status add_trace(const TrafficItem& item) {
    for (const TraceMessage& one : item.trace)
      REGATTA_TRY_DO(add_message(item, one.from, one.to, one.bytes, one.line, one.start));
    return {};
  }

  const Scenario& scenario_;
  const SimulatedNetwork& network_;
  const Bytes memory_;
  std::mt19937_64 random_;
  ScenarioWorkload workload_;
  std::vector<Span> spans_;       // of each operation
  std::vector<bool> aggregates_;  // per item
};

}  // namespace

ScenarioWorkload::ScenarioWorkload(const SimulatedNetwork& of, std::uint32_t connections)
    : network(of) {
  pairs.connections = connections;
}

Result<std::uint32_t> ScenarioWorkload::pair(std::uint32_t from, std::uint32_t to) {
  const auto next = static_cast<std::uint32_t>(ranks_of.size());
  const std::uint64_t key = std::uint64_t{from} << 32U | to;
  if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
  const topo::DeviceRef sender = network.devices[from];
  const topo::DeviceRef receiver = network.devices[to];
  LinkId nic_from{0};  // inside a server or a domain: the same one twice
  LinkId nic_to{0};
  if (!network.are_joined(from, to)) {
    REGATTA_TRY(first, network.nic(sender));
    REGATTA_TRY(second, network.nic(receiver));
    nic_from = first;
    nic_to = second;
  }
  pairs.add(nic_from, nic_to);
  ranks_of.push_back({from, to});
  numbers_[key] = next;
  return next;
}

std::uint32_t ScenarioWorkload::pair_or_fail(std::uint32_t from, std::uint32_t to) {
  const auto number = pair(from, to);
  if (number) return *number;
  if (status) status = number.error();
  return 0;
}

std::size_t ScenarioWorkload::operation_of(std::uint32_t flow) const {
  const auto after = std::ranges::upper_bound(operations, flow, {}, &ScenarioOperation::first);
  return static_cast<std::size_t>(after - operations.begin()) - 1;
}

Result<ScenarioWorkload> build_workload(const Scenario& scenario, const SimulatedNetwork& network,
                                        Bytes memory) {
  return Builder(scenario, network, memory).build();
}

}  // namespace regatta::simulate
