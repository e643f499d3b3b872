// control/scheduling_view.h: the cluster as the scheduler sees it, and its decisions as changes of
// the controller's state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"

namespace regatta::control {

// The world as if all stops that are ordered were done: a job that ends is not there, one that
// moves is on its next places. Nodes have the indices of ClusterTables::nodes; jobs are named by
// handle.
struct SchedulingView {
  sched::ClusterSnapshot snapshot;
  sched::JobQueue queue;
};

// `depth`: at most so many pending jobs of each queue, the first ones of its order.
SchedulingView scheduling_view(const ClusterTables& tables, Seconds now, std::size_t depth);

// Actions that the state does not allow any more are left out; they are counted.
struct CarriedOut {
  int actions = 0;
  int outdated = 0;
};
CarriedOut carry_out(const sched::SchedulingDecision& decision, ClusterController& controller,
                     const Moment& moment);

}  // namespace regatta::control
