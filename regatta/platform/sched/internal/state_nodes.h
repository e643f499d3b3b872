// sched/internal/state_nodes.h: the nodes of a state file.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::sched {

// Indices of nodes by their names.
using NodeIndex = std::unordered_map<std::string, int>;

struct StateNodes {
  std::vector<ClusterNode> nodes;
  NodeIndex index;
};

// Keys `cluster`, `node` and `nodes` of `root`. Errors stay in the document.
StateNodes read_state_nodes(const YamlMap& root, const ClusterReader& read_cluster);

}  // namespace regatta::sched
