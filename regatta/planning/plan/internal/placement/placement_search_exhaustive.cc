#include <cstddef>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/internal/placement/placement_search.h"

namespace regatta::plan {
namespace {

class Enumeration {
 public:
  explicit Enumeration(const PlacementProblem& network)
      : network_(network),
        best_(rank_order_assignment(network)),
        best_time_(placement_time(network, best_).total.value),
        here_(static_cast<std::size_t>(network.slots), -1),
        used_(network.leaves.size(), 0) {}

  LeafAssignment run() {
    place(0);
    return std::move(best_);
  }

 private:
  // The traffic between placed slots does not depend on the placement of the others.
  void place(int slot) {
    const double time = placement_time(network_, here_).total.value;
    if (time >= best_time_ * (1 - 1e-12)) return;
    if (slot == network_.slots) {
      best_ = here_;
      best_time_ = time;
      return;
    }
    for (std::size_t leaf = 0; leaf < used_.size(); ++leaf) {
      if (used_[leaf] == network_.leaves[leaf].capacity() || is_like_an_earlier(leaf)) continue;
      ++used_[leaf];
      at(here_, slot) = static_cast<int>(leaf);
      place(slot + 1);
      at(here_, slot) = -1;
      --used_[leaf];
    }
  }

  // The first of the empty leaves of one size in one group stands for all.
  bool is_like_an_earlier(std::size_t leaf) const {
    const auto is_like = [&](std::size_t other) {
      return used_[other] == 0 && network_.leaves[other].group == network_.leaves[leaf].group &&
             network_.leaves[other].capacity() == network_.leaves[leaf].capacity();
    };
    if (used_[leaf] > 0) return false;
    for (std::size_t other = 0; other < leaf; ++other)
      if (is_like(other)) return true;
    return false;
  }

  const PlacementProblem& network_;
  LeafAssignment best_;
  double best_time_;
  LeafAssignment here_;
  std::vector<int> used_;
};

}  // namespace

LeafAssignment exhaustive_assignment(const PlacementProblem& network) {
  return Enumeration(network).run();
}

}  // namespace regatta::plan
