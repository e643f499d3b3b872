#include "regatta/network/simulate/internal/rank_sets.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/units.h"

namespace regatta::simulate {
namespace {

// As measured: of a message, or of each part of one over several connections, with what waits for
// it; of two ranks that send to each other, and of each of their connections.
constexpr double kBytesOfPart = 125;
constexpr double kBytesOfPair = 80;
constexpr double kBytesOfConnection = 160;

// Pairs of ranks, at most.
double pairs_of(const TrafficItem& item, double ranks) {
  switch (item.pattern) {
    case TrafficPattern::kRing:
      return ranks;
    case TrafficPattern::kAllToAll:
    case TrafficPattern::kPairwise:
    case TrafficPattern::kRail:
      return ranks * ranks;
    case TrafficPattern::kTrace:
      return static_cast<double>(item.trace.size());
    case TrafficPattern::kStep:
      return 3.0 * item.step.tp * item.step.pp * item.step.dp;
    default:
      return 4 * ranks;
  }
}

}  // namespace

Error wrong_at(const Scenario& scenario, int line, std::string_view what) {
  return {Code::kInvalidInput, fmt::format("{}:{}: {}", scenario.file, line, what)};
}

Result<std::uint32_t> find_rank(const Scenario& scenario, int line, const SimulatedNetwork& network,
                                const std::string& text) {
  const auto device = parse_device(network.cluster, text);
  if (device) return network.rank_of(*device);
  return wrong_at(scenario, line, device.error().message);
}

Result<std::vector<Ranks>> groups_of(const Scenario& scenario, const TrafficItem& item,
                                     const SimulatedNetwork& network) {
  std::vector<Ranks> groups;
  if (item.choice == RankChoice::kListed) {
    groups.emplace_back();
    for (const std::string& text : item.ranks) {
      REGATTA_TRY(rank, find_rank(scenario, item.line, network, text));
      if (std::ranges::find(groups[0], rank) != groups[0].end())
        return wrong_at(scenario, item.line, fmt::format("{} is listed twice; keep one", text));
      groups[0].push_back(rank);
    }
    return groups;
  }
  for (std::uint32_t rank = 0; rank < network.devices.size(); ++rank) {
    const auto index = static_cast<std::size_t>(network.devices[rank].index);
    if (item.choice == RankChoice::kServers && index != 0) continue;
    const std::size_t group = item.choice == RankChoice::kRails ? index : 0;
    if (groups.size() <= group) groups.resize(group + 1);
    groups[group].push_back(rank);
  }
  return groups;
}

double flows_of(const TrafficItem& item, double ranks) {
  const SimulatedStep& step = item.step;
  switch (item.pattern) {
    case TrafficPattern::kRing:
    case TrafficPattern::kHierarchical:
      return 2 * ranks * (ranks - 1);
    case TrafficPattern::kAllToAll:
    case TrafficPattern::kPairwise:
    case TrafficPattern::kRail:
      return ranks * (ranks - 1);
    case TrafficPattern::kStep: {
      const double pieces = 2.0 * step.micro_batches * step.dp * step.pp * (1 + step.tp);
      return step.aggregates ? pieces : pieces + 2.0 * step.tp * step.pp * step.dp * step.dp;
    }
    case TrafficPattern::kMessage:
      return 1;
    default:
      return ranks;
  }
}

Status check_memory(const Scenario& scenario, const SimulatedNetwork& network,
                    const std::vector<bool>& aggregates, Bytes memory) {
  if (memory.value == 0) return {};
  const double connections =
      scenario.routing.policy == RoutePolicy::kEcmp ? scenario.routing.connections : 1;
  double all_bytes = 0;
  double all_messages = 0;
  std::pair<double, const TrafficItem*> largest{-1, nullptr};
  for (std::size_t i = 0; i < scenario.traffic.size(); ++i) {
    const TrafficItem& item = scenario.traffic[i];
    if (aggregates[i]) continue;
    double messages = 0;
    double pairs = 0;
    const bool has_groups = item.pattern != TrafficPattern::kMessage &&
                            item.pattern != TrafficPattern::kTrace &&
                            item.pattern != TrafficPattern::kStep;
    std::vector<Ranks> groups(1);
    if (has_groups) {
      REGATTA_TRY(found, groups_of(scenario, item, network));
      groups = std::move(found);
    }
    for (const Ranks& ranks : groups) {
      const double count = has_groups ? static_cast<double>(ranks.size()) : 2;
      messages += item.pattern == TrafficPattern::kTrace ? static_cast<double>(item.trace.size())
                                                         : flows_of(item, count) * item.repeat;
      pairs += pairs_of(item, count);
    }
    const double bytes = messages * connections * kBytesOfPart +
                         pairs * (kBytesOfPair + connections * kBytesOfConnection);
    all_messages += messages;
    all_bytes += bytes;
    if (bytes > largest.first) largest = {bytes, &item};
  }
  if (all_bytes <= static_cast<double>(memory.value)) return {};
  const bool may_aggregate = largest.second->pattern == TrafficPattern::kAllToAll;
  return wrong_at(
      scenario, largest.second->line,
      fmt::format(
          "{:.0f} messages take some {} of memory, and {} are free; name fewer ranks, "
          "repeats, micro-batches or connections{}",
          all_messages, format_bytes(std::min(all_bytes, 1e18)), format_bytes(memory),
          may_aggregate ? ", or policy: spray at the flow level, where they move in bundles" : ""));
}

}  // namespace regatta::simulate
