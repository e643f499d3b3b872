#include "regatta/platform/api/api_service.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/api/internal/cluster_routes.h"
#include "regatta/platform/api/internal/fabric_routes.h"
#include "regatta/platform/api/internal/identity_routes.h"
#include "regatta/platform/api/internal/job_routes.h"
#include "regatta/platform/api/internal/slice_routes.h"
#include "regatta/platform/api/internal/watch_streams.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {

struct ApiService::Impl {
  Impl(http::EventLoop& loop, controller::ControllerRuntime& given_runtime,
       controller::NodeSessions& given_sessions, ApiHandlers given_handlers)
      : runtime(given_runtime),
        sessions(given_sessions),
        handlers(std::move(given_handlers)),
        watches(loop, given_runtime) {}

  void run_route(RouteId route, const ApiRequest& request);
  // False: no route of users and tokens.
  bool run_identity_route(RouteId route, const ApiRequest& request);

  controller::ControllerRuntime& runtime;
  controller::NodeSessions& sessions;
  ApiHandlers handlers;
  WatchStreams watches;
  FabricRoutes fabric;
};

bool ApiService::Impl::run_identity_route(RouteId route, const ApiRequest& request) {
  switch (route) {
    case RouteId::kListUsers:
      list_users(runtime, request);
      return true;
    case RouteId::kSetUser:
      set_user(runtime, request);
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
    default:
      return false;
  }
}

void ApiService::Impl::run_route(RouteId route, const ApiRequest& request) {
  if (run_identity_route(route, request)) return;
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
      return submit_jobs(runtime, request);
    case RouteId::kGetJob:
      return get_job(runtime, request);
    case RouteId::kChangeJob:
      return patch_job(runtime, request);
    case RouteId::kCancelJob:
    case RouteId::kHoldJob:
    case RouteId::kReleaseJob:
      return act_on_job(runtime, request, route);
    case RouteId::kReadLog:
      return read_log(runtime, sessions, request);
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
      return watches.open(request.exchange);
    case RouteId::kGetScheduler:
      return get_scheduler(runtime, request);
    case RouteId::kGetMetrics:
      return get_metrics(runtime, sessions, request);
    case RouteId::kEnrollNode:
      return hand_on(handlers.enroll_node);
    case RouteId::kConnectNode:
      return hand_on(handlers.connect_node);
    case RouteId::kLogin:
      return hand_on(handlers.login);
    case RouteId::kListSlices:
      return list_slices(runtime, request);
    case RouteId::kGetFabric:
      return fabric.get(runtime, request);
    case RouteId::kSetFabricVerdicts:
      return fabric.set(runtime, request);
    case RouteId::kGetHealth:
      return respond_json(runtime, request, R"({"status":"ok"})");
    default:
      return hand_on(std::function<void(std::shared_ptr<http::Exchange>)>());
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
  ApiRequest request{.exchange = std::move(exchange), .parameters = {}, .caller = {}};
  RouteMatch match = find_route(request.http().method, request.http().path);
  if (match.route == nullptr) {
    const std::string path = printable(request.http().path, 100);
    return request.exchange->respond(
        match.is_other_method
            ? problem(405, "MethodNotAllowed", fmt::format("{}: it has no such method", path))
            : problem(404, "NotFound", fmt::format("{}: there is no such path", path)));
  }
  request.parameters = std::move(match.parameters);
  if (match.route->least) {
    auto caller = impl_->handlers.authenticate(request.http());
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
  const bool changes = match.route->method != "GET";
  if (changes && impl_->runtime.is_read_only())
    return request.exchange->respond(
        problem(507, "DiskFull",
                "the controller's disk is full, and it only reads; free space on "
                "it, or ask an operator"));
  impl_->run_route(match.route->id, request);
}

}  // namespace regatta::api
