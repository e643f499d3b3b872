// api/internal/cluster_routes.h: the routes of nodes, queues, the scheduler and the metrics.
#pragma once

#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/controller/node_sessions.h"

namespace regatta::api {

void list_nodes(controller::ControllerRuntime& runtime, const ApiRequest& request);
void get_node(controller::ControllerRuntime& runtime, const ApiRequest& request);
// {"intent": "draining"}
void set_node_intent(controller::ControllerRuntime& runtime, const ApiRequest& request);
void get_queues(controller::ControllerRuntime& runtime, const ApiRequest& request);
// {"queues": [...]}, with If-Match.
void set_queues(controller::ControllerRuntime& runtime, const ApiRequest& request);
void get_scheduler(controller::ControllerRuntime& runtime, const ApiRequest& request);
// Text of Prometheus (exposition format 0.0.4).
void get_metrics(controller::ControllerRuntime& runtime, const controller::NodeSessions& sessions,
                 const ApiRequest& request);

}  // namespace regatta::api
