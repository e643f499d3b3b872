// agent/internal/agent_service.h: the agent's end of the stream of agent/agent.proto.
#pragma once

#include <atomic>
#include <string>

#include "regatta/base/core/result.h"

namespace regatta::agent {

struct ServeOptions {
  std::string listen;              // "unix:PATH" or "host:port"
  std::string token;               // required of a session; "": any session
  bool exit_with_session = false;  // return when the first session ends
};

// Serves one session at a time until `stop` (polled every 50 ms) or, with exit_with_session, the
// end of the first session. When it returns no worker is left. kUnavailable when it cannot listen
// there.
Status serve(const ServeOptions& options, const std::atomic<bool>& stop);

}  // namespace regatta::agent
