// report/internal/scale_up_servers.h: which servers form a scale-up domain, for text and pictures.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::report {

// The servers first, first + 1, ... of a domain; links join them, so it has several.
struct DomainServers {
  ServerId first;
  int count = 0;
  int devices = 0;
};
// In the order of servers; none where nothing but NICs joins servers.
std::vector<DomainServers> joined_servers(const topo::Cluster& cluster);

// "s0 to s17".
std::string servers_text(const topo::Cluster& cluster, const DomainServers& domain);

// "4 domains of 72 devices: s0 to s17, ...", and "1 of 64" where the last has fewer; "": none.
std::string domains_text(const topo::Cluster& cluster);

}  // namespace regatta::report
