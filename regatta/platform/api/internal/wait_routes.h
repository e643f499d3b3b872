// api/internal/wait_routes.h: GET /v1/jobs/{job}/why.
#pragma once

#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

// The place of a pending job in its queue, what blocks it, and when it starts.
void explain_wait(controller::ControllerRuntime& runtime, const ApiRequest& request);

}  // namespace regatta::api
