// node_agent/internal/device_slices.h: has the GPU daemon of this server hold replicas to their
// parts of devices: each such replica is a tenant, by its cgroup.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/control/node.h"

namespace regatta::node_agent {

class DeviceSlices {
 public:
  // Without a daemon: nothing is enforced.
  DeviceSlices() = default;
  // Finds the folder with the hook; before the process has a second thread. kInvalidInput where
  // there is none, and for a daemon at another socket than sharing::kDefaultSocket, where programs
  // would not look for it.
  static Result<DeviceSlices> create(const std::string& daemon_socket);

  bool are_enforced() const { return !socket_.empty(); }
  // Makes the cgroup in `folder` a tenant with the slice of each device. An error says why the
  // replica would not be limited; it must not start then. Idempotent.
  Status enroll(const control::ReplicaOrder& order, const std::string& folder) const;
  // Ends the tenant, which also ends when its cgroup is removed.
  void leave(const control::ReplicaKey& key) const;
  // Adds what makes the replica's programs load the hook.
  void add_variables(std::vector<std::pair<std::string, std::string>>& environment) const;

 private:
  std::string socket_;
  std::string hook_folder_;
};

// The name of the tenant.
std::string tenant_name(const control::ReplicaKey& key);
// The request to the daemon, JSON; docs/formats/gpu_daemon.md.
std::string enroll_request(const control::ReplicaOrder& order, const std::string& cgroup);

}  // namespace regatta::node_agent
