// node_agent/internal/metrics_server.h: GET /metrics of an agent, over TLS with the node's own
// certificate, for those who have the token: text of Prometheus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_server.h"

namespace regatta::node_agent {

struct MetricsServerOptions {
  std::string address = "0.0.0.0";
  std::uint16_t port = 0;  // 0: any free one
  std::string token;       // not empty
  http::ServerIdentity identity;
};

// Has a thread of its own, which serves the text that was published last.
class MetricsServer {
 public:
  static Result<std::unique_ptr<MetricsServer>> create(MetricsServerOptions options);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  std::uint16_t port() const;
  void publish(std::string text);  // in any thread
  void set_identity(http::ServerIdentity identity);

 private:
  struct Impl;
  explicit MetricsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::node_agent
