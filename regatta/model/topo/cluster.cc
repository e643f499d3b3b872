#include "regatta/model/topo/cluster.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace regatta::topo {

DomainParts domain_parts(const ScaleUp& domain, int servers) {
  const int size = std::max(1, domain.servers);
  const int domains = std::max(1, (servers + size - 1) / size);
  const int each = std::max(1, (servers + domains - 1) / domains);
  return {.domains = domains, .servers = each, .last = std::max(1, servers - each * (domains - 1))};
}

std::string unequal_parts_note(const ScaleUp& domain, int servers) {
  const DomainParts parts = domain_parts(domain, servers);
  if (parts.are_equal()) return "";
  return fmt::format(
      "{} servers are {} of each of {} scale-up domains and {} of the last: "
      "collectives across domains go at the pace of the smallest part, and no "
      "placement is searched; {} servers are {} of each",
      servers, parts.servers, parts.domains - 1, parts.last, parts.last * parts.domains,
      parts.last);
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
