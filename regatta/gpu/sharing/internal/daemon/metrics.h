// sharing/internal/daemon/metrics.h: the tenant store as JSON for `regatta gpu ps`, and as text for
// Prometheus.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/gpu/sharing/internal/daemon/daemon_parts.h"

namespace regatta::sharing {

nlohmann::json tenant_json(const DaemonParts& parts, int tenant);
nlohmann::json daemon_state_json(const DaemonParts& parts);

// Source: Prometheus, "Exposition formats", text format 0.0.4.
std::string metrics_text(const DaemonParts& parts);

}  // namespace regatta::sharing
