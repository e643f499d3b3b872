// plan/internal/placement/placement_state.h: an assignment of slots to leaves that knows what a
// change of it costs: moving a slot looks at that slot's neighbours alone.
#pragma once

#include <array>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/internal/placement/placement_problem.h"

namespace regatta::plan {

// Less is better: first what the step waits; where that is equal, what all uplinks carry together,
// which leaves room to other jobs and to uneven hashing.
struct PlacementObjective {
  double time = 0;
  double carried = 0;
  // `time` with a norm in place of each maximum: falls where one of several equally busy uplinks is
  // relieved.
  double smooth = 0;

  bool is_below(const PlacementObjective& other) const {
    constexpr double kSame = 1e-12;
    if (time < other.time * (1 - kSame)) return true;
    return time <= other.time * (1 + kSame) && carried < other.carried * (1 - kSame);
  }
};

// Two slots that change places, or, where `other` is -1, one that goes to a free server of `leaf`.
struct PlacementMove {
  int slot = 0;
  int other = -1;
  int leaf = -1;
};

class PlacementState {
 public:
  PlacementState(const PlacementProblem& network, LeafAssignment leaf_of);

  const LeafAssignment& leaves() const { return leaf_of_; }
  int leaf(int slot) const { return at(leaf_of_, slot); }
  int free(int leaf) const { return at(free_, leaf); }
  const std::vector<int>& slots_in(int leaf) const { return at(slots_in_, leaf); }
  const PlacementObjective& score() const { return score_; }
  // The slots behind the uplinks that hold the step up most, beyond what servers' own links do;
  // none where no uplink does.
  std::vector<int> busiest_slots() const;

  // Requires slots of different leaves, and no full leaf.
  PlacementObjective score_after(const PlacementMove& change);
  void make(const PlacementMove& change);

 private:
  static constexpr std::size_t kLevels = 2;  // leaves, groups
  struct Part {
    int part = -1;
    HalfBytes load = 0;
  };
  using Loads = std::array<HalfBytes, kAxisCount>;
  struct Level {
    std::vector<Loads> loads;                 // by part
    Loads carried{};                          // of all parts
    std::array<double, kAxisCount> powers{};  // sums of power(); of the last change made
    std::array<std::array<Part, 3>, kAxisCount> busiest;  // by load; of the last change made
    double rate = 0;                                      // half bytes a second; 0: nothing outside
  };
  struct Touched {
    int from = -1;
    int to = -1;
  };

  int group(int leaf) const { return at(network_->leaves, leaf).group; }
  int part(std::size_t level, int slot) const {
    return level == 0 ? leaf(slot) : group(leaf(slot));
  }
  void shift(int slot, int to);
  void shift_level(std::size_t level, int slot, Touched way);
  void apply(const PlacementMove& change);
  void revert(const PlacementMove& change, int from);
  void find_busiest();
  void find_busiest(Level& level, std::size_t axis) const;
  double power(const Level& level, std::size_t axis, int part) const;
  std::array<Touched, kLevels> parts_of(Touched leaves) const;
  // `outside`: powers of the parts that are not touched.
  using Powers = std::array<std::array<double, kAxisCount>, kLevels>;
  Powers powers_outside(Touched leaves) const;
  PlacementObjective score_now(Touched leaves, const Powers& outside) const;
  HalfBytes busiest(const Level& level, std::size_t axis, Touched touched) const;

  const PlacementProblem* network_;
  LeafAssignment leaf_of_;
  std::vector<int> free_;
  std::vector<std::vector<int>> slots_in_;
  std::array<Level, kLevels> levels_;
  PlacementObjective score_;
};

}  // namespace regatta::plan
