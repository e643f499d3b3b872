// agent/internal/agent_handle.h: the agents of a session: started in the lab or reached at their
// address, their events in one queue, and ended again.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/lab/lab.h"
#include "regatta/runtime/agent/agent.pb.h"
#include "regatta/runtime/agent/internal/agent_link.h"

namespace regatta::agent {

// An event of one agent; without one the stream ended, and `end` says why.
struct AgentMessage {
  std::size_t server = 0;
  std::optional<proto::AgentEvent> event;
  std::string end;
};

// Filled by the links' threads, emptied by one.
class AgentMessageQueue {
 public:
  void put(AgentMessage message);
  // Everything that arrived; waits up to `limit` for the first.
  std::vector<AgentMessage> take(Seconds limit);

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<AgentMessage> messages_;
};

// One agent. The session's thread alone touches it.
struct AgentHandle {
  std::string server;
  pid_t pid = -1;      // of an agent in the lab
  std::string socket;  // of an agent in the lab
  std::unique_ptr<AgentLink> link;
  std::optional<std::string> lost;  // why
  bool is_stopped = false;          // answered the last Stop
  std::set<std::string> down;       // interfaces without carrier
  Seconds last_heard;
};

// Starts an agent inside the namespace of `server`; connect_agent() follows.
Result<AgentHandle> start_agent(const lab::LabInfo& lab, const std::string& server,
                                const std::string& token);
// Connects to the agent that listens at `target`. `inbox` must outlive the link.
Status connect_agent(AgentHandle& agent, const std::string& target, const std::string& token,
                     std::size_t index, AgentMessageQueue& inbox);

// Ends an agent of the lab and so its workers: waits up to `patience` for it to end by itself,
// then kills it, also when it is stopped. "" or how it ended: "signal 9 (Killed)".
std::string end_agent(AgentHandle& agent, Seconds patience);

}  // namespace regatta::agent
