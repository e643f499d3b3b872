#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/planning/plan/internal/placement/placement_lower_bound.h"
#include "regatta/planning/plan/internal/placement/placement_search.h"
#include "regatta/planning/plan/placement.h"

namespace regatta::plan {
namespace {

Error bad(std::string message) {
  return {Code::kInvalidInput, std::move(message)};
}

// Index by server: whether it is named.
Result<std::vector<bool>> marked(const topo::Cluster& cluster,
                                 const std::vector<std::string>& names) {
  std::vector<bool> marks(cluster.servers.size(), false);
  for (const std::string& name : names) {
    const auto found =
        std::find_if(cluster.servers.begin(), cluster.servers.end(),
                     [&](const topo::Server& server) { return server.name == name; });
    if (found == cluster.servers.end()) {
      return bad(fmt::format("server {}: not in cluster {}; its servers are {} to {}",
                             printable(name, 64), cluster.name, cluster.servers.front().name,
                             cluster.servers.back().name));
    }
    const auto index = static_cast<std::size_t>(found - cluster.servers.begin());
    if (marks[index]) return bad(fmt::format("server {} comes twice; name it once", name));
    marks[index] = true;
  }
  return marks;
}

Status check_servers(const topo::Cluster& cluster, const std::vector<ServerId>& servers) {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const int value = servers[i].value;
    if (value < 0 || value >= static_cast<int>(cluster.servers.size()))
      return bad(fmt::format("server {}: cluster {} has {}; choose among them", value, cluster.name,
                             cluster.servers.size()));
    const topo::Server& server = cluster.servers[servers[i].index()];
    const topo::Server& first = cluster.servers[servers.front().index()];
    if (i > 0 && servers[i] == servers[i - 1])
      return bad(fmt::format("server {} comes twice; name it once", server.name));
    if (server.type != first.type) {
      return bad(fmt::format("server {} is {}, server {} {}; place a job on servers of one type",
                             server.name, server.type, first.name, first.type));
    }
  }
  return {};
}

// Servers that the ranks fill.
Result<int> slots_of(const FabricPlacementInput& input) {
  const int world = input.strategy.world_size();
  if (input.servers.empty()) {
    return bad(fmt::format("cluster {}: no server may be used; leave some in", input.cluster.name));
  }
  const int devices = input.cluster.type_of(input.servers.front()).device_count;
  if (world > devices && world % devices != 0) {
    return bad(
        fmt::format("{}: {} ranks do not fill servers of {} devices; choose degrees whose "
                    "product is a multiple of {}",
                    to_string(input.strategy), world, devices, devices));
  }
  const int slots = std::max(1, world / devices);
  if (slots > static_cast<int>(input.servers.size())) {
    return bad(
        fmt::format("{}: {} ranks need {} servers of {} devices, and {} may be used; choose "
                    "smaller degrees or leave more servers in",
                    to_string(input.strategy), world, slots, devices, input.servers.size()));
  }
  return slots;
}

// A job uses the same part of every domain.
Status check_domains(const PlacementProblem& network) {
  int slots = 0;
  for (const LeafServers& leaf : network.leaves)
    slots += leaf.capacity();
  if (slots >= network.slots) return {};
  return bad(
      fmt::format("{} parts of domains of {} servers are needed, and {} may be used; use "
                  "fewer servers, or leave more in",
                  network.slots, network.joined, slots));
}

Placement devices_of(const PlacementProblem& network, const LeafAssignment& leaf_of, int world) {
  std::vector<std::size_t> used(network.leaves.size(), 0);
  Placement placement;
  for (const int leaf : leaf_of) {
    const auto at = static_cast<std::size_t>(leaf);
    for (int device = 0; device < network.devices; ++device) {
      if (static_cast<int>(placement.size()) == world) break;
      const int index = device % (network.devices / network.joined);
      if (device > 0 && index == 0) ++used[at];
      placement.push_back({network.leaves[at].servers[used[at]], index});
    }
    ++used[at];
  }
  return placement;
}

using AxisCrossings = std::array<Crossings, kAxisCount>;

AxisCrossings crossings_of(const PlacementProblem& network, const LeafAssignment& leaf_of) {
  AxisCrossings all;
  const auto leaf = [&](int slot) { return leaf_of[as_index(slot)]; };
  const auto group = [&](int slot) { return network.leaves[as_index(leaf(slot))].group; };
  const auto count = [&](int axis, int a, int b) {
    Crossings& crossings = all[as_index(axis)];
    ++crossings.connections;
    crossings.leaves += leaf(a) != leaf(b) ? 1 : 0;
    crossings.groups += group(a) != group(b) ? 1 : 0;
  };
  for (int slot = 0; slot < network.slots; ++slot) {
    const auto s = static_cast<std::size_t>(slot);
    for (int i = network.first[s]; i < network.first[s + 1]; ++i) {
      const NeighbourTraffic& other = network.neighbours[as_index(i)];
      if (slot < other.slot) count(other.axis, slot, other.slot);
    }
  }
  for (const AllToAllGroup& exchange : network.exchanges)
    for (std::size_t i = 0; i < exchange.members.size(); ++i)
      count(exchange.axis, exchange.members[i].slot,
            exchange.members[(i + 1) % exchange.members.size()].slot);
  return all;
}

Crossings sum_of(const AxisCrossings& axes) {
  Crossings sum;
  for (const Crossings& axis : axes) {
    sum.connections += axis.connections;
    sum.leaves += axis.leaves;
    sum.groups += axis.groups;
  }
  return sum;
}

// `inside`: "servers", or "domains" where links join several.
std::string words_of(std::string_view name, const Crossings& axis, std::string_view inside) {
  const auto some = [&](std::string_view where, int count) {
    if (count == axis.connections) return fmt::format("{} {}", name, where);
    return fmt::format("{} {} at {} of {} connections", name, where, count, axis.connections);
  };
  if (axis.connections == 0) return fmt::format("{} within {}", name, inside);
  if (axis.groups > 0) return some("across groups", axis.groups);
  if (axis.leaves > 0) return some("across leaves", axis.leaves);
  return fmt::format("{} within leaves", name);
}

std::string sentence_of(const workload::Strategy& strategy, const AxisCrossings& axes,
                        std::string_view inside) {
  const int copies = is_folded(strategy) ? expert_fold(strategy).edp : 1;  // of experts
  const std::array<int, kAxisCount> degrees = {std::max(strategy.tp, strategy.expert_tp()),
                                               strategy.cp, strategy.ep, strategy.pp,
                                               std::max(strategy.dp, copies)};
  std::vector<std::string> parts;
  for (std::size_t axis = 0; axis < kAxisCount; ++axis)
    if (degrees[axis] > 1) parts.push_back(words_of(kAxisNames[axis], axes[axis], inside));
  const Crossings all = sum_of(axes);
  if (all.connections == 0) return parts.empty() ? "one device" : join(parts, ", ");
  std::string text = fmt::format("{}; {} of {} connections between {} cross a spine",
                                 join(parts, ", "), all.leaves, all.connections, inside);
  if (all.groups > 0) text += fmt::format(", {} of them a super-spine", all.groups);
  return text;
}

}  // namespace

Result<std::vector<ServerId>> servers_without(const topo::Cluster& cluster,
                                              const std::vector<std::string>& names) {
  REGATTA_TRY(marks, marked(cluster, names));
  std::vector<ServerId> servers;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (!marks[i]) servers.push_back({static_cast<int>(i)});
  return servers;
}

Result<FabricPlacement> place_on_fabric(const FabricPlacementInput& input) {
  std::vector<ServerId> servers = input.servers;
  std::sort(servers.begin(), servers.end());
  REGATTA_TRY_DO(check_servers(input.cluster, servers));
  REGATTA_TRY(slots, slots_of(input));
  const int world = input.strategy.world_size();
  const int devices = input.cluster.type_of(servers.front()).device_count;
  if (!parts_of_slots(input.cluster, servers, slots).are_equal())
    return bad(topo::unequal_parts_note(input.cluster.type_of(servers.front()).scale_up, slots));
  const StrategyTraffic inside;
  const PlacementProblem network =
      placement_problem(input.cluster, servers, world < devices ? inside : input.traffic, slots,
                        input.network_efficiency);
  REGATTA_TRY_DO(check_domains(network));
  const LeafAssignment in_order = rank_order_assignment(network);
  FabricPlacement placement;
  placement.lower_bound = placement_lower_bound(network);
  const SearchedAssignment found =
      search_assignment(network, {.seed = input.seed, .enough = placement.lower_bound.value});
  placement.evaluations = found.evaluations;
  placement.device_of_rank = devices_of(network, found.leaf_of, world);
  placement.time = placement_time(network, found.leaf_of);
  placement.rank_order = placement_time(network, in_order);
  const AxisCrossings axes = crossings_of(network, found.leaf_of);
  placement.crossings = sum_of(axes);
  placement.rank_order_crossings = sum_of(crossings_of(network, in_order));
  placement.sentence =
      sentence_of(input.strategy, axes, network.joined > 1 ? "domains" : "servers");
  return placement;
}

std::optional<ScoredPlacement> place_plan(const topo::Cluster& cluster,
                                          const PlanningProblem& problem,
                                          const workload::Strategy& strategy,
                                          const std::vector<std::string>& names) {
  if (cluster.fabric.tiers < 2 || problem.cluster != nullptr) return std::nullopt;
  const auto servers = servers_without(cluster, names);
  if (!servers) return std::nullopt;
  const EstimateInput input = input_of(problem, strategy);
  const StrategyTraffic traffic = strategy_traffic(input, micro_batch_work(input, problem.machine),
                                                   micro_batches_of(problem, strategy));
  const auto placement =
      place_on_fabric({.cluster = cluster,
                       .strategy = strategy,
                       .traffic = traffic,
                       .servers = *servers,
                       .network_efficiency = problem.stack.calibration.network_efficiency});
  if (!placement) return std::nullopt;
  return ScoredPlacement{
      *placement, score_placement(cluster, problem.model, strategy, placement->device_of_rank)};
}

}  // namespace regatta::plan
