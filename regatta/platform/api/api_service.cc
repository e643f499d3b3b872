#include "regatta/platform/api/api_service.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/api/internal/audit_routes.h"
#include "regatta/platform/api/internal/backup_routes.h"
#include "regatta/platform/api/internal/cluster_routes.h"
#include "regatta/platform/api/internal/device_streams.h"
#include "regatta/platform/api/internal/fabric_routes.h"
#include "regatta/platform/api/internal/identity_routes.h"
#include "regatta/platform/api/internal/job_routes.h"
#include "regatta/platform/api/internal/log_routes.h"
#include "regatta/platform/api/internal/metrics_route.h"
#include "regatta/platform/api/internal/monitor_routes.h"
#include "regatta/platform/api/internal/openapi_document.h"
#include "regatta/platform/api/internal/past_routes.h"
#include "regatta/platform/api/internal/plan_routes.h"
#include "regatta/platform/api/internal/slice_routes.h"
#include "regatta/platform/api/internal/wait_routes.h"
#include "regatta/platform/api/internal/watch_streams.h"
#include "regatta/platform/api/object_json.h"
#include "regatta/platform/api/problem.h"
#include "regatta/platform/plan_service/plan_pool.h"
#include "regatta/platform/plan_service/plan_request.h"

namespace regatta::api {

struct ApiService::Impl {
  Impl(http::EventLoop& loop, controller::ControllerRuntime& given_runtime,
       controller::NodeSessions& given_sessions, ApiHandlers given_handlers)
      : runtime(given_runtime),
        sessions(given_sessions),
        handlers(std::move(given_handlers)),
        watches(loop, given_runtime),
        past(loop, given_runtime, handlers.history),
        logs(loop, given_runtime, given_sessions, handlers.history),
        backups(loop, given_runtime, handlers.work_folder),
        plans(loop, {}),
        users(handlers.limits.user),
        addresses(handlers.limits.address) {
    if (handlers.monitor != nullptr) device_streams.emplace(loop, *handlers.monitor);
  }

  // Whether it was refused, since too many came. Nodes have proved by their certificate who they
  // are.
  bool refuse_if_many(const ApiRequest& request) {
    const http::Request& asked = request.http();
    const bool is_known = !request.caller.user.empty();
    if ((is_loopback(asked.remote_address) && !handlers.limits.has_loopback) ||
        request.caller.role >= AccessRole::kOperator || !asked.peer_uris.empty())
      return false;
    const Seconds now = os::monotonic_now();
    const Seconds wait = is_known ? users.take(request.caller.user, now)
                                  : addresses.take(network_of(asked.remote_address), now);
    if (wait.value <= 0) return false;
    request.exchange->respond(
        too_many("TooManyRequests",
                 is_known ? fmt::format("user {} sends too many requests", request.caller.user)
                          : "this address sends too many requests",
                 wait));
    return true;
  }

  void run_route(RouteId route, const ApiRequest& request);
  // The audit notes the request and its result from now on.
  void begin_audit(const Route& route, const ApiRequest& request) const;
  // False: no route of users and tokens.
  bool run_identity_route(RouteId route, const ApiRequest& request);

  controller::ControllerRuntime& runtime;
  controller::NodeSessions& sessions;
  ApiHandlers handlers;
  WatchStreams watches;
  PastRoutes past;
  LogRoutes logs;
  BackupRoutes backups;
  FabricRoutes fabric;
  plan_service::PlanPool plans;
  TokenBuckets users;
  TokenBuckets addresses;
  std::optional<DeviceStreams> device_streams;
};

bool ApiService::Impl::run_identity_route(RouteId route, const ApiRequest& request) {
  switch (route) {
    case RouteId::kListUsers:
      list_users(runtime, request);
      return true;
    case RouteId::kSetUser:
      set_user(runtime, handlers.hash_password, request);
      return true;
    case RouteId::kRemoveUser:
      remove_user(runtime, request);
      return true;
    case RouteId::kListTokens:
      list_tokens(runtime, request);
      return true;
    case RouteId::kCreateToken:
      create_token(runtime, request);
      return true;
    case RouteId::kRemoveToken:
      remove_token(runtime, request);
      return true;
    case RouteId::kGetSession:
      respond_json(runtime, request, session_json(request.caller));
      return true;
    default:
      return false;
  }
}

void ApiService::Impl::begin_audit(const Route& route, const ApiRequest& request) const {
  if (handlers.audit == nullptr) return;
  request.exchange->begin(
      *handlers.audit,
      {.user = request.caller.user,
       .token = request.caller.token,
       .address = request.http().remote_address,
       .action = fmt::format("{} {}", route.method, route.pattern),
       .object = request.parameters.empty() ? std::string() : request.parameters.front()});
}

void ApiService::Impl::run_route(RouteId route, const ApiRequest& request) {
  if (run_identity_route(route, request)) return;
  if (handlers.monitor != nullptr && run_monitor_route(route, runtime, *handlers.monitor, request))
    return;
  const auto hand_on = [&request](const auto& handler) {
    if (handler)
      handler(request.exchange);
    else
      request.exchange->respond(problem(501, "Unsupported", "this controller does not do that"));
  };
  switch (route) {
    case RouteId::kListJobs:
      return list_jobs(runtime, request);
    case RouteId::kSubmitJobs:
      return request.query("dry_run") == "true" ? explain_submission(runtime, request)
                                                : submit_jobs(runtime, request);
    case RouteId::kGetJob:
      return get_job(runtime, request);
    case RouteId::kChangeJob:
      return patch_job(runtime, request);
    case RouteId::kCancelJob:
    case RouteId::kHoldJob:
    case RouteId::kReleaseJob:
      return act_on_job(runtime, request, route);
    case RouteId::kReadLog:
      return logs.read(request);
    case RouteId::kBackUp:
      return backups.send(request);
    case RouteId::kListAttempts:
      return past.list_attempts(request);
    case RouteId::kListEvents:
      return past.list_events(request);
    case RouteId::kExplainWait:
      return explain_wait(runtime, request);
    case RouteId::kGetJobMetrics:
      return get_job_metrics(runtime, sessions, request);
    case RouteId::kSearchPlans:
      return search_plans(plans, request);
    case RouteId::kGetPlanPresets:
      return respond_json(runtime, request, plan_service::plan_presets());
    case RouteId::kListNodes:
      return list_nodes(runtime, request);
    case RouteId::kGetNode:
      return get_node(runtime, request);
    case RouteId::kSetNodeIntent:
      return set_node_intent(runtime, request);
    case RouteId::kGetQueues:
      return get_queues(runtime, request);
    case RouteId::kSetQueues:
      return set_queues(runtime, request);
    case RouteId::kWatch:
      if (device_streams && request.query("kinds") == "device")
        return device_streams->open(request.exchange);
      return watches.open(request.exchange);
    case RouteId::kGetScheduler:
      return get_scheduler(runtime, request);
    case RouteId::kGetMetrics:
      return get_metrics(runtime, sessions, handlers.monitor, request);
    case RouteId::kEnrollNode:
      return hand_on(handlers.enroll_node);
    case RouteId::kConnectNode:
      return hand_on(handlers.connect_node);
    case RouteId::kLogin:
      return hand_on(handlers.login);
    case RouteId::kBeginOidc:
      return hand_on(handlers.begin_oidc);
    case RouteId::kFinishOidc:
      return hand_on(handlers.finish_oidc);
    case RouteId::kLogout:
      return hand_on(handlers.logout);
    case RouteId::kGetOpenapi:
      return respond_json(runtime, request, std::string(openapi_document()));
    case RouteId::kListSlices:
      return list_slices(runtime, request);
    case RouteId::kGetFabric:
      return fabric.get(runtime, request);
    case RouteId::kSetFabricVerdicts:
      return fabric.set(runtime, request);
    case RouteId::kGetHealth:
      return respond_json(runtime, request, R"({"status":"ok"})");
    case RouteId::kListAudit:
      return list_audit(handlers.audit, runtime, request);
    default:
      return hand_on(HandleExchange());
  }
}

ApiService::ApiService(http::EventLoop& loop, controller::ControllerRuntime& runtime,
                       controller::NodeSessions& sessions, ApiHandlers handlers)
    : impl_(std::make_unique<Impl>(loop, runtime, sessions, std::move(handlers))) {}

ApiService::~ApiService() = default;

std::size_t ApiService::watcher_count() const {
  return impl_->watches.count();
}

void ApiService::handle(std::unique_ptr<http::Exchange> exchange) {
  ApiRequest request{.exchange = std::make_shared<AuditedExchange>(std::move(exchange)),
                     .parameters = {},
                     .caller = {}};
  RouteMatch match = find_route(request.http().method, request.http().path);
  if (match.route == nullptr) {
    if (impl_->refuse_if_many(request)) return;
    const std::string path = printable(request.http().path, 100);
    const bool is_page = !match.is_other_method && !request.http().path.starts_with("/v1/");
    if (is_page && impl_->handlers.page) return impl_->handlers.page(request.exchange);
    return request.exchange->respond(
        match.is_other_method
            ? problem(405, "MethodNotAllowed", fmt::format("{}: it has no such method", path))
            : problem(404, "NotFound", fmt::format("{}: there is no such path", path)));
  }
  request.parameters = std::move(match.parameters);
  if (match.route->least) {
    auto caller = impl_->handlers.authenticate(request.http());
    if (!caller && impl_->refuse_if_many(request)) return;
    if (!caller && caller.error().code == Code::kConflict)
      return request.exchange->respond(problem(403, "ForeignPage", caller.error().message));
    if (!caller)
      return request.exchange->respond(problem(401, "NotAuthenticated", caller.error().message));
    request.caller = std::move(*caller);
    if (request.caller.role < *match.route->least)
      return request.exchange->respond(
          problem(403, "NotAllowed",
                  fmt::format("the role {} may not do this; it needs {}",
                              at(kAccessRoleNames, static_cast<int>(request.caller.role)),
                              at(kAccessRoleNames, static_cast<int>(*match.route->least)))));
  }
  if (impl_->refuse_if_many(request)) return;
  const bool asks_only =
      match.route->id == RouteId::kSearchPlans ||
      (match.route->id == RouteId::kSubmitJobs && request.query("dry_run") == "true");
  const bool changes =
      !asks_only && (match.route->method != "GET" || match.route->id == RouteId::kFinishOidc);
  // A copy of all that the controller knows is noted, too.
  if (changes || match.route->id == RouteId::kBackUp) impl_->begin_audit(*match.route, request);
  const bool is_audit_stuck = impl_->handlers.audit != nullptr && impl_->handlers.audit->is_stuck();
  if (changes && (impl_->runtime.is_read_only() || is_audit_stuck)) {
    request.exchange->leave_out();  // the audit is on the same disk
    return request.exchange->respond(
        problem(507, "DiskFull",
                "the controller's disk is full, and it only reads; free space on "
                "it, or ask an operator"));
  }
  impl_->run_route(match.route->id, request);
}

}  // namespace regatta::api
