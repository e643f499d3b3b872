// api/internal/monitor_routes.h: the routes of devices, tenants and alerts.
#pragma once

#include "regatta/platform/api/access.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/cluster_monitor.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

// False: no route of devices, tenants and alerts.
bool run_monitor_route(RouteId route, controller::ControllerRuntime& runtime,
                       controller::ClusterMonitor& monitor, const ApiRequest& request);

}  // namespace regatta::api
