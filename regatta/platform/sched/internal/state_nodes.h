// sched/internal/state_nodes.h: the nodes of a state file.
#pragma once

#include <vector>

#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::sched {

// Keys `cluster`, `node` and `nodes` of `root`. Errors stay in the document.
std::vector<ClusterNode> read_state_nodes(const YamlMap& root, const ClusterReader& read_cluster);

}  // namespace regatta::sched
