// node_protocol/controller_message.h: what the controller says to the agent of a server, as values
// and as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/node.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::node_protocol {

inline constexpr int kReplicaRanksMax = 1024;

// Answers NodeHello.
struct NodeWelcome {
  int protocol_version = kProtocolVersion;
  std::vector<std::string> capabilities = {};
  Seconds lease{30};         // 1 s to a day
  Seconds heartbeat{1};      // 0.05 s up to the lease
  std::int64_t sent_ns = 0;  // of the hello
};

// Orders of a kind that this version does not know are left out.
struct NodeOrders {
  std::vector<control::ReplicaOrder> orders;
};

struct HeartbeatAnswer {
  std::int64_t sent_ns = 0;  // of the heartbeat
};

struct LogRequest {
  std::int64_t request = 0;  // number that the parts repeat
  control::ReplicaKey key;
  int rank = 0;                // of this replica, from 0
  std::int64_t offset = 0;     // of the first byte; a later part where that one is dropped
  std::int64_t length = 0;     // most bytes; 0: up to the end
  bool is_following = false;   // goes on until the replica is over; `length` does not count then
  bool is_cancelled = false;   // the request with this number ends
  bool is_of_metrics = false;  // what the replica measured, as JSON, in place of a rank's log
};

struct RenewedCertificate {
  std::string certificate;  // PEM, for the key of the latest CertificateRequest
};

// The controller ends in good order, and its successor waits as long for this node: all replicas
// may run on until `lease` after `sent_ns`, also those with a shorter lease. The welcome of a
// controller ends it.
struct LeaseExtension {
  std::int64_t sent_ns = 0;  // of the latest message that the controller has heard
  Seconds lease;             // 1 s to a day
};

// The agent may not join now.
struct NodeRefusal {
  std::string reason;  // one sentence
};

// std::monostate: a kind that this version does not know; skip it.
using ControllerMessage = std::variant<std::monostate, NodeWelcome, NodeOrders, HeartbeatAnswer,
                                       LogRequest, RenewedCertificate, NodeRefusal, LeaseExtension>;

std::string encode(const ControllerMessage& message);
// kInvalidInput: these bytes are no message, or a field, which is named, is out of its range.
Result<ControllerMessage> decode_controller_message(std::string_view bytes);

}  // namespace regatta::node_protocol
