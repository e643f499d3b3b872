// sched/internal/victim_cost.h: what victims cost: a rank, which no loss outweighs, and a loss.
#pragma once

#include <cmath>
#include <compare>
#include <limits>

namespace regatta::sched {

// Sums and parts of costs add and scale both; costs are compared by rank first.
struct VictimCost {
  double rank = 0;
  double loss = 0;  // device-seconds

  VictimCost& operator+=(const VictimCost& other) {
    rank += other.rank;
    loss += other.loss;
    return *this;
  }
  friend VictimCost operator+(VictimCost a, const VictimCost& b) { return a += b; }
  friend VictimCost operator*(const VictimCost& a, double factor) {
    return {a.rank * factor, a.loss * factor};
  }
  friend VictimCost operator/(const VictimCost& a, double divisor) {
    return {a.rank / divisor, a.loss / divisor};
  }
  friend auto operator<=>(const VictimCost&, const VictimCost&) = default;
};

inline constexpr VictimCost kInfiniteCost{std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::infinity()};

// Sums of costs in another order differ in the last bits: whether `a` is less by more than that.
inline bool is_cheaper(const VictimCost& a, const VictimCost& b) {
  constexpr double kRankTolerance = 1e-6;  // ranks are whole numbers
  constexpr double kLossTolerance = 1e-9;
  if (std::abs(a.rank - b.rank) > kRankTolerance) return a.rank < b.rank;
  return a.loss < b.loss * (1 - kLossTolerance);
}

}  // namespace regatta::sched
