// plan_service/plan_request.h: the planner for a form: what `regatta plan` is asked, as JSON, and
// its answer as JSON. Format: docs/formats/api.md. Pure but for the clock that ends a search.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::plan_service {

// The answer to a body of POST /v1/plans. kInvalidInput names key and remedy; kTimeout: `is_late`
// became true before the search had ended.
Result<std::string> answer_plan_request(std::string_view body,
                                        const std::function<bool()>& is_late);

// {"models", "servers", "stacks", "precisions", "clusters"}: what a form offers.
std::string plan_presets();

}  // namespace regatta::plan_service
