// sharing/internal/daemon/control_commands.h: the requests of operators about cgroups and drained
// devices.
#pragma once

#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/control_requests.h"

namespace regatta::sharing {

// Gives a cgroup to a tenant: a new one with the limits of the request, or one that exists.
Result<ControlReply> enroll_cgroup(TenantStore& tenant_store, TenantCgroups& tenant_cgroups,
                                   const JsonReader& request, ProcessId sender);
// Takes the cgroups of a tenant, of a container, or of both away.
Result<ControlReply> remove_cgroups(const TenantStore& tenant_store, TenantCgroups& tenant_cgroups,
                                    const JsonReader& request);
// Shows the drained devices; changes them when the request has `drained`.
Result<ControlReply> drain(TenantStore& tenant_store, const JsonReader& request);

}  // namespace regatta::sharing
