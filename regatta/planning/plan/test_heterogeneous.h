// plan/test_heterogeneous.h: clusters of several kinds of server for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "regatta/model/topo/presets.h"

namespace regatta::plan {

struct ServerCount {
  const char* preset;
  int count;
};

inline topo::Cluster heterogeneous_cluster(const std::vector<ServerCount>& servers) {
  topo::Cluster cluster;
  cluster.name = "test";
  for (const ServerCount& some : servers) {
    cluster.server_types[some.preset] = *topo::find_server_preset(some.preset);
    for (int i = 0; i < some.count; ++i)
      cluster.servers.push_back(
          {.name = "s" + std::to_string(cluster.servers.size()), .type = some.preset});
  }
  return cluster;
}

}  // namespace regatta::plan
