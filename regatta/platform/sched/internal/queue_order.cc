#include "regatta/platform/sched/internal/queue_order.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "regatta/base/core/ids.h"

namespace regatta::sched {

QueueOrder::QueueOrder(const QuotaTree& tree, const FairShares& shares, const QuotaUsage& usage,
                       const ResourceAmounts& capacity, const std::vector<int>& leaves)
    : tree_(&tree), shares_(&shares), usage_(&usage), capacity_(capacity), guarantees_(tree) {
  for (const int leaf : leaves)
    heap_.push_back({.leaf = leaf});
  reorder();
}

QueueOrder::Place QueueOrder::place_of(int leaf) const {
  Place place{.distance = std::numeric_limits<int>::max(),
              .name_rank = tree_->name_rank(leaf),
              .leaf = leaf};
  int distance = 0;
  for (int queue = leaf; queue >= 0; queue = tree_->parent(queue), ++distance) {
    if (!guarantees_.is_below(queue, usage_->of_queue(queue))) continue;
    place.distance = distance;
    break;
  }
  const double used = dominant_share(usage_->of_queue(leaf), capacity_);
  const double fair = at(shares_->dominant, leaf);
  place.ratio = fair > 0 ? used / fair : std::numeric_limits<double>::infinity();
  return place;
}

int QueueOrder::next() {
  while (!heap_.empty()) {
    const Place now = place_of(heap_.front().leaf);
    if (now == heap_.front()) return now.leaf;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.back() = now;
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  return -1;
}

void QueueOrder::remove_next() {
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  heap_.pop_back();
}

void QueueOrder::reorder() {
  for (Place& place : heap_)
    place = place_of(place.leaf);
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

}  // namespace regatta::sched
