// sched/internal/device_mixes.h: which mixable jobs are on each device, and where one more may come
// so that all keep the budget.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regatta/platform/mixing/mix_decision.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::sched {

// A replica of a mixable role on a device.
struct MixOccupant {
  const JobRequest* job = nullptr;
  int kind = 0;  // of its workload: mixing::MixMemo
  int milli = 0;
  int memory_mib = 0;

  bool operator==(const MixOccupant&) const = default;
};

// By rising node and device.
using DeviceKey = std::pair<int, int>;

// The jobs of the snapshot outlive it, and `memo` where one is given.
class DeviceMixes {
 public:
  DeviceMixes(const ClusterSnapshot& snapshot, const SchedulingPolicy& policy,
              mixing::MixMemo* memo);

  void take(const JobRequest& job, const ReplicaPlacement& replica);
  void give(const JobRequest& job, const ReplicaPlacement& replica);

  // Devices with mixable jobs; those of the snapshot that were mixed as they were then.
  const std::map<DeviceKey, std::vector<MixOccupant>>& devices() const { return devices_; }
  const std::map<DeviceKey, std::vector<MixOccupant>>& before() const { return before_; }

  // The largest mean share that a role of it needs of a device, and whether it looks for shared
  // devices first for that.
  double mean_need(const JobRequest& job);
  bool prefers_sharing(const JobRequest& job);
  // Kinds of its roles, as text: equal for jobs that the same devices admit.
  std::string kinds_text(const JobRequest& job);

  // The need of all on the device with interference once the job is there, of which 1 is the whole;
  // nothing where the device does not admit it. `free` is the node's with all that runs.
  std::optional<double> need_with(const JobRequest& job, DeviceKey device,
                                  const NodeCapacity& free);
  // Whether the jobs on a device keep the budget and the least share.
  bool keeps_budget(DeviceKey device);
  // Device-seconds of work that the jobs on the device lose in a day, and miss at the price of the
  // budget, without the job `left` (null: with all). Infinite where no mode holds their memory.
  double daily_loss(DeviceKey device, const JobRequest* left);
  // The decision for the jobs on the device, whose slices are those of the jobs in `devices()`;
  // nothing where no mode holds their memory.
  std::optional<mixing::MixDecision> decision_of(DeviceKey device);
  mixing::DeviceCapacity capacity_of(DeviceKey device) const;

 private:
  struct Verdict {
    bool keeps_budget = false;
    double work = 0;  // that is done of their needs, in devices
  };
  struct NamedKinds {
    std::string job;
    std::vector<int> by_role;  // -1: not mixable
  };
  const std::vector<int>& kinds_of(const JobRequest& job);
  int kind_of(const JobRequest& job, const Role& role);
  Verdict judge(const std::vector<int>& kinds, DeviceKey device);
  bool admits(const std::vector<MixOccupant>& there, int kind, DeviceKey device);

  const ClusterSnapshot* snapshot_;
  const SchedulingPolicy* policy_;
  std::unique_ptr<mixing::MixMemo> own_memo_;
  mixing::MixMemo* memo_;
  std::map<DeviceKey, std::vector<MixOccupant>> devices_;  // occupants by kind, then name
  std::map<DeviceKey, std::vector<MixOccupant>> before_;
  std::unordered_map<const JobRequest*, NamedKinds> kinds_;
  std::map<std::pair<int, std::vector<int>>, Verdict> verdicts_;  // by device memory and kinds
};

}  // namespace regatta::sched
