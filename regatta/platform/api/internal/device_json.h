// api/internal/device_json.h: devices, tenants and alerts as JSON: docs/formats/api.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/platform/controller/cluster_monitor.h"

namespace regatta::api {

// All devices.
std::string devices_json(controller::ClusterMonitor& monitor, const control::ClusterTables& tables);
// An event of the watch; "" where nothing has changed since `cursor`, which becomes that of now.
std::string device_event(controller::ClusterMonitor& monitor, std::string& cursor);
std::string device_history_json(controller::ClusterMonitor& monitor,
                                const control::ClusterTables& tables, int node);
std::string job_devices_json(controller::ClusterMonitor& monitor,
                             const control::ClusterTables& tables, const control::ManagedJob& job);
std::string tenants_json(controller::ClusterMonitor& monitor, const control::ClusterTables& tables);
std::string alerts_json(const controller::ClusterMonitor& monitor,
                        const control::ClusterTables& tables);

}  // namespace regatta::api
