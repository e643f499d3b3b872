// node_agent/internal/log_service.h: answers the controller's requests for logs of ranks, in parts,
// so that a long log does not keep the agent from its heartbeats; and for metrics of replicas.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "regatta/base/core/units.h"
#include "regatta/platform/node_protocol/controller_message.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::node_agent {

class LogService {
 public:
  struct Access {
    std::function<std::string(const control::ReplicaKey&)> run_folder;
    std::function<bool(const control::ReplicaKey&)> is_over;
    std::function<void(const node_protocol::LogPart&)> send;
  };
  explicit LogService(Access access) : access_(std::move(access)) {}

  void request(const node_protocol::LogRequest& request);
  void clear() { open_.clear(); }
  // Sends what is due, at most a few parts. Returns when to call it again: 0 while parts wait, a
  // fraction of a second while it follows a log, below 0 when there is nothing to do.
  Seconds serve();

 private:
  // Sends one part at most; true while more may come at once.
  bool serve_one(node_protocol::LogRequest& request, bool& is_done) const;
  void serve_metrics(const node_protocol::LogRequest& request) const;

  Access access_;
  std::map<std::int64_t, node_protocol::LogRequest> open_;
};

}  // namespace regatta::node_agent
