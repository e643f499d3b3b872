#include "regatta/platform/api/access.h"

#include <array>

namespace regatta::api {
namespace {

constexpr std::array kRoutes = {
    Route{RouteId::kListJobs, "GET", "/v1/jobs", AccessRole::kViewer},
    Route{RouteId::kSubmitJobs, "POST", "/v1/jobs", AccessRole::kUser},
    Route{RouteId::kGetJob, "GET", "/v1/jobs/{job}", AccessRole::kViewer},
    Route{RouteId::kChangeJob, "PATCH", "/v1/jobs/{job}", AccessRole::kUser},
    Route{RouteId::kCancelJob, "POST", "/v1/jobs/{job}/cancel", AccessRole::kUser},
    Route{RouteId::kHoldJob, "POST", "/v1/jobs/{job}/hold", AccessRole::kUser},
    Route{RouteId::kReleaseJob, "POST", "/v1/jobs/{job}/release", AccessRole::kUser},
    Route{RouteId::kReadLog, "GET", "/v1/jobs/{job}/logs", AccessRole::kViewer},
    Route{RouteId::kExplainWait, "GET", "/v1/jobs/{job}/why", AccessRole::kViewer},
    Route{RouteId::kListAttempts, "GET", "/v1/jobs/{job}/attempts", AccessRole::kViewer},
    Route{RouteId::kListEvents, "GET", "/v1/events", AccessRole::kViewer},
    Route{RouteId::kGetJobMetrics, "GET", "/v1/jobs/{job}/metrics", AccessRole::kViewer},
    Route{RouteId::kSearchPlans, "POST", "/v1/plans", AccessRole::kUser},
    Route{RouteId::kGetPlanPresets, "GET", "/v1/plans/presets", AccessRole::kViewer},
    Route{RouteId::kListNodes, "GET", "/v1/nodes", AccessRole::kViewer},
    Route{RouteId::kEnrollNode, "POST", "/v1/nodes/enroll", std::nullopt},
    Route{RouteId::kConnectNode, "GET", "/v1/nodes/connect", std::nullopt},
    Route{RouteId::kGetNode, "GET", "/v1/nodes/{node}", AccessRole::kViewer},
    Route{RouteId::kSetNodeIntent, "PUT", "/v1/nodes/{node}/intent", AccessRole::kOperator},
    Route{RouteId::kGetQueues, "GET", "/v1/queues", AccessRole::kViewer},
    Route{RouteId::kSetQueues, "PUT", "/v1/queues", AccessRole::kOperator},
    Route{RouteId::kWatch, "GET", "/v1/watch", AccessRole::kViewer},
    Route{RouteId::kListUsers, "GET", "/v1/users", AccessRole::kAdmin},
    Route{RouteId::kSetUser, "PUT", "/v1/users/{user}", AccessRole::kAdmin},
    Route{RouteId::kRemoveUser, "DELETE", "/v1/users/{user}", AccessRole::kAdmin},
    Route{RouteId::kListTokens, "GET", "/v1/tokens", AccessRole::kUser},
    Route{RouteId::kCreateToken, "POST", "/v1/tokens", AccessRole::kUser},
    Route{RouteId::kRemoveToken, "DELETE", "/v1/tokens/{token}", AccessRole::kUser},
    Route{RouteId::kLogin, "POST", "/v1/login", std::nullopt},
    Route{RouteId::kBackUp, "GET", "/v1/backup", AccessRole::kAdmin},
    Route{RouteId::kBeginOidc, "GET", "/v1/login/oidc", std::nullopt},
    Route{RouteId::kFinishOidc, "GET", "/v1/login/oidc/callback", std::nullopt},
    Route{RouteId::kLogout, "POST", "/v1/logout", std::nullopt},
    Route{RouteId::kGetSession, "GET", "/v1/session", AccessRole::kViewer},
    Route{RouteId::kGetOpenapi, "GET", "/v1/openapi.json", std::nullopt},
    Route{RouteId::kListAudit, "GET", "/v1/audit", AccessRole::kAdmin},
    Route{RouteId::kGetScheduler, "GET", "/v1/scheduler", AccessRole::kViewer},
    Route{RouteId::kListSlices, "GET", "/v1/slices", AccessRole::kViewer},
    Route{RouteId::kGetFabric, "GET", "/v1/fabric", AccessRole::kViewer},
    Route{RouteId::kSetFabricVerdicts, "PUT", "/v1/fabric/verdicts", AccessRole::kOperator},
    Route{RouteId::kGetHealth, "GET", "/healthz", std::nullopt},
    Route{RouteId::kGetMetrics, "GET", "/metrics", AccessRole::kViewer},
    Route{RouteId::kListDevices, "GET", "/v1/devices", AccessRole::kViewer},
    Route{RouteId::kGetDeviceHistory, "GET", "/v1/devices/{node}/history", AccessRole::kViewer},
    Route{RouteId::kGetJobDevices, "GET", "/v1/jobs/{job}/devices", AccessRole::kViewer},
    Route{RouteId::kListTenants, "GET", "/v1/tenants", AccessRole::kViewer},
    Route{RouteId::kListAlerts, "GET", "/v1/alerts", AccessRole::kViewer},
    Route{RouteId::kGetAlertRules, "GET", "/v1/alerts/rules", AccessRole::kViewer},
    Route{RouteId::kSetAlertRules, "PUT", "/v1/alerts/rules", AccessRole::kOperator},
};

// Whether the path fits the pattern, segment by segment.
bool fits(std::string_view pattern, std::string_view path, std::vector<std::string>& parameters) {
  parameters.clear();
  while (!pattern.empty() && !path.empty()) {
    const std::size_t pattern_end = pattern.find('/', 1);
    const std::size_t path_end = path.find('/', 1);
    const std::string_view expected = pattern.substr(0, pattern_end);
    const std::string_view given = path.substr(0, path_end);
    if (expected.starts_with("/{")) {
      if (given.size() < 2) return false;
      parameters.emplace_back(given.substr(1));
    } else if (expected != given) {
      return false;
    }
    pattern.remove_prefix(expected.size());
    path.remove_prefix(given.size());
  }
  return pattern.empty() && path.empty();
}

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

RouteMatch find_route(std::string_view method, std::string_view path) {
  RouteMatch match;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : kRoutes) {
    if (!fits(route.pattern, path, match.parameters)) continue;
    if (route.method == wanted) {
      match.route = &route;
      return match;
    }
    match.is_other_method = true;
  }
  match.parameters.clear();
  return match;
}

}  // namespace regatta::api
