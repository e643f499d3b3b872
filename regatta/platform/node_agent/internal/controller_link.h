// node_agent/internal/controller_link.h: the connection of an agent to the controller, which is
// made again for ever: messages in both directions, and what happens to it as events.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/http_client.h"

namespace regatta::node_agent {

enum class ConnectionChange : std::uint8_t { kOpened, kMessage, kClosed };

struct ConnectionEvent {
  ConnectionChange change = ConnectionChange::kMessage;
  std::string bytes;  // the message; of kClosed: why, where it is known
};

// Pauses between attempts to connect: they double up to a limit, and each is drawn from its upper
// half, so that the agents of a cluster do not come at once. Source: Brooker, Exponential Backoff
// and Jitter, 2015.
class ReconnectPause {
 public:
  explicit ReconnectPause(std::uint32_t seed) : random_(seed) {}
  Seconds next();
  void reset() { longest_ = kFirst; }

  static constexpr double kFirst = 0.2;
  static constexpr double kMost = 5;

 private:
  double longest_ = kFirst;
  std::minstd_rand random_;
};

class ControllerLink {
 public:
  virtual ~ControllerLink() = default;
  // Polls readable when events wait.
  virtual int descriptor() const = 0;
  virtual std::vector<ConnectionEvent> take_events() = 0;
  // Without waiting; dropped where there is no connection.
  virtual void send(std::string message) = 0;
  // Ends the present connection; kClosed follows, and another attempt.
  virtual void reconnect() = 0;
  // The controller has accepted the node: pauses begin with the shortest again. A connection alone
  // does not count, or a controller that refuses the node would be asked five times a second.
  virtual void confirm() = 0;
  // The certificate for the connections to come.
  virtual void set_identity(std::string certificate, std::string private_key) = 0;
};

// To a controller on the same machine, by a socket of packets at `path`.
Result<std::unique_ptr<ControllerLink>> link_by_unix_socket(const std::string& path);

// A WebSocket at `target` of the server; it has a thread of its own.
Result<std::unique_ptr<ControllerLink>> link_by_web_socket(http::ClientOptions options,
                                                           std::string target);

}  // namespace regatta::node_agent
