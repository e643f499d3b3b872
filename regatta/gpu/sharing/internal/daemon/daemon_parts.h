// sharing/internal/daemon/daemon_parts.h: the state of the daemon, without its connections.
#pragma once

#include "regatta/gpu/sharing/internal/daemon/device_memory.h"
#include "regatta/gpu/sharing/internal/daemon/engine_shares.h"
#include "regatta/gpu/sharing/internal/daemon/residency_manager.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_cgroups.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/daemon/turn_manager.h"

namespace regatta::sharing {

struct DaemonParts {
  TenantStore tenant_store;
  TenantCgroups tenant_cgroups;
  TurnManager turn_manager;
  EngineShares engines;
  ResidencyManager residency_manager;
  DeviceMemory device_memory{};
};

}  // namespace regatta::sharing
