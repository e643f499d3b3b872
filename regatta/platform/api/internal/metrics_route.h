// api/internal/metrics_route.h: GET /metrics: the controller and the cluster as text of Prometheus.
#pragma once

#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/cluster_monitor.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/controller/node_sessions.h"

namespace regatta::api {

// `monitor`: null: without devices, tenants and alerts.
void get_metrics(controller::ControllerRuntime& runtime, const controller::NodeSessions& sessions,
                 controller::ClusterMonitor* monitor, const ApiRequest& request);

}  // namespace regatta::api
