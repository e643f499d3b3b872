#include "regatta/platform/sched/internal/fair_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/water_filling.h"

namespace regatta::sched {
namespace {

// Amounts of the queues as shares of the capacity. A leaf that demands what the cluster does not
// have demands nothing.
std::vector<ResourceShares> demanded_shares(const QuotaTree& tree,
                                            const std::vector<ResourceAmounts>& demand,
                                            const ResourceAmounts& capacity) {
  std::vector<ResourceShares> shares(as_index(tree.size()));
  for (const int leaf : tree.leaves()) {
    ResourceShares& share = at(shares, leaf);
    for (std::size_t r = 0; r < share.size(); ++r) {
      const long long wanted = at(demand, leaf).of[r];
      if (wanted <= 0) continue;
      if (capacity.of[r] <= 0) {
        share = {};
        break;
      }
      share[r] = static_cast<double>(wanted) / static_cast<double>(capacity.of[r]);
    }
  }
  return shares;
}

std::vector<ResourceShares> limit_shares(const QuotaTree& tree, const ResourceAmounts& capacity) {
  std::vector<ResourceShares> shares(as_index(tree.size()));
  for (int queue = 0; queue < tree.size(); ++queue) {
    for (std::size_t r = 0; r < capacity.of.size(); ++r) {
      const std::optional<long long> limit = tree.queue(queue).limit[r];
      at(shares, queue)[r] = limit && capacity.of[r] > 0
                                 ? static_cast<double>(*limit) / static_cast<double>(capacity.of[r])
                                 : std::numeric_limits<double>::infinity();
    }
  }
  return shares;
}

// The part of their guarantees that all queues at the top can have of a resource, where none takes
// more than it demands.
double guaranteed_part(const std::vector<double>& guaranteed, const std::vector<double>& demand) {
  const auto taken = [&](double part) {
    double sum = 0;
    for (std::size_t i = 0; i < guaranteed.size(); ++i)
      sum += std::min(part * guaranteed[i], demand[i]);
    return sum;
  };
  if (taken(1) <= 1) return 1;
  double low = 0;
  double high = 1;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (taken(middle) <= 1 ? low : high) = middle;
  }
  return low;
}

std::vector<ResourceShares> guaranteed_shares(const QuotaTree& tree,
                                              const std::vector<ResourceShares>& demand,
                                              const ResourceAmounts& capacity) {
  std::vector<ResourceShares> shares(as_index(tree.size()));
  for (std::size_t r = 0; r < capacity.of.size(); ++r) {
    if (capacity.of[r] <= 0) continue;
    for (int queue = 0; queue < tree.size(); ++queue) {
      at(shares, queue)[r] = static_cast<double>(tree.queue(queue).guaranteed.of[r]) /
                             static_cast<double>(capacity.of[r]);
    }
    std::vector<double> guaranteed;
    std::vector<double> demanded;
    for (const int top : tree.children(-1)) {
      guaranteed.push_back(at(shares, top)[r]);
      demanded.push_back(0);
      for (int below = top; below < tree.subtree_end(top); ++below)
        demanded.back() += at(demand, below)[r];
    }
    const double part = guaranteed_part(guaranteed, demanded);
    for (ResourceShares& share : shares)
      share[r] *= part;
  }
  return shares;
}

// Whole units, where the part is not one because of rounding, too.
long long whole_amount(double part, long long demand) {
  const double amount = part * static_cast<double>(demand);
  const double nearest = std::round(amount);
  const bool is_whole = std::abs(amount - nearest) <= 1e-6 + 1e-9 * nearest;
  return static_cast<long long>(is_whole ? nearest : std::floor(amount));
}

}  // namespace

FairShares fair_shares(const QuotaTree& tree, const std::vector<ResourceAmounts>& demand,
                       const ResourceAmounts& capacity) {
  const std::vector<ResourceShares> demanded = demanded_shares(tree, demand, capacity);
  const std::vector<ResourceShares> guaranteed = guaranteed_shares(tree, demanded, capacity);
  WaterFilling filling(tree, demanded, limit_shares(tree, capacity));
  int height_max = 0;
  for (const int top : tree.children(-1))
    height_max = std::max(height_max, tree.height(top));
  for (int height = 0; height <= height_max; ++height)
    filling.fill_up_to(guaranteed, height);
  filling.fill();

  FairShares shares;
  shares.deserved.resize(as_index(tree.size()));
  for (int queue = tree.size() - 1; queue >= 0; --queue) {
    ResourceAmounts& deserved = at(shares.deserved, queue);
    if (tree.is_leaf(queue)) {
      for (std::size_t r = 0; r < deserved.of.size(); ++r)
        deserved.of[r] = whole_amount(filling.part(queue), std::max(0LL, at(demand, queue).of[r]));
    }
    if (tree.parent(queue) >= 0) at(shares.deserved, tree.parent(queue)) += deserved;
  }
  for (const ResourceAmounts& deserved : shares.deserved)
    shares.dominant.push_back(dominant_share(deserved, capacity));
  return shares;
}

}  // namespace regatta::sched
