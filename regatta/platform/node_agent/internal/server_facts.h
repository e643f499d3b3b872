// node_agent/internal/server_facts.h: what this server is made of, for the scheduler.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::node_agent {

// Cores, memory, devices, NICs and NUMA nodes; a server without accelerators has no devices. Looks
// in a process of its own, so that what the looking takes does not stay in this one's memory: call
// it while the process has one thread. kUnavailable gives the reason.
Result<sched::ClusterNode> discover_server_facts();

}  // namespace regatta::node_agent
