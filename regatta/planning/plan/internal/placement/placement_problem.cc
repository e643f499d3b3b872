#include "regatta/planning/plan/internal/placement/placement_problem.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/cost/gpu_network.h"

namespace regatta::plan {
namespace {

using topo::Fabric;

using Edges = std::map<std::tuple<int, int, int>, HalfBytes>;  // (axis, smaller, larger slot)
// Members of (axis, slots and ranks): the same slots exchange for many groups of ranks.
using Exchanges = std::map<std::pair<int, std::vector<std::pair<int, int>>>, HalfBytes>;

HalfBytes rounded(double bytes) {
  return std::llround(bytes);
}

class Folding {
 public:
  Folding(int slots, int devices) : slots_(slots), devices_(devices) {}

  void add(int axis, const GroupTraffic& line) {
    const int world = slots_ * devices_;
    REGATTA_CHECK(line.ranks > 0 && line.stride > 0 && world % (line.ranks * line.stride) == 0);
    std::vector<int> members(static_cast<std::size_t>(line.ranks));
    for (int rank = 0; rank < world; ++rank) {
      if (rank / line.stride % line.ranks != 0) continue;
      for (int i = 0; i < line.ranks; ++i)
        at(members, i) = (rank + i * line.stride) / devices_;
      if (members.front() == members.back()) continue;  // inside a server
      if (line.pattern == GroupPattern::kExchange)
        add_exchange(axis, line, members);
      else
        add_connections(axis, line, members);
    }
  }

  void write(PlacementProblem& network) const {
    write_neighbours(network);
    write_exchanges(network);
  }

 private:
  void connect(int axis, int a, int b, double halves) {
    if (a == b) return;
    edges_[{axis, std::min(a, b), std::max(a, b)}] += rounded(halves);
  }

  void add_connections(int axis, const GroupTraffic& line, const std::vector<int>& members) {
    if (line.pattern == GroupPattern::kEnds) {
      connect(axis, members.front(), members.back(), 2 * line.bytes);
      return;
    }
    const bool is_ring = line.pattern == GroupPattern::kRing;
    for (std::size_t i = 0; i + 1 < members.size(); ++i)
      connect(axis, members[i], members[i + 1], is_ring ? line.bytes : 2 * line.bytes);
    if (is_ring) connect(axis, members.back(), members.front(), line.bytes);
  }

  void add_exchange(int axis, const GroupTraffic& line, const std::vector<int>& members) {
    std::vector<std::pair<int, int>> counted;  // slots rise along a line
    for (const int slot : members) {
      if (counted.empty() || counted.back().first != slot) counted.emplace_back(slot, 0);
      ++counted.back().second;
    }
    exchanges_[{axis, std::move(counted)}] += rounded(2 * line.bytes / (line.ranks - 1));
  }

  void write_neighbours(PlacementProblem& network) const {
    std::vector<std::vector<NeighbourTraffic>> of(static_cast<std::size_t>(slots_));
    for (const auto& [key, halves] : edges_) {
      const auto [axis, a, b] = key;
      at(of, a).push_back({b, axis, halves});
      at(of, b).push_back({a, axis, halves});
    }
    network.first = {0};
    for (const std::vector<NeighbourTraffic>& some : of) {
      network.neighbours.insert(network.neighbours.end(), some.begin(), some.end());
      network.first.push_back(static_cast<int>(network.neighbours.size()));
    }
  }

  void write_exchanges(PlacementProblem& network) const {
    std::vector<std::vector<int>> of(static_cast<std::size_t>(slots_));
    for (const auto& [key, halves] : exchanges_) {
      AllToAllGroup exchange{.axis = key.first, .each_way = halves, .ranks = 0, .members = {}};
      for (const auto& [slot, ranks] : key.second) {
        at(of, slot).push_back(static_cast<int>(network.exchanges.size()));
        exchange.members.push_back({slot, ranks});
        exchange.ranks += ranks;
      }
      network.exchanges.push_back(std::move(exchange));
    }
    network.first_exchange = {0};
    for (const std::vector<int>& some : of) {
      network.exchange_of.insert(network.exchange_of.end(), some.begin(), some.end());
      network.first_exchange.push_back(static_cast<int>(network.exchange_of.size()));
    }
  }

  int slots_;
  int devices_;
  Edges edges_;
  Exchanges exchanges_;
};

void add_leaves(PlacementProblem& network, const topo::Cluster& cluster,
                const std::vector<ServerId>& servers) {
  const Fabric& fabric = cluster.fabric;
  const int per_leaf = std::max(1, fabric.servers_per_leaf);
  // Leaves of all rails count.
  const int leaves_per_group = fabric.tiers == 3 ? fabric.leaves_per_group / fabric.rails : 0;
  const std::vector<int> domains = scale_up_domains(cluster);
  int last_leaf = -1;
  int last_group = -1;
  network.groups = 0;
  std::vector<ServerId> slot;  // servers of one domain
  for (const ServerId server : servers) {
    if (!slot.empty() && domains[slot.front().index()] != domains[server.index()]) slot.clear();
    slot.push_back(server);
    if (static_cast<int>(slot.size()) < network.joined) continue;
    const int leaf = slot.front().value / per_leaf;
    const int group = leaves_per_group > 0 ? leaf / leaves_per_group : 0;
    if (group != last_group) ++network.groups;
    if (leaf != last_leaf) {
      network.leaves.push_back(
          {.group = network.groups - 1, .servers = {}, .joined = network.joined});
    }
    std::vector<ServerId>& held = network.leaves.back().servers;
    held.insert(held.end(), slot.begin(), slot.end());
    slot.clear();
    last_leaf = leaf;
    last_group = group;
  }
}

void add_rates(PlacementProblem& network, const topo::Cluster& cluster,
               const topo::ServerType& type, double efficiency) {
  const Fabric& fabric = cluster.fabric;
  network.devices = type.device_count * network.joined;
  network.server_rate = type.nic_rate * (type.nic_count * network.joined) * efficiency;
  if (fabric.tiers >= 2)
    network.leaf_rate = fabric.uplink * (fabric.rails * uplinks_of_leaf(fabric)) * efficiency;
  if (fabric.tiers == 3)
    network.group_rate = fabric.super_uplink * uplinks_of_group(fabric) * efficiency;
}

using Loads = std::vector<std::array<HalfBytes, kAxisCount>>;

// The bytes that leave each part, one way, in half bytes.
Loads loads_of(const PlacementProblem& network, const std::vector<int>& part_of, int parts) {
  Loads loads(static_cast<std::size_t>(parts));
  const auto part = [&](int slot) { return at(part_of, slot); };
  for (int slot = 0; slot < network.slots; ++slot) {
    if (part(slot) < 0) continue;
    const auto s = static_cast<std::size_t>(slot);
    for (int i = network.first[s]; i < network.first[s + 1]; ++i) {
      const NeighbourTraffic& other = at(network.neighbours, i);
      if (part(other.slot) < 0 || part(other.slot) == part(slot)) continue;
      at(at(loads, part(slot)), other.axis) += other.each_way;
    }
  }
  for (const AllToAllGroup& exchange : network.exchanges) {
    HalfBytes there = 0;
    for (const AllToAllGroup::Member& member : exchange.members)
      there += part(member.slot) < 0 ? 0 : member.ranks;
    for (const AllToAllGroup::Member& member : exchange.members) {
      if (part(member.slot) < 0) continue;
      HalfBytes inside = 0;
      for (const AllToAllGroup::Member& peer : exchange.members)
        inside += part(peer.slot) == part(member.slot) ? peer.ranks : 0;
      at(at(loads, part(member.slot)), exchange.axis) +=
          exchange.each_way * member.ranks * (there - inside);
    }
  }
  return loads;
}

void raise_to_busiest(const Loads& loads, BytesPerSecond rate,
                      std::array<Seconds, kAxisCount>& times) {
  if (rate.value <= 0) return;
  for (const auto& load : loads) {
    for (std::size_t axis = 0; axis < kAxisCount; ++axis)
      times[axis] =
          std::max(times[axis], Seconds{static_cast<double>(load[axis]) / 2 / rate.value});
  }
}

}  // namespace

topo::DomainParts parts_of_slots(const topo::Cluster& cluster, const std::vector<ServerId>& servers,
                                 int slots) {
  const std::vector<int> domains = scale_up_domains(cluster);
  std::set<int> among;
  for (const ServerId server : servers)
    among.insert(domains[server.index()]);
  return cost::job_parts(cluster.type_of(servers.front()).scale_up, slots,
                         static_cast<int>(among.size()));
}

PlacementProblem placement_problem(const topo::Cluster& cluster,
                                   const std::vector<ServerId>& servers,
                                   const StrategyTraffic& traffic, int servers_filled,
                                   double network_efficiency) {
  const topo::ServerType& type = cluster.type_of(servers.front());
  PlacementProblem network;
  network.joined = parts_of_slots(cluster, servers, servers_filled).servers;
  const int slots = servers_filled / network.joined;
  network.slots = slots;
  network.axes = traffic;
  add_leaves(network, cluster, servers);
  add_rates(network, cluster, type, network_efficiency);
  for (const GroupTraffic& line : traffic[static_cast<std::size_t>(ParallelAxis::kPp)].lines)
    if (line.stride % network.devices == 0) network.stages = line.ranks;
  Folding folding(slots, network.devices);
  for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
    for (const GroupTraffic& line : traffic[axis].lines)
      folding.add(static_cast<int>(axis), line);
  }
  folding.write(network);
  std::vector<int> alone(static_cast<std::size_t>(slots));
  for (int slot = 0; slot < slots; ++slot)
    at(alone, slot) = slot;
  raise_to_busiest(loads_of(network, alone, slots), network.server_rate, network.nic_time);
  return network;
}

PlacementTime placement_time(const PlacementProblem& network, const LeafAssignment& leaf_of) {
  PlacementTime time{.axes = network.nic_time, .total = {}};
  raise_to_busiest(loads_of(network, leaf_of, static_cast<int>(network.leaves.size())),
                   network.leaf_rate, time.axes);
  std::vector<int> group_of;
  group_of.reserve(leaf_of.size());
  for (const int leaf : leaf_of)
    group_of.push_back(leaf < 0 ? -1 : at(network.leaves, leaf).group);
  raise_to_busiest(loads_of(network, group_of, network.groups), network.group_rate, time.axes);
  for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
    time.axes[axis] = exposed_time(network.axes[axis], time.axes[axis]);
    time.total += time.axes[axis];
  }
  return time;
}

}  // namespace regatta::plan
