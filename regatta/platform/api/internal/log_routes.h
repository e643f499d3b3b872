// api/internal/log_routes.h: GET /v1/jobs/{job}/logs: the output of a rank, from the agent that has
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/http/event_loop.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/controller/node_sessions.h"
#include "regatta/platform/history/cluster_history.h"

namespace regatta::api {

class LogRoutes {
 public:
  LogRoutes(http::EventLoop& loop, controller::ControllerRuntime& runtime,
            controller::NodeSessions& sessions, history::ClusterHistory* history)
      : loop_(loop), runtime_(runtime), sessions_(sessions), history_(history) {}

  // `replica`, `rank`, `offset`, `length`, `follow`, and `attempt`: of earlier ones the history
  // knows the nodes. The agent stops reading when the reader leaves.
  void read(const ApiRequest& request);

 private:
  // The part of a log that is asked for.
  struct LogQuery {
    control::ReplicaKey key;
    std::int64_t rank = 0;
    std::int64_t offset = 0;
    std::int64_t length = 0;
    bool is_following = false;
  };
  struct LogReader;
  void find_earlier(const ApiRequest& request, const LogQuery& query);
  void open(const ApiRequest& request, const LogQuery& query, const std::string& node);
  void end(const std::shared_ptr<LogReader>& reader);

  http::EventLoop& loop_;
  controller::ControllerRuntime& runtime_;
  controller::NodeSessions& sessions_;
  history::ClusterHistory* history_;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace regatta::api
