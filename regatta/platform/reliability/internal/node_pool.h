// reliability/internal/node_pool.h: nodes of a simulated gang: in the job, spare, in repair or out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/reliability/gang_simulation.h"

namespace regatta::reliability {

class NodePool {
 public:
  NodePool(const GangOptions& options, std::uint64_t seed);

  int missing() const { return missing_; }
  // Failures of nodes of the job; 0 while a node is missing.
  FailureRate hazard() const { return hazard_; }

  // A node of the job, drawn by rate, is lost at `now` and replaced where a spare is there. True
  // where its last repair had not held.
  bool lose_node(Seconds now);

  // The next node that comes back from repair; the end of all where none will.
  Seconds next_return() const;
  // Takes back every node that is repaired by `now`; missing places are filled. `failure_cost`:
  // time that one failure costs the job.
  void take_back(Seconds now, Seconds failure_cost);

  int spares_used() const { return spares_used_; }
  int blacklisted() const { return blacklisted_; }

 private:
  struct PooledNode {
    FailureRate rate;
    bool is_relapsing = false;
    NodeHistory history;
    Seconds joined;
  };

  FailureRate rate_of_node(std::size_t node) const;
  void fill_places(Seconds now);
  void sum_hazard();
  bool keeps(const PooledNode& node, Seconds now, Seconds failure_cost) const;

  const GangOptions& options_;
  // Apart, so that a change of policy leaves the draws of the other kind as they were.
  packing::RandomSequence random_;
  packing::RandomSequence repair_random_;
  double relapse_cause_share_ = 0;  // of failures that lose a node
  std::vector<PooledNode> nodes_;
  std::vector<std::size_t> job_;
  std::vector<std::size_t> spares_;               // oldest first
  using Return = std::pair<double, std::size_t>;  // time, node
  std::priority_queue<Return, std::vector<Return>, std::greater<>> repairs_;
  FailureRate hazard_;
  int missing_ = 0;
  int spares_used_ = 0;
  int blacklisted_ = 0;
};

}  // namespace regatta::reliability
