#include "regatta/network/simulate/internal/bundles.h"

#include <algorithm>
#include <map>
#include <utility>

namespace regatta::simulate {
namespace {

constexpr std::size_t kMostSearched = 64;  // of a scenario that is looked through for what to fold

// Per item: those that have ended before it starts.
std::vector<std::vector<bool>> items_before(const Scenario& scenario) {
  std::vector<std::vector<bool>> before;
  std::map<std::string, std::size_t> number;
  for (const TrafficItem& item : scenario.traffic) {
    std::vector<bool> one(scenario.traffic.size(), false);
    if (!item.after.empty()) {
      const std::size_t last = number.at(item.after);
      one = before[last];
      one[last] = true;
    }
    number[item.name] = before.size();
    before.push_back(std::move(one));
  }
  return before;
}

std::vector<std::uint32_t> groups_of(const RankClasses& rank_classes,
                                     std::span<const std::uint32_t> ranks) {
  std::vector<std::uint32_t> groups;
  for (const std::uint32_t rank : ranks)
    groups.push_back(rank_classes.class_of[rank]);
  std::ranges::sort(groups);
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

class BundleBuilder {
 public:
  BundleBuilder(ScenarioWorkload& workload, Bytes part) : workload_(workload), part_(part) {}

  void add(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t sender = workload_.rank_classes.classes[from].front();
    const std::uint32_t receiver = workload_.rank_classes.classes[to].front();
    const std::uint32_t itself = from == to ? 1 : 0;
    const std::uint32_t near_sender = joined_to(sender, to);
    const std::uint32_t near_receiver = joined_to(receiver, from);
    add_bundle({.from = from,
                .to = to,
                .is_inside = true,
                .messages = size(from) * (near_sender - itself),
                .sends = near_sender - itself,
                .receives = near_receiver - itself});
    add_bundle({.from = from,
                .to = to,
                .is_inside = false,
                .messages = size(from) * (size(to) - near_sender),
                .sends = behind_nic_of(sender) * (size(to) - near_sender),
                .receives = behind_nic_of(receiver) * (size(from) - near_receiver)});
  }

 private:
  std::uint64_t size(std::uint32_t group) const {
    return workload_.rank_classes.classes[group].size();
  }

  // Ranks of a group that links join to `rank`.
  std::uint32_t joined_to(std::uint32_t rank, std::uint32_t group) const {
    return count_beside(
        rank, [&](std::uint32_t other) { return workload_.rank_classes.class_of[other] == group; });
  }
  // Ranks of its own group behind its NIC.
  std::uint32_t behind_nic_of(std::uint32_t rank) const {
    const SimulatedNetwork& network = workload_.network;
    const int nic = topo::nic_of(network.cluster, network.devices[rank]);
    return count_beside(rank, [&](std::uint32_t other) {
      return workload_.rank_classes.class_of[other] == workload_.rank_classes.class_of[rank] &&
             network.devices[other].server == network.devices[rank].server &&
             topo::nic_of(network.cluster, network.devices[other]) == nic;
    });
  }
  template <typename Counts>
  std::uint32_t count_beside(std::uint32_t rank, Counts&& counts) const {
    std::uint32_t count = 0;
    for (const std::uint32_t other : workload_.network.ranks_joined_to(rank))
      count += counts(other) ? 1 : 0;
    return count;
  }

  void add_bundle(const Bundle& bundle) {
    if (bundle.messages == 0) return;
    workload_.traffic.add(kBundleBits | static_cast<std::uint32_t>(workload_.bundles.size()),
                          part_);
    workload_.bundles.push_back(bundle);
  }

  ScenarioWorkload& workload_;
  const Bytes part_;
};

}  // namespace

std::vector<bool> items_to_aggregate(const Scenario& scenario) {
  const std::size_t count = scenario.traffic.size();
  std::vector<bool> aggregates(count, false);
  if (scenario.level != Level::kFlow || scenario.routing.policy != RoutePolicy::kSpray ||
      count > kMostSearched)
    return aggregates;
  for (std::size_t i = 0; i < count; ++i)
    aggregates[i] =
        scenario.traffic[i].pattern == TrafficPattern::kAllToAll && scenario.traffic[i].aggregates;
  const std::vector<std::vector<bool>> before = items_before(scenario);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t other = 0; other < count && aggregates[i]; ++other) {
        const bool may_overlap = other != i && !before[i][other] && !before[other][i];
        if (!may_overlap || aggregates[other]) continue;
        aggregates[i] = false;
        has_changed = true;
      }
    }
  }
  return aggregates;
}

std::size_t count_bundles(const RankClasses& rank_classes, std::span<const std::uint32_t> ranks) {
  const std::size_t groups = groups_of(rank_classes, ranks).size();
  return 2 * groups * groups;
}

void add_bundles(ScenarioWorkload& workload, std::span<const std::uint32_t> ranks, Bytes part) {
  BundleBuilder builder(workload, part);
  const std::vector<std::uint32_t> groups = groups_of(workload.rank_classes, ranks);
  for (const std::uint32_t from : groups)
    for (const std::uint32_t to : groups)
      builder.add(from, to);
}

}  // namespace regatta::simulate
