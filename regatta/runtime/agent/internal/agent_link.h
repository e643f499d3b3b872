// agent/internal/agent_link.h: the session's end of the stream to one agent.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::agent::proto {
class AgentEvent;
class SessionRequest;
}  // namespace regatta::agent::proto

namespace regatta::agent {

class AgentLink {
 public:
  // Called from the link's own thread: with every event, and once with nullptr and the reason when
  // the stream ended.
  using Sink = std::function<void(const proto::AgentEvent* event, const std::string& end)>;

  // Connects to an agent at "unix:PATH" or "host:port" and sends the token. kUnavailable when none
  // replies within `timeout`.
  static Result<std::unique_ptr<AgentLink>> connect(const std::string& target,
                                                    const std::string& token, Seconds timeout,
                                                    Sink sink);
  // Ends the stream, and so every worker of the agent.
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // One thread at a time. False when the stream is broken; the sink gets the reason.
  bool send(const proto::SessionRequest& request);

 private:
  struct Impl;
  explicit AgentLink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::agent
