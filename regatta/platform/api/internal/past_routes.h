// api/internal/past_routes.h: what has happened: GET /v1/events, GET /v1/jobs/{job}/attempts.
#pragma once

#include <memory>

#include "regatta/base/http/event_loop.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/history/cluster_history.h"

namespace regatta::api {

// Answers come from the history's thread to the loop's. Without a history the routes answer 501.
class PastRoutes {
 public:
  PastRoutes(http::EventLoop& loop, controller::ControllerRuntime& runtime,
             history::ClusterHistory* history)
      : loop_(loop), runtime_(runtime), history_(history) {}

  // `kind`, `object`, `since_ms`, `after` (the id of an event: those before it), `limit` (1 to
  // 500); the newest first.
  void list_events(const ApiRequest& request);
  // Those that have ended, and the one under way; of jobs that were removed, too.
  void list_attempts(const ApiRequest& request);

 private:
  template <typename Answer>
  auto in_loop(Answer answer);

  http::EventLoop& loop_;
  controller::ControllerRuntime& runtime_;
  history::ClusterHistory* history_;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace regatta::api
