// api/access.h: every route of the API with the role that it needs: the one table of rights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/platform/identity/identity_tables.h"

namespace regatta::api {

using identity::AccessRole;
using identity::kAccessRoleNames;

// The user who asks, once that is known.
struct Caller {
  std::string user;
  AccessRole role = AccessRole::kViewer;
  std::string token = {};       // id of the token or session by which the caller is known
  std::int64_t expires_ms = 0;  // its end in Unix time; 0: none
};

enum class RouteId {
  kListJobs,
  kSubmitJobs,
  kGetJob,
  kChangeJob,
  kCancelJob,
  kHoldJob,
  kReleaseJob,
  kReadLog,
  kExplainWait,
  kListAttempts,
  kListEvents,
  kGetJobMetrics,
  kSearchPlans,
  kGetPlanPresets,
  kListNodes,
  kGetNode,
  kSetNodeIntent,
  kEnrollNode,
  kConnectNode,
  kGetQueues,
  kSetQueues,
  kWatch,
  kListUsers,
  kSetUser,
  kRemoveUser,
  kListTokens,
  kCreateToken,
  kRemoveToken,
  kLogin,
  kBackUp,
  kLogout,
  kBeginOidc,
  kFinishOidc,
  kGetSession,
  kGetOpenapi,
  kListAudit,
  kGetScheduler,
  kListSlices,
  kGetFabric,
  kSetFabricVerdicts,
  kGetHealth,
  kGetMetrics,
  kListDevices,
  kGetDeviceHistory,
  kGetJobDevices,
  kListTenants,
  kListAlerts,
  kGetAlertRules,
  kSetAlertRules
};

// `least`: the role that a caller needs; none: the route finds by itself who asks.
struct Route {
  RouteId id;
  std::string_view method;
  std::string_view pattern;  // {name} stands for one segment
  std::optional<AccessRole> least;
};

// Each method and pattern once; docs/api/openapi.json has the same routes.
std::span<const Route> routes();

struct RouteMatch {
  const Route* route = nullptr;         // null: no pattern fits
  bool is_other_method = false;         // a pattern fits, with another method
  std::vector<std::string> parameters;  // of {name}, in their order
};
RouteMatch find_route(std::string_view method, std::string_view path);

}  // namespace regatta::api
