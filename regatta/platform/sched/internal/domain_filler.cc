#include "regatta/platform/sched/internal/domain_filler.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {

DomainFiller::DomainFiller(const FreeCapacity& free, FillOrder order, Items items)
    : free_(free),
      domains_(free.domains()),
      order_(order),
      items_(std::move(items)),
      capacity_before_(items_.capacity.size() + 1),
      amounts_(items_.capacity.size()) {
  for (std::size_t i = 0; i < items_.capacity.size(); ++i)
    capacity_before_[i + 1] = capacity_before_[i] + items_.capacity[i];
}

void DomainFiller::fill(DomainRef domain, int units) {
  if (units == 0) return;
  if (domain.level == items_.level) {
    at(amounts_, domain.index - items_.first) += units;
    return;
  }
  if (order_ == FillOrder::kSpread)
    fill_evenly(children_of(domain), units);
  else
    fill_in_order(children_of(domain), units);
}

// Those with some capacity.
std::vector<DomainFiller::Child> DomainFiller::children_of(DomainRef domain) const {
  const NodeRange range = at(domains_.of(domain.level), domain.index);
  const auto level = static_cast<TopologyLevel>(static_cast<int>(domain.level) - 1);
  const int last = domains_.domain_at(level, range.end - 1);
  std::vector<Child> children;
  for (int index = domains_.domain_at(level, range.begin); index <= last; ++index) {
    const NodeRange nodes = at(domains_.of(level), index);
    const int item_begin = domains_.domain_at(items_.level, nodes.begin) - items_.first;
    const int item_end = domains_.domain_at(items_.level, nodes.end - 1) + 1 - items_.first;
    Child child;
    child.domain = {level, index};
    child.capacity = at(capacity_before_, item_end) - at(capacity_before_, item_begin);
    if (child.capacity == 0) continue;
    child.free_milli = free_.free_milli(level, index);
    child.is_wholly_free = free_.is_wholly_free(level, index);
    child.failures = free_.failures_per_day(nodes) / (nodes.end - nodes.begin);
    children.push_back(child);
  }
  return children;
}

bool DomainFiller::goes_before(const Child& a, const Child& b) const {
  if (order_ == FillOrder::kSafest && a.failures != b.failures) return a.failures < b.failures;
  if (order_ == FillOrder::kPartlyUsed && a.is_wholly_free != b.is_wholly_free)
    return b.is_wholly_free;
  return std::tuple{-a.capacity, a.free_milli, a.failures, a.domain.index} <
         std::tuple{-b.capacity, b.free_milli, b.failures, b.domain.index};
}

bool DomainFiller::fits_better(const Child& a, const Child& b) const {
  if (order_ == FillOrder::kSafest && a.failures != b.failures) return a.failures < b.failures;
  if (order_ == FillOrder::kPartlyUsed && a.is_wholly_free != b.is_wholly_free)
    return b.is_wholly_free;
  return std::tuple{a.free_milli, a.failures, a.domain.index} <
         std::tuple{b.free_milli, b.failures, b.domain.index};
}

void DomainFiller::fill_in_order(std::vector<Child> children, int units) {
  std::sort(children.begin(), children.end(),
            [this](const Child& a, const Child& b) { return goes_before(a, b); });
  // The largest of each child and those after it tells when one can hold all that is left; where
  // what is partly used goes first, only among its like.
  const auto goes_together = [this, &children](std::size_t i, std::size_t j) {
    return order_ != FillOrder::kPartlyUsed ||
           children[i].is_wholly_free == children[j].is_wholly_free;
  };
  std::vector<int> largest(children.size() + 1);
  for (std::size_t i = children.size(); i-- > 0;) {
    const bool is_last = i + 1 == children.size() || !goes_together(i, i + 1);
    largest[i] = is_last ? children[i].capacity : std::max(largest[i + 1], children[i].capacity);
  }
  for (std::size_t i = 0; units > 0; ++i) {
    if (largest[i] >= units) {
      std::size_t best = i;
      while (children[best].capacity < units)
        ++best;
      for (std::size_t j = best + 1; j < children.size() && goes_together(i, j); ++j)
        if (children[j].capacity >= units && fits_better(children[j], children[best])) best = j;
      fill(children[best].domain, units);
      return;
    }
    fill(children[i].domain, children[i].capacity);
    units -= children[i].capacity;
  }
}

void DomainFiller::fill_evenly(const std::vector<Child>& children, int units) {
  std::vector<std::size_t> order(children.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&children](std::size_t a, std::size_t b) {
    return std::tuple{children[a].capacity, children[a].failures, a} <
           std::tuple{children[b].capacity, children[b].failures, b};
  });
  // By rising capacity: each gets its part of what is left, or all that it holds.
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int parts = static_cast<int>(order.size() - i);
    const int share = std::min(children[order[i]].capacity, units / parts);
    fill(children[order[i]].domain, share);
    units -= share;
  }
}

}  // namespace regatta::sched
