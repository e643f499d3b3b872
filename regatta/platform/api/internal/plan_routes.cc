#include "regatta/platform/api/internal/plan_routes.h"

#include <string>
#include <utility>

#include "regatta/platform/api/problem.h"
#include "regatta/platform/plan_service/plan_request.h"

namespace regatta::api {

void search_plans(plan_service::PlanPool& pool, const ApiRequest& request) {
  const Status accepted = pool.run(
      [body = std::string(request.http().body)](const std::function<bool()>& is_late) {
        return plan_service::answer_plan_request(body, is_late);
      },
      [exchange = request.exchange](const Result<std::string>& answer) {
        if (!answer) return exchange->respond(problem(answer.error()));
        http::Response response;
        response.headers = {{"Cache-Control", "no-store"}};
        response.body = *answer;
        exchange->respond(std::move(response));
      });
  if (!accepted) refuse(request, accepted.error());
}

}  // namespace regatta::api
