#include "regatta/app/report/internal/scale_up_servers.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

constexpr std::size_t kNamed = 8;  // domains

}  // namespace

std::vector<DomainServers> joined_servers(const topo::Cluster& cluster) {
  std::vector<DomainServers> found;
  const std::vector<int> domains = topo::scale_up_domains(cluster);
  int last = -1;
  for (int s = 0; s < static_cast<int>(domains.size()); ++s) {
    const topo::ServerType& type = cluster.type_of(ServerId{s});
    if (type.scale_up.servers <= 1) continue;
    const int domain = domains[as_index(s)];
    if (domain != last) found.push_back({.first = ServerId{s}});
    last = domain;
    ++found.back().count;
    found.back().devices += type.device_count;
  }
  return found;
}

std::string servers_text(const topo::Cluster& cluster, const DomainServers& domain) {
  const std::string& first = cluster.servers[domain.first.index()].name;
  if (domain.count == 1) return first;
  return first + " to " +
         cluster.servers[domain.first.index() + static_cast<std::size_t>(domain.count) - 1].name;
}

std::string domains_text(const topo::Cluster& cluster) {
  const std::vector<DomainServers> domains = joined_servers(cluster);
  if (domains.empty()) return "";
  std::map<int, int, std::greater<>> of_size;  // by devices
  for (const DomainServers& domain : domains)
    ++of_size[domain.devices];
  std::vector<std::string> sizes;
  for (const auto& [devices, count] : of_size) {
    sizes.push_back(sizes.empty() ? fmt::format("{} of {}", pluralized(count, "domain"),
                                                pluralized(devices, "device"))
                                  : fmt::format("{} of {}", count, devices));
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(domains.size(), kNamed); ++i)
    names.push_back(servers_text(cluster, domains[i]));
  if (domains.size() > kNamed) names.push_back(fmt::format("{} more", domains.size() - kNamed));
  return join(sizes, " and ") + ": " + join(names, ", ");
}

}  // namespace regatta::report
