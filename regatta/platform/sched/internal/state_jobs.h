// sched/internal/state_jobs.h: the jobs of a state file.
#pragma once

#include <string>
#include <unordered_map>

#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"

namespace regatta::sched {

// Indices of nodes by their names.
using NodeIndex = std::unordered_map<std::string, int>;

// "leaf"
std::string level_name(TopologyLevel level);

// An item of the list `running` or `pending`. Errors stay in the document.
RunningJob read_running_job(const YamlMap& map, const NodeIndex& nodes);
PendingJob read_pending_job(const YamlMap& map);

}  // namespace regatta::sched
