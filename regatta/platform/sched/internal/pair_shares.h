// sched/internal/pair_shares.h: the replicas of two roles that nodes hold together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/platform/sched/internal/gang_search.h"

namespace regatta::sched {

// Two roles of a gang on one type of devices; a replica of `larger` has at least as many devices.
struct RolePair {
  int larger = 0;
  int smaller = 1;
  int device_type = kAnyDeviceType;
};
RolePair order_pair(const JobRequest& job, int a, int b, int device_type);

// Replicas of pair.smaller that a node with `free` holds beside `count` of pair.larger, which it
// holds. Neither role is sliced.
int room_beside(const GangTask& task, RolePair pair, int node, const NodeCapacity& free, int count);

// Steps of the exact search of one call of share_out(): additions and comparisons of integers.
inline constexpr long long kPairStepsMax = 8'000'000;

// Each node has a curve: the smaller role's replicas beside 0, 1, ... of the larger one. Nodes with
// equal capacity have the same, so that there are few. Subgroups are left out of account.
class PairShares {
 public:
  // Neither role is sliced.
  PairShares(const GangTask& task, RolePair pair);

  // Whether the domain may hold both roles: necessary; sufficient where all curves are concave.
  // Each node counts with its curve's concave hull, so that larger replicas go where they take
  // least from the smaller ones: the sum of hulls bounds the sum of curves.
  bool may_hold(DomainRef domain) const;

  // Shares of a gang of these two roles alone, where there are any: exact within kPairStepsMax. A
  // dynamic programme over the nodes: the most smaller replicas beside each number of larger ones.
  std::optional<GangShares> share_out(DomainRef domain) const;

 private:
  using Curve = std::vector<int>;
  // Larger replicas of a node that each take so many of the smaller ones from it.
  struct HullStep {
    double loss = 0;
    int curve = 0;
    int replicas = 0;
  };
  struct Needed {
    int larger = 0;
    int smaller = 0;
  };
  Curve curve_of(const GangTask& task, int node) const;
  void add_hull(int curve);
  std::optional<GangShares> trace_back(NodeRange range,
                                       const std::vector<std::uint8_t>& chosen) const;

  const ClusterDomains& domains_;
  RolePair pair_;
  Needed needed_;  // new replicas
  std::vector<Curve> curves_;
  std::vector<int> curve_at_;    // by position
  std::vector<HullStep> steps_;  // by rising loss
  bool is_too_long_ = false;     // a curve is; then nothing is known
};

}  // namespace regatta::sched
