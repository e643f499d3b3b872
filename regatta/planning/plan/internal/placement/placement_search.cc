#include "regatta/planning/plan/internal/placement/placement_search.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/internal/placement/initial_assignments.h"
#include "regatta/planning/plan/internal/placement/placement_state.h"

namespace regatta::plan {
namespace {

constexpr int kStarts = 3;           // improved, of the tilings
constexpr int kAllPairs = 64;        // so many slots are few enough to try each with each
constexpr int kDisturbances = 1000;  // without success, in turn: then the search ends

// Which of two scores a descent follows.
enum class Aim { kTime, kSmooth, kCarried };

bool is_below(const PlacementObjective& a, const PlacementObjective& b, Aim aim) {
  if (aim == Aim::kTime) return a.is_below(b);
  constexpr double kLess = 1 - 1e-9;
  return aim == Aim::kSmooth ? a.smooth < b.smooth * kLess : a.carried < b.carried * kLess;
}

class PlacementLocalSearch {
 public:
  PlacementLocalSearch(const PlacementProblem& network, const PlacementSearchLimits& limits)
      : network_(network), limits_(limits), random_(limits.seed) {}

  SearchedAssignment run() {
    std::vector<PlacementState> starts = best_starts();
    for (PlacementState& start : starts) {
      for (const Aim first : {Aim::kTime, Aim::kSmooth, Aim::kCarried}) {
        PlacementState state = start;
        improve(state, first);
        if (first == Aim::kCarried) improve(state, Aim::kSmooth);
        improve(state, Aim::kTime);
        relieve(state);
        if (state.score().is_below(start.score())) start = state;
      }
    }
    PlacementState best = *std::min_element(starts.begin(), starts.end(),
                                            [](const PlacementState& a, const PlacementState& b) {
                                              return a.score().is_below(b.score());
                                            });
    disturb(best);
    return {.leaf_of = best.leaves(), .evaluations = evaluations_};
  }

 private:
  bool is_spent() const { return evaluations_ >= limits_.evaluations; }
  bool is_enough(const PlacementState& state) const {
    return state.score().time <= limits_.enough * (1 + 1e-9);
  }

  // Rank order is among them.
  std::vector<PlacementState> best_starts() const {
    std::vector<PlacementState> best = {PlacementState(network_, rank_order_assignment(network_))};
    for (const LeafAssignment& leaves : initial_assignments(network_)) {
      PlacementState next(network_, leaves);
      for (PlacementState& held : best)
        if (next.score().is_below(held.score())) std::swap(next, held);
      const bool is_new = best.back().score().is_below(next.score());
      if (best.size() < kStarts && is_new) best.push_back(std::move(next));
    }
    return best;
  }

  // Slot -1: none helps.
  struct Best {
    PlacementMove change{.slot = -1};
    PlacementObjective score;
  };

  // The best change of `slot` with the slots and free servers of `leaf`.
  void consider(PlacementState& state, PlacementMove change, Aim aim, Best& best) {
    if (change.leaf == state.leaf(change.slot)) return;
    const auto attempt = [&](int other) {
      ++evaluations_;
      change.other = other;
      const PlacementObjective score = state.score_after(change);
      if (is_below(score, best.score, aim)) best = {.change = change, .score = score};
    };
    if (state.free(change.leaf) > 0) attempt(-1);
    for (const int other : state.slots_in(change.leaf))
      attempt(other);
  }

  // Leaves that `slot` may want to go to: of those it talks to; where there are few slots, all.
  std::vector<int> leaves_near(const PlacementState& state, int slot) const {
    std::vector<int> leaves;
    if (network_.slots <= kAllPairs) {
      for (std::size_t leaf = 0; leaf < network_.leaves.size(); ++leaf)
        leaves.push_back(static_cast<int>(leaf));
      return leaves;
    }
    const auto s = static_cast<std::size_t>(slot);
    for (int i = network_.first[s]; i < network_.first[s + 1]; ++i)
      leaves.push_back(state.leaf(at(network_.neighbours, i).slot));
    for (int i = network_.first_exchange[s]; i < network_.first_exchange[s + 1]; ++i) {
      const auto which = static_cast<std::size_t>(at(network_.exchange_of, i));
      for (const AllToAllGroup::Member& member : network_.exchanges[which].members)
        leaves.push_back(state.leaf(member.slot));
    }
    std::sort(leaves.begin(), leaves.end());
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
    return leaves;
  }

  bool improve_slot(PlacementState& state, int slot, const std::vector<int>& leaves, Aim aim) {
    Best best{.score = state.score()};
    for (const int leaf : leaves)
      consider(state, {.slot = slot, .leaf = leaf}, aim, best);
    if (best.change.slot < 0) return false;
    state.make(best.change);
    return true;
  }

  // Until no exchange with a near leaf helps.
  void improve(PlacementState& state, Aim aim) {
    bool is_better = true;
    while (is_better && !is_spent()) {
      is_better = false;
      for (int slot = 0; slot < network_.slots && !is_spent(); ++slot)
        is_better |= improve_slot(state, slot, leaves_near(state, slot), aim);
    }
  }

  // Exchanges of the slots behind the busiest uplinks with any others, while one helps.
  void relieve(PlacementState& state) {
    std::vector<int> leaves(network_.leaves.size());
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
      leaves[leaf] = static_cast<int>(leaf);
    bool is_better = true;
    while (is_better && !is_spent() && !is_enough(state)) {
      is_better = false;
      for (const int slot : state.busiest_slots()) {
        if (is_spent()) break;
        std::shuffle(leaves.begin(), leaves.end(), random_);
        const std::size_t some = std::min<std::size_t>(leaves.size(), kAllPairs);
        is_better |= improve_slot(
            state, slot, {leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(some)},
            Aim::kTime);
      }
    }
  }

  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  // Exchanges a few slots at random, one of them behind the busiest uplink.
  std::vector<int> shake(PlacementState& state) {
    std::vector<int> moved;
    const std::vector<int> busiest = state.busiest_slots();
    const int changes = 1 + below(6);
    for (int i = 0; i < changes; ++i) {
      const int slot = busiest.empty() || i > 0
                           ? below(network_.slots)
                           : at(busiest, below(static_cast<int>(busiest.size())));
      const int leaf = below(static_cast<int>(network_.leaves.size()));
      if (leaf == state.leaf(slot)) continue;
      const auto& there = state.slots_in(leaf);
      const int place = below(at(network_.leaves, leaf).capacity());
      const bool is_taken = place < static_cast<int>(there.size());
      const int other = is_taken ? at(there, place) : -1;
      state.make({.slot = slot, .other = other, .leaf = leaf});
      moved.push_back(slot);
      if (is_taken) moved.push_back(other);
    }
    return moved;
  }

  void disturb(PlacementState& best) {
    int failures = 0;
    while (failures < kDisturbances && !is_spent() && !is_enough(best)) {
      PlacementState state = best;
      const std::vector<int> moved = shake(state);
      if (network_.slots <= kAllPairs) {
        improve(state, Aim::kTime);
      } else {
        for (const int slot : moved)
          improve_slot(state, slot, leaves_near(state, slot), Aim::kTime);
        relieve(state);
      }
      ++failures;
      if (!state.score().is_below(best.score())) continue;
      best = std::move(state);
      failures = 0;
    }
  }

  const PlacementProblem& network_;
  PlacementSearchLimits limits_;
  std::mt19937 random_;
  long long evaluations_ = 0;
};

}  // namespace

LeafAssignment rank_order_assignment(const PlacementProblem& network) {
  LeafAssignment leaf_of;
  for (std::size_t leaf = 0; leaf < network.leaves.size(); ++leaf)
    for (int i = 0; i < network.leaves[leaf].capacity(); ++i)
      leaf_of.push_back(static_cast<int>(leaf));
  leaf_of.resize(static_cast<std::size_t>(network.slots));
  return leaf_of;
}

SearchedAssignment search_assignment(const PlacementProblem& network,
                                     const PlacementSearchLimits& limits) {
  return PlacementLocalSearch(network, limits).run();
}

}  // namespace regatta::plan
