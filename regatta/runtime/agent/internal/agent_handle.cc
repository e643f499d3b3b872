#include "regatta/runtime/agent/internal/agent_handle.h"

#include <chrono>
#include <csignal>
#include <iterator>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::agent {
namespace {

constexpr Seconds kConnectPatience{10.0};

}  // namespace

void AgentMessageQueue::put(AgentMessage message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  arrived_.notify_one();
}

std::vector<AgentMessage> AgentMessageQueue::take(Seconds limit) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, std::chrono::duration<double>(limit.value),
                    [this] { return !messages_.empty(); });
  std::vector<AgentMessage> taken(std::make_move_iterator(messages_.begin()),
                                  std::make_move_iterator(messages_.end()));
  messages_.clear();
  return taken;
}

Result<AgentHandle> start_agent(const lab::LabInfo& lab, const std::string& server,
                                const std::string& token) {
  REGATTA_TRY(folder, os::executable_folder());
  const std::string program = folder + "/regatta-agent";
  if (::access(program.c_str(), X_OK) != 0) {
    return Error{Code::kNotFound, fmt::format("regatta-agent is not in {}; build it", folder)};
  }
  AgentHandle agent;
  agent.server = server;
  // With the process id: several sessions may use one lab.
  agent.socket = fmt::format("{}/{}.{}.sock", lab.folder, server, ::getpid());
  lab::ExecOptions options;
  options.environment = {"REGATTA_AGENT_TOKEN=" + token};
  options.die_with_parent = true;
  REGATTA_TRY(pid, lab::spawn(lab, server,
                              {program, "--listen", "unix:" + agent.socket, "--exit-with-session"},
                              options));
  agent.pid = pid;
  return agent;
}

Status connect_agent(AgentHandle& agent, const std::string& target, const std::string& token,
                     std::size_t index, AgentMessageQueue& inbox) {
  const Seconds give_up = os::monotonic_now() + kConnectPatience;
  while (!agent.socket.empty() && ::access(agent.socket.c_str(), F_OK) != 0) {
    if (os::monotonic_now() > give_up) {
      return Error{Code::kUnavailable, fmt::format("server {}: its agent did not start within "
                                                   "{:.0f} s; see its messages above",
                                                   agent.server, kConnectPatience.value)};
    }
    os::sleep_for(Seconds{0.005});
  }
  auto sink = [&inbox, index](const proto::AgentEvent* event, const std::string& end) {
    inbox.put({index, event != nullptr ? std::optional(*event) : std::nullopt, end});
  };
  auto link = AgentLink::connect(target, token, kConnectPatience, std::move(sink));
  if (!link) {
    return Error{link.error().code,
                 fmt::format("server {}: {}", agent.server, link.error().message)};
  }
  agent.link = *std::move(link);
  agent.last_heard = os::monotonic_now();
  return {};
}

std::string end_agent(AgentHandle& agent, Seconds patience) {
  if (agent.pid < 0) return "";
  std::string how;
  auto end = os::wait_for(agent.pid, patience);
  if (end) {
    how = os::to_string(*end);
  } else {
    ::kill(agent.pid, SIGKILL);
    static_cast<void>(os::wait_for(agent.pid, Seconds{1.0}));
  }
  agent.pid = -1;
  ::unlink(agent.socket.c_str());
  return how;
}

}  // namespace regatta::agent
