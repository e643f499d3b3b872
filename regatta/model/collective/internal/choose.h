// collective/internal/choose.h: which algorithms can carry out a call, and the schedule of one
// of them. Functions of their arguments alone, so all ranks get the same.
#pragma once

#include <cstddef>
#include <vector>

#include "regatta/model/collective/call.h"
#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/schedule.h"
#include "regatta/model/collective/setting.h"
#include "regatta/model/cost/hierarchical_layout.h"

namespace regatta::collective {

// The properties of a call that the choice depends on.
struct CallShape {
  CallKind kind = CallKind::kBarrier;
  std::size_t bytes = 0;  // of the whole vector: whole_bytes()
  int ranks = 1;
  bool has_grid = false;   // a hierarchical form is known
  bool has_rails = false;  // several servers, and more than one rank on some of them
};

// The algorithms for a call, without those that need far more memory or bytes than others.
std::vector<Algorithm> algorithms_for(const CallShape& shape);

// The algorithm where none was measured or forced.
Algorithm usual_algorithm(const CallShape& shape);

// The default chunk size of an algorithm for a call; 0 where it has no chunks.
std::size_t chunk_bytes_of(Algorithm algorithm, const CallShape& shape);

// The locations of the ranks of the group, and the setting of the call.
struct CollectivePlan {
  GroupPosition self;
  const cost::HierarchicalLayout* grid = nullptr;  // null: no hierarchical form is worth it
  const cost::RankLocations* sites = nullptr;      // null: each rank is alone on a server
  Setting setting;                                 // kAutomatic: usual_algorithm()
};

CallShape call_shape_of(CallKind kind, std::size_t bytes, int ranks, const CollectivePlan& plan);

// Writes the schedule of one rank, schedule.reduction included. A group of one rank copies; a call
// without work has no steps.
void build_schedule(CollectiveSchedule& schedule, const CollectivePlan& plan, const Call& call);

}  // namespace regatta::collective
