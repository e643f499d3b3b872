// api/internal/job_routes.h: the routes of jobs.
#pragma once

#include "regatta/platform/api/access.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/controller/node_sessions.h"

namespace regatta::api {

// The job of the route's first parameter, a handle or a number; kNotFound.
Result<const control::ManagedJob*> find_job(const controller::ControllerRuntime& runtime,
                                            const ApiRequest& request);

void list_jobs(controller::ControllerRuntime& runtime, const ApiRequest& request);
void submit_jobs(controller::ControllerRuntime& runtime, const ApiRequest& request);
void get_job(controller::ControllerRuntime& runtime, const ApiRequest& request);
void patch_job(controller::ControllerRuntime& runtime, const ApiRequest& request);
// kCancelJob, kHoldJob, kReleaseJob.
void act_on_job(controller::ControllerRuntime& runtime, const ApiRequest& request, RouteId route);

// Metrics of the job: series of one replica of its latest attempt, and what was predicted.
void get_job_metrics(controller::ControllerRuntime& runtime, controller::NodeSessions& sessions,
                     const ApiRequest& request);

}  // namespace regatta::api
