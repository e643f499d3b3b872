// api/internal/plan_routes.h: the planner behind the API.
#pragma once

#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/plan_service/plan_pool.h"

namespace regatta::api {

// POST /v1/plans: answers when the search has ended.
void search_plans(plan_service::PlanPool& pool, const ApiRequest& request);

}  // namespace regatta::api
