// agent/internal/agent_handle.h: the agents of a session: starts them in the lab or connects to
// their addresses, collects their events in one queue, and ends them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/lab/lab.h"
#include "regatta/runtime/agent/agent.pb.h"
#include "regatta/runtime/agent/internal/agent_link.h"

namespace regatta::agent {

// An event of one agent; no event: the stream has ended, for the reason `end`.
struct AgentMessage {
  std::size_t server = 0;
  std::optional<proto::AgentEvent> event;
  std::string end;
};

// The threads of the links add messages; one thread removes them.
class AgentMessageQueue {
 public:
  void push(AgentMessage message);
  // Removes all messages; waits up to `limit` for the first.
  std::vector<AgentMessage> pop_all(Seconds limit);

 private:
  Mutex mutex_;
  ConditionVariable has_messages_;
  std::deque<AgentMessage> messages_ REGATTA_GUARDED_BY(mutex_);
};

// One agent. Used by the session's thread alone.
struct AgentHandle {
  std::string server;
  pid_t pid = -1;      // of an agent in the lab
  std::string socket;  // of an agent in the lab
  std::unique_ptr<AgentLink> link;
  std::optional<std::string> lost;  // the reason
  bool is_stopped = false;          // replied to the last Stop
  std::set<std::string> down;       // interfaces without carrier
  Seconds last_heard;
};

// Starts an agent inside the namespace of `server`; connect_agent() follows.
Result<AgentHandle> start_agent(const lab::LabInfo& lab, const std::string& server,
                                const std::string& token);
// Connects to the agent that listens at `target`. `messages` must outlive the link.
Status connect_agent(AgentHandle& agent, const std::string& target, const std::string& token,
                     std::size_t index, AgentMessageQueue& messages);

// Ends an agent of the lab and so its workers: waits up to `timeout` for it to end by itself, then
// kills it, also when it is stopped. "" or how it ended: "signal 9 (Killed)".
std::string end_agent(AgentHandle& agent, Seconds timeout);

}  // namespace regatta::agent
