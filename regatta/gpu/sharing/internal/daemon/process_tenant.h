// sharing/internal/daemon/process_tenant.h: the tenant that a process belongs to, whatever it says.
#pragma once

#include <optional>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/client_processes.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_cgroups.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"

namespace regatta::sharing {

// The tenant of which the process is a client, or else that of its cgroup, or else that of the
// nearest ancestor that has one. Nothing: it has none, as a process whose parents are gone.
// kNotFound when a process on the way ended meanwhile, kUnsupported when the way is too long.
Result<std::optional<int>> find_process_tenant(const TenantStore& tenant_store,
                                               const TenantCgroups& tenant_cgroups,
                                               const ClientProcesses& processes,
                                               ProcessStat process);

}  // namespace regatta::sharing
