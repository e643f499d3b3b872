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

struct GangPlacement {
  std::vector<ReplicaPlacement> replicas;        // role by role; subgroups one after the other
  TopologyLevel level = TopologyLevel::kServer;  // smallest whose domain holds all of them
  double cost = 0;  // the weighted terms of GangWeights; lower is better
};

// Weights of the terms of a placement's cost.
struct GangWeights {
  double communication = 1;  // of the slowdown by the level that the gang spans, less 1
  double fragmentation = 1;  // devices that become useless to others, a device of the gang
  double risk = 1;           // expected failures a day of its nodes
  double spread = 1;         // online jobs: share of replicas beside others on a node or a leaf
};

// The gang to place. `size` counts all replicas, those of `kept` too: replicas that the gang has
// already, that the free capacity lacks, and that are not returned. They bind the new ones to their
// device type and domain.
struct GangRequest {
  const JobRequest& job;
  GangSize size;
  GangWeights weights;
  std::span<const ReplicaPlacement> kept;
};

// Steps of the exact search of one call for gangs of several roles.
inline constexpr int kGangStatesMax = 300'000;

// Finds the cheapest placement that it knows of; finds one whenever one exists (several roles: by
// an exact search of at most kGangStatesMax steps where orders of filling fail). Subgroups are
// formed anew of all replicas, see order_gang(). The first of the job's device types on which the
// gang fits is taken; without a list, the cheapest.
std::optional<GangPlacement> place_gang(const FreeCapacity& free, const GangRequest& gang);

// All replicas of a gang by role, domain and subgroup: an incomplete subgroup comes last.
void order_gang(const ClusterDomains& domains, const JobRequest& job,
                std::vector<ReplicaPlacement>& replicas);

}  // namespace regatta::sched
