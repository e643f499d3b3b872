#include "regatta/topo/cluster.h"

#include <string>
#include <vector>

namespace regatta::topo {

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
