#include "regatta/runtime/agent/internal/agent_handle.h"

#include <csignal>
#include <iterator>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::agent {
namespace {

constexpr Seconds kConnectTimeout{10.0};

}  // namespace

void AgentMessageQueue::push(AgentMessage message) {
  {
    const MutexLock lock(mutex_);
    messages_.push_back(std::move(message));
  }
  has_messages_.notify_one();
}

std::vector<AgentMessage> AgentMessageQueue::pop_all(Seconds limit) {
  MutexLock lock(mutex_);
  has_messages_.wait_for(lock, limit,
                         [this]() REGATTA_REQUIRES(mutex_) { return !messages_.empty(); });
  std::vector<AgentMessage> messages(std::make_move_iterator(messages_.begin()),
                                     std::make_move_iterator(messages_.end()));
  messages_.clear();
  return messages;
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
                     std::size_t index, AgentMessageQueue& messages) {
  const Seconds give_up = os::monotonic_now() + kConnectTimeout;
  while (!agent.socket.empty() && ::access(agent.socket.c_str(), F_OK) != 0) {
    if (os::monotonic_now() > give_up) {
      return Error{Code::kUnavailable, fmt::format("server {}: its agent did not start within "
                                                   "{:.0f} s; see its messages above",
                                                   agent.server, kConnectTimeout.value)};
    }
    os::sleep_for(Seconds{0.005});
  }
  auto sink = [&messages, index](const proto::AgentEvent* event, const std::string& end) {
    messages.push({index, event != nullptr ? std::optional(*event) : std::nullopt, end});
  };
  auto link = AgentLink::connect(target, token, kConnectTimeout, std::move(sink));
  if (!link) {
    return Error{link.error().code,
                 fmt::format("server {}: {}", agent.server, link.error().message)};
  }
  agent.link = *std::move(link);
  agent.last_heard = os::monotonic_now();
  return {};
}

std::string end_agent(AgentHandle& agent, Seconds timeout) {
  if (agent.pid < 0) return "";
  std::string how;
  auto end = os::wait_for(agent.pid, timeout);
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
