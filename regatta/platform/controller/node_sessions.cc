#include "regatta/platform/controller/node_sessions.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/node_protocol/controller_message.h"

namespace regatta::controller {
namespace {

using namespace node_protocol;  // NOLINT(google-build-using-namespace): all messages are named here

constexpr Seconds kHelloLimit{10};
constexpr Seconds kOrdersAgain{10};  // orders that are not answered are repeated
constexpr Seconds kHeartbeat{1};
constexpr std::string_view kReplicaLeases = "replica_leases";

}  // namespace

struct NodeSessions::Impl {
  struct Session {
    std::string node;
    std::unique_ptr<http::WebSocket> socket;
    int index = -1;            // of the node's tables; -1 before its hello
    std::int64_t sent_ns = 0;  // of its latest message that was answered
    std::vector<std::string> capabilities;
  };
  struct LogStream {
    std::uint64_t session = 0;
    LogHandler handler;
  };

  Impl(http::EventLoop& event_loop, ControllerRuntime& given, SignNode signer)
      : loop(event_loop), runtime(given), sign(std::move(signer)) {}

  // Work for later that ends with this object.
  template <typename Work>
  auto guarded(Work work) {
    return [alive = std::weak_ptr(life), work = std::move(work)]() mutable {
      if (!alive.expired()) work();
    };
  }

  bool send(std::uint64_t number, const ControllerMessage& message) {
    const auto found = sessions.find(number);
    return found != sessions.end() && found->second.socket->send(encode(message));
  }

  // A socket may not be destroyed in its own handler.
  void end(std::uint64_t number) {
    loop.post(guarded([this, number] { remove(number); }));
  }

  void remove(std::uint64_t number) {
    const auto found = sessions.find(number);
    if (found == sessions.end()) return;
    const auto current = by_node.find(found->second.node);
    if (current != by_node.end() && current->second == number) {
      by_node.erase(current);
      if (found->second.index >= 0)
        runtime.change([index = found->second.index](auto& core, const control::Moment&) {
          core.disconnect(index);
          return 0;
        });
      if (found->second.index >= 0 && readings_handler)
        readings_handler(found->second.index, nullptr);
    }
    const std::unique_ptr<http::WebSocket> socket = std::move(found->second.socket);
    sessions.erase(found);
    std::vector<LogHandler> ended;
    for (auto log = logs.begin(); log != logs.end();) {
      if (log->second.session == number) {
        ended.push_back(std::move(log->second.handler));
        log = logs.erase(log);
      } else {
        ++log;
      }
    }
    for (const LogHandler& handler : ended)
      handler({.is_last = true, .error = "the connection to the node ended; try again"});
  }

  void receive(std::uint64_t number, std::string_view bytes) {
    const auto message = decode_node_message(bytes);
    if (!message) {
      send(number, NodeRefusal{.reason = message.error().message});
      return end(number);
    }
    const auto found = sessions.find(number);
    if (found == sessions.end()) return;
    Session& session = found->second;
    if (const auto* hello = std::get_if<NodeHello>(&*message)) return welcome(number, *hello);
    if (session.index < 0) {
      send(number, NodeRefusal{.reason = "the first message is a hello"});
      return end(number);
    }
    if (const auto* heartbeat = std::get_if<NodeHeartbeat>(&*message)) {
      // An answer would prolong leases that another controller does not count any more.
      if (!runtime.is_leading()) return;
      runtime.hear(session.index);
      hear_failures(session.index, heartbeat->failed_devices);
      session.sent_ns = heartbeat->sent_ns;
      send(number, HeartbeatAnswer{.sent_ns = heartbeat->sent_ns});
    } else if (const auto* reports = std::get_if<NodeReports>(&*message)) {
      take_reports(number, session.index, *reports);
    } else if (const auto* readings = std::get_if<DeviceReadings>(&*message)) {
      if (readings_handler) readings_handler(session.index, readings);
    } else if (const auto* part = std::get_if<LogPart>(&*message)) {
      pass_log(*part);
    } else if (const auto* request = std::get_if<CertificateRequest>(&*message)) {
      const auto certificate = sign(session.node, request->request);
      if (certificate) send(number, RenewedCertificate{.certificate = *certificate});
    }
  }

  void welcome(std::uint64_t number, const NodeHello& hello) {
    Session& session = sessions.at(number);
    Result<int> index = Error{Code::kInvalidInput, ""};
    if (!runtime.is_leading()) {
      index = Error{Code::kUnavailable, "another controller may lead now; connect again"};
    } else if (hello.facts.name != session.node) {
      index = Error{Code::kInvalidInput,
                    fmt::format("node {}: its certificate is for node {}; enrol it again",
                                hello.facts.name, session.node)};
    } else {
      const auto is_able = [&hello](std::string_view word) {
        return std::find(hello.capabilities.begin(), hello.capabilities.end(), word) !=
               hello.capabilities.end();
      };
      const control::NodeIdentity identity{.facts = hello.facts,
                                           .address = hello.address,
                                           .journal_id = hello.journal_id,
                                           .enforces_slices = is_able(control::kSlicesCapability),
                                           .has_replica_leases = is_able(kReplicaLeases)};
      index = runtime.change(
          [&](auto& core, const control::Moment& moment) { return core.join(identity, moment); });
    }
    if (!index) {
      send(number, NodeRefusal{.reason = index.error().message});
      return end(number);
    }
    const auto [current, is_new] = by_node.try_emplace(session.node, number);
    if (!is_new && current->second != number) end(std::exchange(current->second, number));
    session.index = *index;
    session.capabilities = hello.capabilities;
    session.sent_ns = hello.sent_ns;
    send(number, NodeWelcome{.lease = runtime.options().control.lease,
                             .heartbeat = kHeartbeat,
                             .sent_ns = hello.sent_ns});
  }

  void hear_failures(int index, std::uint32_t devices) {
    const sched::ClusterNode& facts = at(runtime.tables().nodes, index).facts;
    devices &=
        static_cast<std::uint32_t>((std::uint64_t{1} << static_cast<unsigned>(facts.devices)) - 1);
    if (facts.failed_devices == devices) return;
    runtime.change([&](auto& core, const control::Moment&) {
      core.set_failed_devices(index, devices);
      return 0;
    });
  }

  void take_reports(std::uint64_t number, int index, const NodeReports& reports) {
    std::vector<control::ReplicaOrder> answers = runtime.change([&](auto& core,
                                                                    const control::Moment& moment) {
      return core.report(index, reports.reports, reports.is_complete, runtime.durable(), moment);
    });
    if (!answers.empty()) send(number, NodeOrders{.orders = std::move(answers)});
    if (reports.is_complete) runtime.send_orders(index);
  }

  void pass_log(const LogPart& part) {
    const auto log = logs.find(part.request);
    if (log == logs.end()) return;
    if (!part.is_last) return log->second.handler(part);
    const LogHandler handler = std::move(log->second.handler);
    logs.erase(log);
    handler(part);
  }

  void repeat_orders() {
    loop.after(kOrdersAgain, guarded([this] { repeat_orders(); }));
    for (const auto& [number, session] : sessions)
      if (session.index >= 0 && !at(runtime.tables().nodes, session.index).replicas.empty())
        runtime.send_orders(session.index);
  }

  http::EventLoop& loop;
  ControllerRuntime& runtime;
  SignNode sign;
  std::unordered_map<std::uint64_t, Session> sessions;  // looked up with each message
  std::map<std::string, std::uint64_t> by_node;
  std::map<std::int64_t, LogStream> logs;
  ReadingsHandler readings_handler;
  std::uint64_t last_session = 0;
  std::int64_t last_log = 0;
  std::shared_ptr<int> life = std::make_shared<int>(0);
};

NodeSessions::NodeSessions(http::EventLoop& loop, ControllerRuntime& runtime, SignNode sign)
    : impl_(std::make_unique<Impl>(loop, runtime, std::move(sign))) {
  runtime.set_order_sender(
      [impl = impl_.get(), alive = std::weak_ptr(impl_->life)](
          const std::string& node, std::span<const control::ReplicaOrder> orders) {
        if (alive.expired()) return;
        const auto session = impl->by_node.find(node);
        if (session != impl->by_node.end())
          impl->send(session->second, NodeOrders{.orders = {orders.begin(), orders.end()}});
      });
  impl_->loop.after(kOrdersAgain, impl_->guarded([impl = impl_.get()] { impl->repeat_orders(); }));
}

NodeSessions::~NodeSessions() {
  impl_->life.reset();
}

void NodeSessions::add(const std::string& node, std::unique_ptr<http::WebSocket> socket) {
  const std::uint64_t number = ++impl_->last_session;
  Impl* impl = impl_.get();
  http::WebSocket& opened = *socket;
  impl->sessions[number] = {.node = node, .socket = std::move(socket)};
  opened.on_closed([impl, number] { impl->end(number); });
  opened.on_message([impl, number](std::string_view bytes) { impl->receive(number, bytes); });
  impl->loop.after(kHelloLimit, impl->guarded([impl, number] {
    const auto found = impl->sessions.find(number);
    if (found != impl->sessions.end() && found->second.index < 0) impl->remove(number);
  }));
}

std::size_t NodeSessions::count() const {
  return impl_->by_node.size();
}

void NodeSessions::on_readings(ReadingsHandler handler) {
  impl_->readings_handler = std::move(handler);
}

Result<std::int64_t> NodeSessions::request_log(const std::string& node,
                                               const control::ReplicaKey& key, int rank,
                                               std::int64_t offset, std::int64_t length,
                                               bool is_following, LogHandler handler) {
  const auto session = impl_->by_node.find(node);
  if (session == impl_->by_node.end())
    return Error{Code::kUnavailable,
                 fmt::format("node {}: it is not connected; try again later", node)};
  const std::int64_t number = ++impl_->last_log;
  impl_->logs[number] = {.session = session->second, .handler = std::move(handler)};
  impl_->send(session->second, LogRequest{.request = number,
                                          .key = key,
                                          .rank = rank,
                                          .offset = offset,
                                          .length = length,
                                          .is_following = is_following});
  return number;
}

Status NodeSessions::request_metrics(const std::string& node, const control::ReplicaKey& key,
                                     LogHandler handler) {
  const auto session = impl_->by_node.find(node);
  if (session == impl_->by_node.end())
    return Error{Code::kUnavailable,
                 fmt::format("node {}: it is not connected; try again later", node)};
  const std::vector<std::string>& able = impl_->sessions.at(session->second).capabilities;
  if (std::find(able.begin(), able.end(), "metrics") == able.end())
    return Error{Code::kUnavailable,
                 fmt::format("node {}: its agent knows no metrics; upgrade it", node)};
  const std::int64_t number = ++impl_->last_log;
  impl_->logs[number] = {.session = session->second, .handler = std::move(handler)};
  impl_->send(session->second, LogRequest{.request = number, .key = key, .is_of_metrics = true});
  return {};
}

void NodeSessions::extend_leases() {
  if (!impl_->runtime.is_leading()) return;
  const Seconds lease = impl_->runtime.options().control.restart_lease;
  for (const auto& [number, session] : impl_->sessions)
    if (session.index >= 0)
      impl_->send(number, LeaseExtension{.sent_ns = session.sent_ns, .lease = lease});
}

void NodeSessions::cancel_log(std::int64_t request) {
  const auto log = impl_->logs.find(request);
  if (log == impl_->logs.end()) return;
  impl_->send(log->second.session, LogRequest{.request = request, .is_cancelled = true});
  impl_->logs.erase(log);
}

}  // namespace regatta::controller
