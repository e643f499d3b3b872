// controller_service/controller_service.h: the controller as one service: its store, certificates,
// HTTP API and the connections of agents, wired together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/api/rate_limits.h"
#include "regatta/platform/controller/cluster_monitor.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/login/login_service.h"
#include "regatta/platform/store/store.h"

namespace regatta::controller_service {

struct ServiceOptions {
  std::string folder;           // certificates; admin.token of the first start
  std::string admin = "admin";  // user that the first start makes
  http::ServerOptions server;
  std::vector<std::string> hosts;  // names and addresses in the certificate, besides loopback
  controller::RuntimeOptions runtime;
  Seconds history_kept{30 * 86400};  // events and ended attempts, in FOLDER/history.db
  std::string page;                  // folder of the built page; empty: there is none
  login::LoginOptions login;
  api::RateLimits limits;
  controller::MonitorOptions monitor;
  // False where several controllers share the store in turn: the audit's chain is each one's own,
  // so its head is not kept there.
  bool has_own_store = true;
};

class ControllerService {
 public:
  // Listens when it returns. The first start makes the user `admin` of the options and writes its
  // API token to FOLDER/admin.token (mode 0600). `ended`: see ControllerRuntime::open().
  static Result<std::unique_ptr<ControllerService>> open(http::EventLoop& loop,
                                                         std::unique_ptr<store::Store> store,
                                                         const ServiceOptions& options,
                                                         std::function<void(const Error&)> ended);
  ~ControllerService();
  ControllerService(const ControllerService&) = delete;
  ControllerService& operator=(const ControllerService&) = delete;

  std::uint16_t port() const;
  controller::ControllerRuntime& runtime();
  controller::ClusterMonitor& monitor();
  // A token with which `uses` servers may join within the hour.
  std::string create_join_token(int uses);
  // Accepts no new request; open ones are answered.
  void close();
  // Before an end in good order: agents keep their replicas until the next controller is there. The
  // loop has to go on for a moment, so that the messages leave.
  void extend_leases();

 private:
  struct Impl;
  explicit ControllerService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::controller_service
