// sharing/internal/daemon/metrics.h: the tenant store as JSON for `regatta gpu ps`, and as text for
// Prometheus.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/gpu/sharing/internal/daemon/engine_shares.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_cgroups.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/daemon/turn_manager.h"

namespace regatta::sharing {

struct DaemonStateView {
  const TenantStore& tenant_store;
  const TenantCgroups& tenant_cgroups;
  const TurnManager& turn_manager;
  const EngineShares& engines;
};

nlohmann::json tenant_json(const DaemonStateView& shown, int tenant);
nlohmann::json daemon_state_json(const DaemonStateView& shown);

// Source: Prometheus, "Exposition formats", text format 0.0.4.
std::string metrics_text(const DaemonStateView& shown);

}  // namespace regatta::sharing
