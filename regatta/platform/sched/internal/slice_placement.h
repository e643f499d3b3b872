// sched/internal/slice_placement.h: chooses the device of a job with one slice so that what is left
// stays useful: by a policy of packing/placement_policy.h.
#pragma once

#include <optional>
#include <vector>

#include "regatta/platform/packing/placer.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_placement.h"

namespace regatta::sched {

// Not thread-safe. The arguments of the constructor outlive it.
class SlicePlacement {
 public:
  SlicePlacement(const ClusterSnapshot& snapshot, const JobQueue& queue,
                 const SchedulingPolicy& policy);

  // Nothing where the job is no single slice, or where the packing policy knows no place that
  // suffices in memory of the device and share of a NIC too; place_gang() may know one.
  std::optional<GangPlacement> place(const JobRequest& job, const FreeCapacity& free);

 private:
  bool open_placer(const FreeCapacity& free);

  const ClusterSnapshot* snapshot_;
  const JobQueue* queue_;
  const SchedulingPolicy* policy_;
  std::vector<packing::Pod> demand_;
  std::optional<packing::Placer> placer_;
};

}  // namespace regatta::sched
