// api/internal/cluster_routes.h: the routes of nodes, queues and the scheduler.
#pragma once

#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

void list_nodes(controller::ControllerRuntime& runtime, const ApiRequest& request);
void get_node(controller::ControllerRuntime& runtime, const ApiRequest& request);
// {"intent": "draining"}
void set_node_intent(controller::ControllerRuntime& runtime, const ApiRequest& request);
void get_queues(controller::ControllerRuntime& runtime, const ApiRequest& request);
// {"queues": [...]}, with If-Match.
void set_queues(controller::ControllerRuntime& runtime, const ApiRequest& request);
void get_scheduler(controller::ControllerRuntime& runtime, const ApiRequest& request);

}  // namespace regatta::api
