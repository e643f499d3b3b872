#include "regatta/platform/cluster_replay/internal/device_ledger.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"

namespace regatta::cluster_replay {

DeviceLedger::DeviceLedger(const std::vector<sched::ClusterNode>& nodes,
                           const std::vector<TracedJob>& jobs) {
  for (const sched::ClusterNode& node : nodes) {
    Node& entry = nodes_.emplace_back();
    entry.devices = node.devices;
    entry.free_devices = node.devices;
    std::fill_n(entry.free_milli.begin(), node.devices, sched::kDeviceMilli);
    devices_ += node.devices;
  }
  double count = 0;
  for (const TracedJob& job : jobs)
    for (const sched::Role& role : job.request.roles) {
      if (role.devices == 0) continue;
      at(size_share_, role.devices) += 1;
      ++count;
    }
  for (double& share : size_share_)
    share /= std::max(1.0, count);
}

void DeviceLedger::change(const sched::JobRequest& job, const sched::ReplicaPlacement& replica,
                          int sign) {
  Node& node = at(nodes_, replica.node);
  const int milli = at(job.roles, replica.role).device_milli;
  for (int device = 0; device < node.devices; ++device) {
    if ((replica.devices >> device & 1U) == 0) continue;
    int& free = at(node.free_milli, device);
    node.free_devices -= free == sched::kDeviceMilli ? 1 : 0;
    free += sign * milli;
    node.free_devices += free == sched::kDeviceMilli ? 1 : 0;
  }
  allocated_ -=
      sign * at(job.roles, replica.role).devices * milli / static_cast<double>(sched::kDeviceMilli);
}

Status DeviceLedger::take(const sched::JobRequest& job,
                          std::span<const sched::ReplicaPlacement> replicas) {
  const auto conflict = [&](const sched::ReplicaPlacement& replica, const char* what) {
    return Error{Code::kConflict, fmt::format("job {}: its replica on node {} {}; the decision "
                                              "cannot be carried out",
                                              job.name, replica.node, what)};
  };
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const sched::ReplicaPlacement& replica = replicas[i];
    const char* what = nullptr;
    if (replica.node < 0 || as_index(replica.node) >= nodes_.size() || replica.role < 0 ||
        as_index(replica.role) >= job.roles.size())
      what = "has a node or role that does not exist";
    else if (std::popcount(replica.devices) != at(job.roles, replica.role).devices)
      what = "has a wrong number of devices";
    else
      for (int device = 0; device < 32 && what == nullptr; ++device)
        if ((replica.devices >> device & 1U) != 0 &&
            (device >= at(nodes_, replica.node).devices ||
             (!at(job.roles, replica.role).is_mixable() &&
              at(at(nodes_, replica.node).free_milli, device) <
                  at(job.roles, replica.role).device_milli)))
          what = "takes a device that is not free";
    if (what != nullptr) {
      give_back(job, replicas.first(i));
      return conflict(replica, what);
    }
    change(job, replica, -1);
  }
  return {};
}

void DeviceLedger::give_back(const sched::JobRequest& job,
                             std::span<const sched::ReplicaPlacement> replicas) {
  for (const sched::ReplicaPlacement& replica : replicas)
    change(job, replica, 1);
}

double DeviceLedger::fragmentation() const {
  std::array<double, sched::kNodeDevicesMax + 1> too_small{};  // share of jobs above each count
  for (int free = sched::kNodeDevicesMax - 1; free >= 0; --free)
    at(too_small, free) = at(too_small, free + 1) + at(size_share_, free + 1);
  double free_devices = 0;
  double unusable = 0;
  for (const Node& node : nodes_) {
    free_devices += node.free_devices;
    unusable += node.free_devices * at(too_small, node.free_devices);
  }
  return free_devices > 0 ? unusable / free_devices : 0;
}

}  // namespace regatta::cluster_replay
