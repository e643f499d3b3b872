#include "regatta/model/topo/cluster.h"

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace regatta::topo {

Status check_can_start(const Cluster& cluster) {
  if (cluster.servers.size() <= static_cast<std::size_t>(kMaxStartedServers)) return {};
  return Error{Code::kInvalidInput,
               fmt::format("cluster {}: {} servers are more than the {} that can be started; plan "
                           "for it, or name fewer servers",
                           cluster.name, cluster.servers.size(), kMaxStartedServers)};
}

std::vector<DeviceRef> all_devices(const Cluster& cluster) {
  std::vector<DeviceRef> devices;
  for (int s = 0; s < static_cast<int>(cluster.servers.size()); ++s) {
    const int count = cluster.type_of(ServerId{s}).device_count;
    for (int index = 0; index < count; ++index)
      devices.push_back({ServerId{s}, index});
  }
  return devices;
}

int nic_of(const Cluster& cluster, DeviceRef device) {
  const int nics = cluster.type_of(device.server).nic_count;
  return nics > 0 ? device.index % nics : -1;
}

std::string to_string(const Cluster& cluster, DeviceRef device) {
  return cluster.servers[device.server.index()].name + "/" + std::to_string(device.index);
}

}  // namespace regatta::topo
