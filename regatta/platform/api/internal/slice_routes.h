// api/internal/slice_routes.h: the route of slices: replicas that have a part of each of their
// devices.
#pragma once

#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

// All that run or are about to; `node` in the query: those of one node.
void list_slices(controller::ControllerRuntime& runtime, const ApiRequest& request);

}  // namespace regatta::api
