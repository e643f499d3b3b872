// sched/internal/state_mixes.h: the devices of a state file that jobs share.
#pragma once

#include <vector>

#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/internal/state_nodes.h"

namespace regatta::sched {

// The list `mixes`, in any order; by rising node and device. Errors stay in the document.
std::vector<DeviceMix> read_mixes(const YamlMap& root, const std::vector<ClusterNode>& nodes,
                                  const NodeIndex& index);

// A device of `mixes` has a job, and each job on it is mixable. The nodes, jobs and mixes have been
// read without an error. Errors stay in the document.
void check_mixed_jobs(const YamlMap& root, const NodeIndex& index,
                      const std::vector<RunningJob>& running);

}  // namespace regatta::sched
