// api/internal/backup_routes.h: GET /v1/backup: the store as one file.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "regatta/base/http/event_loop.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

class BackupRoutes {
 public:
  BackupRoutes(http::EventLoop& loop, controller::ControllerRuntime& runtime, std::string folder)
      : loop_(loop), runtime_(runtime), folder_(std::move(folder)) {}

  // The header Regatta-Bytes says how long the file is. One at a time: else kConflict.
  void send(const ApiRequest& request);

 private:
  struct Sending;
  void begin(const ApiRequest& request, const std::string& path);
  void go_on(const std::shared_ptr<Sending>& sending);

  http::EventLoop& loop_;
  controller::ControllerRuntime& runtime_;
  std::string folder_;
  bool is_sending_ = false;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace regatta::api
