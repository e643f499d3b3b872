// cluster_replay/internal/device_ledger.h: the shares of all devices that are free.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "regatta/platform/cluster_replay/traced_job.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::cluster_replay {

class DeviceLedger {
 public:
  // `jobs` are those whose sizes fragmentation is judged by.
  DeviceLedger(const std::vector<sched::ClusterNode>& nodes, const std::vector<TracedJob>& jobs);

  // Fails with kConflict where a replica has a wrong number of devices, or takes a share that is
  // not free and cannot be mixed.
  Status take(const sched::JobRequest& job, std::span<const sched::ReplicaPlacement> replicas);
  void give_back(const sched::JobRequest& job, std::span<const sched::ReplicaPlacement> replicas);

  double devices() const { return devices_; }
  double allocated() const { return allocated_; }
  // Share of the whole free devices that the mean replica of the jobs cannot use, as it needs more
  // of them on one node than are free there. Source: Weng et al., USENIX ATC 2023.
  double fragmentation() const;

 private:
  struct Node {
    int devices = 0;
    int free_devices = 0;  // whole ones
    std::array<int, sched::kNodeDevicesMax> free_milli{};
  };
  void change(const sched::JobRequest& job, const sched::ReplicaPlacement& replica, int sign);

  std::vector<Node> nodes_;
  std::array<double, sched::kNodeDevicesMax + 1> size_share_{};  // of the jobs, by replica devices
  double devices_ = 0;
  double allocated_ = 0;
};

}  // namespace regatta::cluster_replay
