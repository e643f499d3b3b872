// sched/internal/gang_placement.h: places a whole gang on free devices, or says that it does not
// fit.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

// Replicas of each role of a gang, by role.
using GangSize = std::vector<int>;
GangSize smallest_size(const JobRequest& job);

struct GangPlacement {
  std::vector<ReplicaPlacement> replicas;        // role by role; subgroups one after the other
  TopologyLevel level = TopologyLevel::kServer;  // smallest whose domain holds all of them
  double cost = 0;  // the weighted terms of GangWeights; lower is better
};

// Weights of the terms of a placement's cost.
struct GangWeights {
  double communication = 1;  // of the slowdown by the level that the gang spans
  double fragmentation = 1;  // whole free nodes and leaves that are broken into
  double risk = 1;           // expected failures of its nodes
  double spread = 1;         // replicas of online jobs that share a node or a leaf
};

// Finds the cheapest placement that it knows of; finds one whenever one exists (multi-role gangs:
// exact search, bounded by `exact_states_max` states, after greedy orders failed). `kept`: replicas
// that the gang has already and keeps; they count for topology and are not returned.
std::optional<GangPlacement> place_gang(const FreeCapacity& free, const JobRequest& job,
                                        const GangSize& size, const GangWeights& weights,
                                        std::span<const ReplicaPlacement> kept = {});

}  // namespace regatta::sched
