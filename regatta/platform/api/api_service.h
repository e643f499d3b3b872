// api/api_service.h: the HTTP API of the controller: docs/formats/api.md, docs/api/openapi.json.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_message.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/api/access.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/controller/node_sessions.h"
#include "regatta/platform/history/cluster_history.h"

namespace regatta::api {

// Finds who sends a request, by its token, cookie or certificate. kNotFound: nobody that is known.
using Authenticate = std::function<Result<Caller>(const http::Request&)>;

// Belongs to the loop's thread, as the runtime does, which outlives it.
// Routes that the service hands on, with the exchange still open: how servers join and connect, and
// how users log in. A route without a handler answers 501.
struct ApiHandlers {
  Authenticate authenticate;
  std::function<void(std::shared_ptr<http::Exchange>)> enroll_node;
  std::function<void(std::shared_ptr<http::Exchange>)> connect_node;
  std::function<void(std::shared_ptr<http::Exchange>)> login;
  history::ClusterHistory* history = nullptr;  // outlives the service
  std::string work_folder;                     // for the files of backups; "": there are none
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
