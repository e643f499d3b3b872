#include "regatta/model/topo/cluster.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace regatta::topo {

int used_servers_of_domain(const ScaleUp& domain, int servers) {
  int used = std::max(1, std::min(domain.servers, servers));
  while (servers % used != 0)
    --used;
  return used;
}

std::vector<int> scale_up_domains(const Cluster& cluster) {
  struct Filling {
    int domain = 0;
    int servers = 0;
  };
  std::map<std::string, Filling> filling;  // by server type
  std::vector<int> domains;
  domains.reserve(cluster.servers.size());
  int next = 0;
  for (const Server& server : cluster.servers) {
    const auto [found, is_new] = filling.try_emplace(server.type);
    Filling& now = found->second;
    if (is_new || now.servers >= cluster.server_types.at(server.type).scale_up.servers)
      now = {.domain = next++};
    ++now.servers;
    domains.push_back(now.domain);
  }
  return domains;
}

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
