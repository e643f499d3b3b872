// sharing/internal/daemon/operators.h: which processes may control the daemon.
#pragma once

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/client_processes.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_cgroups.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"

namespace regatta::sharing {

// Operators are processes of root or of the daemon's user, in its PID namespace, that neither
// belong to a tenant, by descriptor or by cgroup, nor descend from a process that does.
// kUnsupported names the condition that fails.
Status check_operator(const TenantStore& tenant_store, const TenantCgroups& tenant_cgroups,
                      const ClientProcesses& processes, const ProcessStat& process, unsigned user);

// Whether the process may be an operator: it is of the right user and in the right PID namespace.
bool may_be_operator(pid_t process, unsigned user);

}  // namespace regatta::sharing
