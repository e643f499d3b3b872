// sched/internal/state_jobs.h: the jobs of a state file.
#pragma once

#include <vector>

#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/state_nodes.h"

namespace regatta::sched {

// An item of the list `running` or `pending`. Errors stay in the document.
RunningJob read_running_job(const YamlMap& map, const NodeIndex& nodes);
PendingJob read_pending_job(const YamlMap& map);

}  // namespace regatta::sched
