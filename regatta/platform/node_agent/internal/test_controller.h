// node_agent/internal/test_controller.h: a controller for tests and benchmarks: the real core and
// scheduler behind a socket of packets, with a store that is durable at once; and the agent's
// program as a process.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/socket.h"
#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/control/scheduling_view.h"
#include "regatta/platform/node_protocol/controller_message.h"
#include "regatta/platform/node_protocol/node_message.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::node_agent {

class TestController {
 public:
  struct Options {
    std::string socket;
    Seconds lease{30};
    Seconds heartbeat{0.1};
  };

  explicit TestController(Options options)
      : options_(std::move(options)),
        listener_(os::listen_unix(options_.socket, SOCK_SEQPACKET).value()),
        controller_({.lease = options_.lease}, {}) {}

  control::JobId submit(const std::string& script,
                        const std::string& user = ::getpwuid(::geteuid())->pw_name) {
    const std::string spec =
        R"({"name":"test","command":["/bin/sh","-c",")" + script + R"("],"roles":[{"devices":1}]})";
    const control::Submission submission{spec, user};
    const auto ids = controller_.submit({&submission, 1}, "", "", moment());
    REGATTA_CHECK(ids.has_value());
    settle();
    return ids->front();
  }
  void cancel(control::JobId id) {
    REGATTA_CHECK(controller_.cancel(id, moment()).has_value());
    settle();
  }
  const control::ManagedJob& job(control::JobId id) const {
    return controller_.tables().jobs.at(id);
  }
  bool is_over(control::JobId id) const { return control::is_over(job(id).phase); }
  int count_over() const {
    int count = 0;
    for (const auto& [id, job] : controller_.tables().jobs)
      count += control::is_over(job.phase) ? 1 : 0;
    return count;
  }
  int connections() const { return connections_; }
  bool is_connected() const { return static_cast<bool>(socket_); }
  // Answers nothing while it is set: the agent's lease runs out.
  void set_mute(bool is_mute) { is_mute_ = is_mute; }

  void request_log(const node_protocol::LogRequest& request) { send(request); }
  const std::string& log() const { return log_; }
  bool has_whole_log() const { return has_whole_log_; }

  // Works until `is_done`; false when it was not within `limit`.
  bool work_until(const std::function<bool()>& is_done, Seconds limit) {
    const Seconds end = os::monotonic_now() + limit;
    while (!is_done()) {
      if (os::monotonic_now() > end) return false;
      step(5);
    }
    return true;
  }
  void work_for(Seconds time) {
    static_cast<void>(work_until([] { return false; }, time));
  }

 private:
  control::Moment moment() const {
    return {.now = os::monotonic_now(), .unix_ms = os::system_ns() / 1'000'000};
  }

  void step(int wait_ms) {
    pollfd events[] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                       {.fd = socket_.get(), .events = POLLIN, .revents = 0}};
    static_cast<void>(::poll(events, 2, wait_ms));
    if (auto accepted = os::accept_connection(listener_)) {
      disconnect();
      socket_ = std::move(accepted);
      ++connections_;
    }
    while (socket_ && receive()) {
    }
    controller_.tick(moment());
    settle();
  }

  bool receive() {
    static std::vector<char> block(1 << 20);
    const ssize_t size = ::recv(socket_.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) return false;
    if (size <= 0) {
      disconnect();
      return false;
    }
    const auto message =
        node_protocol::decode_node_message({block.data(), static_cast<std::size_t>(size)});
    REGATTA_CHECK(message.has_value());
    if (!is_mute_) std::visit([this](const auto& each) { handle(each); }, *message);
    return true;
  }

  void disconnect() {
    if (socket_ && node_ >= 0) controller_.disconnect(node_);
    socket_.reset();
  }

  void handle(const node_protocol::NodeHello& hello) {
    node_ =
        controller_
            .join({.facts = hello.facts, .address = hello.address, .journal_id = hello.journal_id},
                  moment())
            .value();
    send(node_protocol::NodeWelcome{
        .lease = options_.lease, .heartbeat = options_.heartbeat, .sent_ns = hello.sent_ns});
  }
  void handle(const node_protocol::NodeReports& reports) {
    if (node_ < 0) return;
    auto orders =
        controller_.report(node_, reports.reports, reports.is_complete, durable_, moment());
    if (!orders.empty()) send(node_protocol::NodeOrders{.orders = std::move(orders)});
    settle();
  }
  void handle(const node_protocol::NodeHeartbeat& heartbeat) {
    if (node_ < 0) return;
    controller_.hear(node_, moment());
    send(node_protocol::HeartbeatAnswer{.sent_ns = heartbeat.sent_ns});
    send_orders();  // repeated: they may come any number of times
  }
  void handle(const node_protocol::LogPart& part) {
    log_ += part.data;
    has_whole_log_ |= part.is_last;
  }
  void handle(const node_protocol::CertificateRequest& /*request*/) {}
  void handle(const node_protocol::DeviceReadings& /*readings*/) {}
  void handle(const std::monostate& /*unknown*/) {}

  void settle() {
    for (;;) {
      control::Effects effects = controller_.take_effects();
      for (const store::Change& change : effects.changes)
        durable_ = change.revision;
      if (!effects.nodes.empty()) send_orders();
      if (!effects.needs_decision) return;
      const control::SchedulingView view =
          control::scheduling_view(controller_.tables(), os::monotonic_now(), 1000);
      const auto decision =
          sched::decide(view.snapshot, view.queue, *sched::find_scheduling_policy("regatta"));
      REGATTA_CHECK(decision.has_value());
      control::carry_out(*decision, controller_, moment());
    }
  }

  void send_orders() {
    if (node_ < 0 || !socket_) return;
    auto orders = controller_.orders_for(node_, durable_);
    if (!orders.empty()) send(node_protocol::NodeOrders{.orders = std::move(orders)});
  }
  void send(const node_protocol::ControllerMessage& message) {
    if (!socket_ || is_mute_) return;
    const std::string bytes = node_protocol::encode(message);
    static_cast<void>(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0);
  }

  Options options_;
  os::UniqueFd listener_;
  os::UniqueFd socket_;
  control::ClusterController controller_;
  control::Revision durable_ = 0;
  int node_ = -1;
  int connections_ = 0;
  bool is_mute_ = false;
  std::string log_;
  bool has_whole_log_ = false;
};

// The program regatta-node-agent on a folder of its own.
class AgentProcess {
 public:
  AgentProcess(std::string folder, std::string node)
      : folder_(std::move(folder)), node_(std::move(node)) {}
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;
  ~AgentProcess() { kill(); }

  void start(const std::vector<std::string>& more = {}) {
    start_with("unix:" + folder_ + "/controller", more);
  }
  void start_with(const std::string& controller, const std::vector<std::string>& more) {
    std::vector<std::string> command = {*os::executable_folder() + "/regatta-node-agent",
                                        "--controller",
                                        controller,
                                        "--state",
                                        folder_ + "/state",
                                        "--name",
                                        node_,
                                        "--devices",
                                        "8",
                                        "--device-type",
                                        "cpu",
                                        "--grace",
                                        "0.5"};
    command.insert(command.end(), more.begin(), more.end());
    os::SpawnOptions options;
    options.environment = {"REGATTA_LOG=error"};
    options.own_group = true;
    pid_ = os::spawn(command, options).value();
  }
  void kill() {
    if (pid_ < 0) return;
    static_cast<void>(os::send_signal(pid_, SIGKILL));
    static_cast<void>(os::wait_for(pid_));
    pid_ = -1;
  }
  // By SIGTERM.
  os::ExitState end() { return os::terminate(std::exchange(pid_, -1), Seconds{5}).value(); }
  pid_t pid() const { return pid_; }

 private:
  std::string folder_;
  std::string node_;
  pid_t pid_ = -1;
};

}  // namespace regatta::node_agent
