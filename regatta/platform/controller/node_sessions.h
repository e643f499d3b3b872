// controller/node_sessions.h: the connections of agents: who is connected, and what passes between
// an agent and the state machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::controller {

// Signs the request of the agent of `node`; returns a PEM certificate.
using SignNode =
    std::function<Result<std::string>(const std::string& node, const std::string& csr)>;

// A part of the output of a rank that was asked for.
using LogHandler = std::function<void(const node_protocol::LogPart&)>;
// Takes what has changed of a node's devices; null: its agent is away.
using ReadingsHandler =
    std::function<void(int node, const node_protocol::DeviceReadings* readings)>;

// Belongs to the loop's thread, as the runtime does, which outlives it.
class NodeSessions {
 public:
  NodeSessions(http::EventLoop& loop, ControllerRuntime& runtime, SignNode sign);
  ~NodeSessions();
  NodeSessions(const NodeSessions&) = delete;
  NodeSessions& operator=(const NodeSessions&) = delete;

  // A connection whose certificate names `node`: its hello must name the same one. A later
  // connection of a node ends the earlier one.
  void add(const std::string& node, std::unique_ptr<http::WebSocket> socket);
  std::size_t count() const;
  void on_readings(ReadingsHandler handler);

  // Asks the node of the replica for a rank's output; `handler` gets the parts until the last.
  // Returns the number of the request, for cancel_log(). kUnavailable: the node is not connected.
  Result<std::int64_t> request_log(const std::string& node, const control::ReplicaKey& key,
                                   int rank, std::int64_t offset, std::int64_t length,
                                   bool is_following, LogHandler handler);
  void cancel_log(std::int64_t request);
  // Asks the node of the replica for its metrics, as JSON (node_agent/internal/metrics_file.h);
  // `handler` gets the parts until the last. kUnavailable: the node is not connected, or its agent
  // is too old.
  Status request_metrics(const std::string& node, const control::ReplicaKey& key,
                         LogHandler handler);

  // The controller is about to end: its agents may keep all replicas for the restart lease.
  void extend_leases();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::controller
