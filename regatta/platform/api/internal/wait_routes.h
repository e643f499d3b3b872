// api/internal/wait_routes.h: GET /v1/jobs/{job}/why.
#pragma once

#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

// The place of a pending job in its queue, what blocks it, and when it starts.
void explain_wait(controller::ControllerRuntime& runtime, const ApiRequest& request);

// POST /v1/jobs?dry_run=true: the same of the body's one job, as if it had been submitted now.
void explain_submission(controller::ControllerRuntime& runtime, const ApiRequest& request);

}  // namespace regatta::api
