// sched/internal/rising_order.h: items by rising cost, sorted only as far as they are asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/victim_cost.h"

namespace regatta::sched {

// Among equal costs the last item comes first.
class RisingOrder {
 public:
  RisingOrder() = default;
  explicit RisingOrder(std::vector<VictimCost> costs)
      : costs_(std::move(costs)), order_(costs_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  std::size_t size() const { return order_.size(); }

  // The item with `rank` cheaper ones; an index into the costs. Time: linear for the first ranks,
  // that of sorting for all.
  int item(std::size_t rank) {
    while (sorted_ <= rank)
      sort_more();
    return order_[rank];
  }

 private:
  static constexpr std::size_t kFirst = 64;

  void sort_more() {
    const auto goes_before = [this](int a, int b) {
      return at(costs_, a) != at(costs_, b) ? at(costs_, a) < at(costs_, b) : a > b;
    };
    const std::size_t end = std::min(order_.size(), std::max(kFirst, 4 * sorted_));
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(end);
    if (last != order_.end()) std::nth_element(first, last, order_.end(), goes_before);
    std::sort(first, last, goes_before);
    sorted_ = end;
  }

  std::vector<VictimCost> costs_;
  std::vector<int> order_;
  std::size_t sorted_ = 0;
};

}  // namespace regatta::sched
