// api/api_service.h: the HTTP API of the controller: docs/formats/api.md, docs/api/openapi.json.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_message.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/api/access.h"
#include "regatta/platform/api/audited_exchange.h"
#include "regatta/platform/api/rate_limits.h"
#include "regatta/platform/audit/audit_log.h"
#include "regatta/platform/controller/cluster_monitor.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/controller/node_sessions.h"
#include "regatta/platform/history/cluster_history.h"

namespace regatta::api {

// Finds who sends a request, by its token, cookie or certificate. kNotFound: nobody that is known;
// kConflict: a browser whose page is not the controller's.
using Authenticate = std::function<Result<Caller>(const http::Request&)>;
// Hashes a password beside the loop; `done` runs in the loop's thread.
using HashPassword =
    std::function<void(std::string password, std::function<void(Result<std::string>)> done)>;
using HandleExchange = std::function<void(std::shared_ptr<AuditedExchange>)>;

// Belongs to the loop's thread, as the runtime does, which outlives it.
// Routes that the service hands on, with the exchange still open: how servers join and connect, how
// users log in and out, and the page at all paths that the API does not have. A route without a
// handler answers 501.
struct ApiHandlers {
  Authenticate authenticate;
  HashPassword hash_password = {};
  HandleExchange enroll_node = {};
  HandleExchange connect_node = {};
  HandleExchange login = {};
  HandleExchange logout = {};
  HandleExchange begin_oidc = {};
  HandleExchange finish_oidc = {};
  HandleExchange page = {};                    // empty: 404
  history::ClusterHistory* history = nullptr;  // outlives the service
  std::string work_folder = {};                // for the files of backups; "": there are none
  RateLimits limits = {};
  audit::AuditLog* audit = nullptr;  // outlives the service; null: nothing is noted
  // Outlives the service; null: no devices, tenants and alerts.
  controller::ClusterMonitor* monitor = nullptr;
};

class ApiService {
 public:
  // `sessions`: for the output of ranks; both outlive the service.
  ApiService(http::EventLoop& loop, controller::ControllerRuntime& runtime,
             controller::NodeSessions& sessions, ApiHandlers handlers);
  ~ApiService();
  ApiService(const ApiService&) = delete;
  ApiService& operator=(const ApiService&) = delete;

  void handle(std::unique_ptr<http::Exchange> exchange);
  std::size_t watcher_count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::api
