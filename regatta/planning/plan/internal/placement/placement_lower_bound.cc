#include "regatta/planning/plan/internal/placement/placement_lower_bound.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/internal/placement/uplink_time_bounds.h"

namespace regatta::plan {
namespace {

class Room {
 public:
  Room(const PlacementProblem& network, const SlotGrid& grid, const std::vector<int>& capacities,
       BytesPerSecond rate)
      : slots_(network.slots), ends_(grid.has_chain ? 2 * grid.columns : 0) {
    for (const int capacity : capacities)
      ++parts_[std::min(capacity, network.slots)];
    const int most = parts_.rbegin()->first;
    step_ = (2 * most + kChainEndLevels) / kChainEndLevels;
    times_ = uplink_time_bounds(network, grid, most, rate, step_);
  }

  // The least of the times at which there is room for all slots.
  Seconds least_time() const {
    std::vector<double> all;
    for (std::size_t n = 1; n < times_.size(); ++n)
      all.insert(all.end(), times_[n].begin(), times_[n].end());
    std::sort(all.begin(), all.end());
    const auto found = std::partition_point(all.begin(), all.end(),
                                            [&](double time) { return slots_in(time) < slots_; });
    return {found == all.end() ? 0 : *found};
  }

 private:
  // Slots that the parts hold at most when none takes longer: ends have a price in slots, and any
  // price gives a bound (the dual of dividing the ends among the parts).
  double slots_in(double time) const {
    std::vector<std::array<int, kChainEndLevels>> largest(times_.size());
    largest[0].fill(0);
    for (std::size_t n = 1; n < times_.size(); ++n) {
      for (std::size_t level = 0; level < kChainEndLevels; ++level)
        largest[n][level] = times_[n][level] <= time ? static_cast<int>(n) : largest[n - 1][level];
    }
    double least = slots_at(largest, 0);
    constexpr double kCheapest = 0.05;
    constexpr double kDearest = 20;
    for (double price = kCheapest; price < kDearest; price *= 1.15)
      least = std::min(least, slots_at(largest, price));
    return least + 1e-6;
  }

  double slots_at(const std::vector<std::array<int, kChainEndLevels>>& largest,
                  double price) const {
    double sum = price * ends_;
    for (const auto& [capacity, count] : parts_) {
      double most = 0;
      for (int level = 0; level < kChainEndLevels; ++level) {
        const int slots = at(at(largest, capacity), level);
        most = std::max(most, slots - price * level * step_);
      }
      sum += most * count;
    }
    return sum;
  }

  int slots_;
  int ends_;
  int step_ = 1;
  std::map<int, int> parts_;  // number, by capacity
  std::vector<ChainEndTimes> times_;
};

}  // namespace

Seconds placement_lower_bound(const PlacementProblem& network) {
  const SlotGrid grid = slot_grid(network);
  std::vector<int> leaves;
  std::vector<int> groups(static_cast<std::size_t>(network.groups), 0);
  for (const LeafServers& leaf : network.leaves) {
    leaves.push_back(leaf.capacity());
    at(groups, leaf.group) += leaf.capacity();
  }
  const Seconds least = Room(network, grid, leaves, network.leaf_rate).least_time();
  if (network.groups == 1) return least;
  return std::max(least, Room(network, grid, groups, network.group_rate).least_time());
}

}  // namespace regatta::plan
