#include "regatta/planning/plan/internal/placement/initial_assignments.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::plan {
namespace {

// Slots in tiles of `stages` x `columns`, and those in bands of `band` stages.
struct SlotBlock {
  int stages = 1;
  int columns = 1;
  int band = 1;
};

std::vector<int> block_order(const PlacementProblem& network, const SlotBlock& tile) {
  const int columns = network.slots / network.stages;
  const auto key = [&](int slot) {
    const int stage = slot / columns;
    const int column = slot % columns;
    return std::tuple{stage / tile.band, column / tile.columns, stage / tile.stages, column, stage};
  };
  std::vector<int> order(static_cast<std::size_t>(network.slots));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  return order;
}

int largest_leaf(const PlacementProblem& network) {
  int most = 1;
  for (const LeafServers& leaf : network.leaves)
    most = std::max(most, leaf.capacity());
  return most;
}

// Every height that a leaf can hold whole, with bands of one tile, of a few, and of all stages.
std::vector<SlotBlock> slot_blocks(const PlacementProblem& network) {
  const int capacity = largest_leaf(network);
  std::vector<SlotBlock> tiles;
  for (int stages = 1; stages <= std::min(network.stages, capacity); ++stages) {
    std::set<int> bands = {stages};
    if (network.groups > 1) {
      for (const int times : {2, 4, 8})
        if (stages * times < network.stages) bands.insert(stages * times);
      bands.insert((network.stages + stages - 1) / stages * stages);
    }
    for (const int band : bands)
      tiles.push_back({.stages = stages, .columns = std::max(1, capacity / stages), .band = band});
  }
  tiles.push_back({.stages = network.stages, .columns = 1, .band = network.stages});
  return tiles;
}

// As they are, and the largest first, group by group or not.
std::vector<std::vector<int>> leaf_orders(const PlacementProblem& network) {
  std::vector<int> order(network.leaves.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> servers(static_cast<std::size_t>(network.groups), 0);
  for (const LeafServers& leaf : network.leaves)
    servers[as_index(leaf.group)] += leaf.capacity();
  const auto at = [&](int leaf) -> const LeafServers& { return network.leaves[as_index(leaf)]; };
  std::vector<std::vector<int>> orders = {order};
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return at(a).capacity() > at(b).capacity(); });
  orders.push_back(order);
  if (network.groups == 1) return orders;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const int in_a = servers[as_index(at(a).group)];
    const int in_b = servers[as_index(at(b).group)];
    return std::tuple{-in_a, at(a).group} < std::tuple{-in_b, at(b).group};
  });
  orders.push_back(order);
  return orders;
}

// Leaves take multiples of `whole` slots while the servers suffice; the rest goes where room is.
LeafAssignment fill(const PlacementProblem& network, const std::vector<int>& slots,
                    const std::vector<int>& leaves, int whole) {
  LeafAssignment leaf_of(slots.size());
  std::vector<int> room;
  std::size_t next = 0;
  const auto put = [&](int leaf, int count) {
    for (; count > 0 && next < slots.size(); --count)
      leaf_of[as_index(slots[next++])] = leaf;
  };
  for (const int leaf : leaves) {
    const int capacity = network.leaves[as_index(leaf)].capacity();
    const int taken = std::min(capacity / whole * whole, static_cast<int>(slots.size() - next));
    put(leaf, taken);
    room.push_back(capacity - taken);
  }
  for (std::size_t i = 0; i < leaves.size(); ++i)
    put(leaves[i], room[i]);
  return leaf_of;
}

// The unused of `leaves` whose capacities sum to the least that is `wanted` or more, but no more
// than `most`; empty where there are none.
std::vector<int> leaves_of_size(const PlacementProblem& network, const std::vector<int>& leaves,
                                int wanted, int most) {
  // By sum: the last leaf that reached it, as an index into `leaves`.
  std::vector<int> reached(static_cast<std::size_t>(most) + 1, -1);
  const auto capacity = [&](std::size_t i) {
    return network.leaves[as_index(leaves[i])].capacity();
  };
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    for (int sum = most; sum >= capacity(i); --sum) {
      const auto before = static_cast<std::size_t>(sum - capacity(i));
      if (reached[as_index(sum)] >= 0 || (before > 0 && reached[before] < 0)) continue;
      reached[as_index(sum)] = static_cast<int>(i);
    }
  }
  for (int sum = wanted; sum <= most; ++sum) {
    if (reached[as_index(sum)] < 0) continue;
    std::vector<int> chosen;
    for (int rest = sum; rest > 0;) {
      const auto i = static_cast<std::size_t>(reached[as_index(rest)]);
      chosen.push_back(leaves[i]);
      rest -= capacity(i);
    }
    return chosen;
  }
  return {};
}

// Every band of `stages` stages on leaves of its own, so that no leaf holds parts of two bands; of
// one group where that goes. Empty where the capacities do not add up.
LeafAssignment fill_bands(const PlacementProblem& network, const std::vector<int>& slots,
                          int stages) {
  const int columns = network.slots / network.stages;
  std::vector<int> unused(network.leaves.size());
  std::iota(unused.begin(), unused.end(), 0);
  int spare = -network.slots;
  for (const LeafServers& leaf : network.leaves)
    spare += leaf.capacity();
  LeafAssignment leaf_of(slots.size());
  for (int first = 0; first < network.stages; first += stages) {
    const int height = std::min(stages, network.stages - first);
    const int wanted = height * columns;
    std::vector<int> chosen;
    for (int group = 0; group < network.groups && chosen.empty(); ++group) {
      std::vector<int> near;
      for (const int leaf : unused)
        if (network.leaves[as_index(leaf)].group == group) near.push_back(leaf);
      chosen = leaves_of_size(network, near, wanted, wanted + spare);
    }
    if (chosen.empty()) chosen = leaves_of_size(network, unused, wanted, wanted + spare);
    if (chosen.empty()) return {};
    // Those that end between two columns last, two by two.
    std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
      const auto over = [&](int leaf) {
        return network.leaves[as_index(leaf)].capacity() % height;
      };
      return over(a) < over(b);
    });
    int next = first * columns;
    for (const int leaf : chosen) {
      const int capacity = network.leaves[as_index(leaf)].capacity();
      for (int i = 0; i < capacity && next < first * columns + wanted; ++i)
        leaf_of[as_index(slots[as_index(next++)])] = leaf;
      spare -= capacity;
      std::erase(unused, leaf);
    }
    spare += wanted;
  }
  return leaf_of;
}

// Numbers of slots that are worth keeping together: columns of a tile, parts of a ring, exchanges.
std::set<int> wholes_of(const PlacementProblem& network, const SlotBlock& tile) {
  const int capacity = largest_leaf(network);
  std::set<int> wholes = {1, tile.stages, network.slots / network.stages};
  for (const AllToAllGroup& exchange : network.exchanges)
    wholes.insert(static_cast<int>(exchange.members.size()));
  for (const AxisTraffic& axis : network.axes)
    for (const GroupTraffic& line : axis.lines)
      wholes.insert(line.ranks * line.stride / network.devices);
  std::erase_if(wholes, [&](int whole) { return whole < 1 || whole > capacity; });
  return wholes;
}

}  // namespace

std::vector<LeafAssignment> initial_assignments(const PlacementProblem& network) {
  std::vector<LeafAssignment> all;
  const auto orders = leaf_orders(network);
  for (const SlotBlock& tile : slot_blocks(network)) {
    const std::vector<int> slots = block_order(network, tile);
    for (const std::vector<int>& leaves : orders)
      for (const int whole : wholes_of(network, tile))
        all.push_back(fill(network, slots, leaves, whole));
    if (tile.band != tile.stages) continue;
    const int columns = network.slots / network.stages;
    LeafAssignment banded = fill_bands(
        network,
        block_order(network, {.stages = tile.stages, .columns = columns, .band = tile.band}),
        tile.stages);
    if (!banded.empty()) all.push_back(std::move(banded));
  }
  return all;
}

}  // namespace regatta::plan
