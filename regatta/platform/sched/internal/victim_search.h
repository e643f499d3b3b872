// sched/internal/victim_search.h: the cheapest running jobs whose eviction makes room for a whole
// gang.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_placement.h"

namespace regatta::sched {

// A running job that may make room: by an eviction, or by giving some replicas up.
struct VictimOption {
  int job = 0;               // index into the running jobs of the snapshot
  double eviction_cost = 0;  // device-seconds that an eviction loses; at least 0
  // Elastic jobs may give up these replicas (indices into the job's replicas) one after the other,
  // each for `shrink_cost`, and keep their smallest size.
  std::vector<int> sheddable;
  double shrink_cost = 0;
};

struct Victim {
  int job = 0;
  bool is_evicted = true;  // else it gives `shed` up
  std::vector<int> shed;
};

struct VictimSet {
  std::vector<Victim> victims;  // by rising job
  double cost = 0;
  GangPlacement placement;  // of the gang in the room that they make
};

// The gang fits without any victim's being spared: with every set that it returns it does fit, and
// each victim is needed. The least cost where at most `exact_victims_max` options are in a domain,
// else a local optimum. Nothing where no set makes room. `kept`: as for place_gang().
std::optional<VictimSet> find_victims(const FreeCapacity& free, const ClusterSnapshot& snapshot,
                                      const JobRequest& job, const GangSize& size,
                                      const GangWeights& weights,
                                      std::span<const VictimOption> options,
                                      std::span<const ReplicaPlacement> kept = {});

}  // namespace regatta::sched
