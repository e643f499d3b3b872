// sched/internal/slice_placement.h: chooses the device of a job with one slice so that what is left
// stays useful: by a policy of packing/placement_policy.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "regatta/platform/packing/placer.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_placement.h"

namespace regatta::sched {

// Nodes differ in this for slices.
struct DeviceKind {
  std::string type;
  int memory_mib = 0;

  bool operator==(const DeviceKind&) const = default;
};

// Not thread-safe. The arguments of the constructor outlive it.
class SlicePlacement {
 public:
  SlicePlacement(const ClusterSnapshot& snapshot, const JobQueue& queue,
                 const SchedulingPolicy& policy);

  // Nothing where the job is no single slice, or where the packing policy knows no place that
  // suffices in memory of the device and share of a NIC too; place_gang() may know one.
  std::optional<GangPlacement> place(const JobRequest& job, const FreeCapacity& free);

 private:
  // Makes the placer see what is free now. False where it cannot be made.
  bool open_placer(const FreeCapacity& free);
  bool create_placer(const FreeCapacity& free);

  const ClusterSnapshot* snapshot_;
  const JobQueue* queue_;
  const SchedulingPolicy* policy_;
  std::vector<DeviceKind> kinds_;  // each once
  std::optional<packing::Placer> placer_;
  std::vector<NodeCapacity> seen_;  // by node: what it had when the placer was told last
};

}  // namespace regatta::sched
