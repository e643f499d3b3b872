#include "regatta/planning/plan/internal/placement/placement_candidates.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/model/cost/rates.h"

namespace regatta::plan {
namespace {

using Devices = std::vector<topo::DeviceRef>;

// Servers of the leaves in turn: the first of every leaf, then the second.
int turn_of(const topo::Cluster& cluster, ServerId server) {
  const int per_leaf = cluster.fabric.servers_per_leaf;
  return per_leaf > 0 ? server.value % per_leaf : 0;
}

std::vector<Devices> device_orders(const topo::Cluster& cluster, const Devices& devices) {
  std::vector<Devices> orders;
  for (const bool by_turn : {false, true}) {
    for (const bool by_index : {false, true}) {
      Devices order = devices;
      std::stable_sort(order.begin(), order.end(), [&](topo::DeviceRef a, topo::DeviceRef b) {
        if (by_index && a.index != b.index) return a.index < b.index;
        const int turn_a = by_turn ? turn_of(cluster, a.server) : 0;
        const int turn_b = by_turn ? turn_of(cluster, b.server) : 0;
        if (turn_a != turn_b) return turn_a < turn_b;
        return a < b;
      });
      if (std::find(orders.begin(), orders.end(), order) == orders.end())
        orders.push_back(std::move(order));
    }
  }
  return orders;
}

enum class RankAxis { kTp, kDp, kPp };

int size_of(const workload::Strategy& strategy, RankAxis axis) {
  if (axis == RankAxis::kTp) return strategy.tp;
  return axis == RankAxis::kDp ? strategy.dp : strategy.pp;
}

void set_coordinate(workload::RankCoordinates& at, RankAxis axis, int value) {
  if (axis == RankAxis::kTp) at.tp = value;
  if (axis == RankAxis::kDp) at.dp = value;
  if (axis == RankAxis::kPp) at.pp = value;
}

// Device i of `order` goes to the rank whose coordinates count up along `axes`, innermost first.
Placement lay_out(const workload::Strategy& strategy, const std::array<RankAxis, 3>& axes,
                  const Devices& order) {
  Placement placement(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    workload::RankCoordinates at;
    int rest = static_cast<int>(i);
    for (const RankAxis axis : axes) {
      set_coordinate(at, axis, rest % size_of(strategy, axis));
      rest /= size_of(strategy, axis);
    }
    placement[workload::rank_at(strategy, at).index()] = order[i];
  }
  return placement;
}

std::string_view words_of(cost::PathClass path) {
  switch (path) {
    case cost::PathClass::kSameServer:
      return "within servers";
    case cost::PathClass::kSameLeaf:
      return "within leaves";
    case cost::PathClass::kSameGroup:
      return "across leaves";
    case cost::PathClass::kSuperSpine:
      return "across groups";
  }
  return "";
}

// "1 of 3 stage boundaries crosses a leaf", "2 of 8 dp ring hops cross a leaf".
std::string crossing_text(cost::PathClass path, std::string_view axis, bool chain, int crossing,
                          int hops) {
  const std::string_view boundary = path == cost::PathClass::kSameLeaf    ? "servers"
                                    : path == cost::PathClass::kSameGroup ? "a leaf"
                                                                          : "a group";
  return fmt::format("{} of {} {} {} {}", crossing, hops,
                     chain ? "stage boundaries" : fmt::format("{} ring hops", axis),
                     crossing == 1 ? "crosses" : "cross", boundary);
}

// The worst class over all groups of one axis, and the most hops of it in one group.
std::string name_axis(const topo::Cluster& cluster, const Placement& placement,
                      const std::set<std::vector<Rank>>& groups, std::string_view axis,
                      bool chain) {
  cost::PathClass worst = cost::PathClass::kSameServer;
  int worst_hops = 0;
  int hops = 0;
  for (const std::vector<Rank>& group : groups) {
    std::map<cost::PathClass, int> count;
    // Two ranks have one hop between them, in a ring too.
    hops = static_cast<int>(group.size()) - (chain || group.size() == 2 ? 1 : 0);
    for (int i = 0; i < hops; ++i) {
      const auto from = static_cast<std::size_t>(i);
      const std::size_t to = (from + 1) % group.size();
      ++count[cost::path_class(cluster, placement[group[from].index()],
                               placement[group[to].index()])];
    }
    const auto& [path, number] = *count.rbegin();
    if (path == worst) worst_hops = std::max(worst_hops, number);
    if (path > worst) {
      worst = path;
      worst_hops = number;
    }
  }
  if (worst_hops == hops) return fmt::format("{} {}", axis, words_of(worst));
  return crossing_text(worst, axis, chain, worst_hops, hops);
}

std::optional<topo::DeviceRef> find_device(const topo::Cluster& cluster, const std::string& name) {
  for (const topo::DeviceRef device : topo::all_devices(cluster)) {
    if (topo::to_string(cluster, device) == name) return device;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Placement> candidate_placements(const topo::Cluster& cluster, const Devices& devices,
                                            const workload::Strategy& strategy) {
  REGATTA_CHECK(devices.size() == static_cast<std::size_t>(strategy.world_size()));
  std::vector<Placement> placements;
  std::set<Placement> known;
  for (const Devices& order : device_orders(cluster, devices)) {
    std::array<RankAxis, 3> axes = {RankAxis::kTp, RankAxis::kDp, RankAxis::kPp};
    do {
      Placement placement = lay_out(strategy, axes, order);
      if (known.insert(placement).second) placements.push_back(std::move(placement));
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
  return placements;
}

std::string name_placement(const topo::Cluster& cluster, const workload::Strategy& strategy,
                           const Placement& placement) {
  std::set<std::vector<Rank>> tp;
  std::set<std::vector<Rank>> dp;
  std::set<std::vector<Rank>> pp;
  for (int rank = 0; rank < strategy.world_size(); ++rank) {
    tp.insert(workload::tp_group(strategy, Rank{rank}));
    dp.insert(workload::dp_group(strategy, Rank{rank}));
    pp.insert(workload::pp_group(strategy, Rank{rank}));
  }
  std::vector<std::string> parts;
  if (strategy.tp > 1) parts.push_back(name_axis(cluster, placement, tp, "tp", false));
  if (strategy.dp > 1) parts.push_back(name_axis(cluster, placement, dp, "dp", false));
  if (strategy.pp > 1) parts.push_back(name_axis(cluster, placement, pp, "pp", true));
  return parts.empty() ? "one device" : join(parts, ", ");
}

Result<Placement> parse_placement(const std::vector<std::string>& names,
                                  const topo::Cluster& cluster) {
  Placement placement;
  for (const std::string& name : names) {
    const auto device = find_device(cluster, name);
    if (!device) {
      return Error{Code::kInvalidInput,
                   fmt::format("placement: cluster {} has no device {}; its devices are {} to {}",
                               cluster.name, name,
                               topo::to_string(cluster, topo::all_devices(cluster).front()),
                               topo::to_string(cluster, topo::all_devices(cluster).back()))};
    }
    if (std::find(placement.begin(), placement.end(), *device) != placement.end()) {
      return Error{Code::kInvalidInput,
                   fmt::format("placement: device {} comes twice; give each rank its own", name)};
    }
    placement.push_back(*device);
  }
  return placement;
}

}  // namespace regatta::plan
