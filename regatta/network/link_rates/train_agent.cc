#include "regatta/network/link_rates/train_agent.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/link_rates/internal/train.h"
#include "regatta/network/link_rates/internal/train_messages.h"
#include "regatta/network/link_rates/internal/train_socket.h"
#include "regatta/network/link_rates/rate_plan.h"
#include "regatta/network/link_rates/rate_session.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/matrix.h"
#include "regatta/network/probe/prober.h"

namespace regatta::link_rates {
namespace {

constexpr std::size_t kOrdersMost = 64;   // that wait
constexpr std::size_t kAwaitedMost = 16;  // trains
constexpr Seconds kLooksAtStop{0.1};
constexpr Seconds kFirstPacket{0.5};  // until none is expected any more
constexpr Seconds kNextPacket{0.05};
constexpr Seconds kTracing{1};    // until the sockets of traces are closed
constexpr int kTracePackets = 2;  // to each router

}  // namespace

struct TrainAgent::Impl {
  struct Awaited {
    TrainOrder order;
    std::vector<TrainArrival> arrivals;
    Seconds gives_up;
    bool has_last = false;
  };

  std::function<void(const std::string&)> send;
  std::optional<os::Netlink> netlink;
  os::UniqueFd wake;
  std::map<std::uint32_t, TrainReceiver> receivers;  // by address
  std::map<std::uint32_t, std::string> nics;         // names by address: their bytes are reported
  std::map<std::uint64_t, Awaited> awaited;          // by train
  Seconds load_due;
  std::vector<PathOrder> paths_to_trace;
  std::atomic<std::size_t> untold = 0;  // paths that the tracer has not reported yet
  std::optional<probe::TraceAgent> tracer;
  Seconds tracer_ends;

  Mutex mutex;
  std::vector<AgentOrder> orders REGATTA_GUARDED_BY(mutex);

  void report(const AgentReport& one) const { send(report_line(one)); }
  std::vector<AgentOrder> take_orders();
  void carry_out(const AgentOrder& order);
  void rouse() const;
  void trace(const std::vector<PathOrder>& orders_of_paths);
  void trace_waiting();
  void expect(const TrainOrder& order);
  void send_out(const TrainOrder& order) const;
  void receive();
  void finish_trains();
  void report_load();
  Seconds next_due(Seconds now) const;
};

void TrainAgent::Impl::rouse() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake.get(), &one, sizeof one) == sizeof one);
}

std::vector<AgentOrder> TrainAgent::Impl::take_orders() {
  std::uint64_t count = 0;
  static_cast<void>(::read(wake.get(), &count, sizeof count) == sizeof count);
  const MutexLock lock(mutex);
  return std::exchange(orders, {});
}

void TrainAgent::Impl::carry_out(const AgentOrder& order) {
  if (const auto* const load = std::get_if<LoadOrder>(&order)) {
    const auto names = os::interfaces_by_address();
    nics.clear();
    for (const std::uint32_t address : load->addresses)
      if (const auto name = names.find(address); name != names.end()) nics.insert(*name);
    return;
  }
  if (const auto* const path = std::get_if<PathOrder>(&order)) {
    if (paths_to_trace.size() < kOrdersMost) paths_to_trace.push_back(*path);
    return;
  }
  const auto& train = std::get<TrainOrder>(order);
  if (train.is_sender)
    send_out(train);
  else
    expect(train);
}

// The flows of the orders are the probes of a matrix of their own.
void TrainAgent::Impl::trace(const std::vector<PathOrder>& orders_of_paths) {
  probe::Matrix matrix;
  probe::ServerPart part;
  for (const PathOrder& order : orders_of_paths) {
    part.sends.push_back(static_cast<std::uint32_t>(matrix.probes.size()));
    matrix.probes.push_back({.from = {}, .to = {}, .flow = order.flow});
  }
  auto opened = probe::TraceAgent::open(
      matrix, part,
      {.window = Seconds{0.03}, .send = [this, orders_of_paths](const std::string& line) {
         const auto evidence =
             probe::parse_evidence(std::string_view(line).substr(0, line.size() - 1));
         if (!evidence) return;
         const auto* const found = std::get_if<probe::Trace>(&*evidence);
         if (found == nullptr || found->path / 2 >= orders_of_paths.size()) return;
         PathTraced traced{.number = orders_of_paths[found->path / 2].number, .routers = {}};
         for (const probe::TraceHop& hop : found->hops)
           traced.routers.push_back(hop.router);
         report(traced);
         if (--untold == 0) rouse();
       }});
  if (!opened) return;  // it counts as lost
  untold = orders_of_paths.size();
  tracer.emplace(std::move(*opened));
  tracer_ends = os::monotonic_now() + kTracing;
  for (std::size_t i = 0; i < orders_of_paths.size(); ++i) {
    std::string line =
        probe::order_line(probe::TraceOrder{.path = static_cast<std::uint32_t>(2 * i),
                                            .hops = orders_of_paths[i].routers,
                                            .tries = kTracePackets});
    line.pop_back();
    static_cast<void>(tracer->order(line).has_value());
  }
}

void TrainAgent::Impl::trace_waiting() {
  // Answers that come later are given up.
  if (tracer && (untold == 0 || os::monotonic_now() > tracer_ends)) tracer.reset();
  if (tracer || paths_to_trace.empty()) return;
  trace(std::exchange(paths_to_trace, {}));
}

void TrainAgent::Impl::expect(const TrainOrder& order) {
  if (awaited.size() >= kAwaitedMost) return;  // it counts as lost
  if (!receivers.contains(order.flow.to)) {
    auto opened = TrainReceiver::open(order.flow.to, order.flow.to_port);
    if (!opened) return report(TrainFailed{order.train, opened.error().message});
    receivers.emplace(order.flow.to, std::move(*opened));
  }
  awaited[order.train] = {.order = order,
                          .arrivals = {},
                          .gives_up = os::monotonic_now() + kFirstPacket,
                          .has_last = false};
  report(TrainAwaited{order.train});
}

void TrainAgent::Impl::send_out(const TrainOrder& order) const {
  const auto offered = send_train(order.train, order.flow, order.shape);
  if (offered)
    report(TrainSent{order.train, *offered});
  else
    report(TrainFailed{order.train, offered.error().message});
}

void TrainAgent::Impl::receive() {
  for (auto& [address, receiver] : receivers)
    for (const ReceivedTrainPacket& packet : receiver.receive()) {
      const auto found = awaited.find(packet.header.train);
      if (found == awaited.end()) continue;
      Awaited& train = found->second;
      const TrainOrder& order = train.order;
      const bool is_one = packet.from == order.flow.from && address == order.flow.to &&
                          packet.header.index < static_cast<std::uint32_t>(order.shape.packets);
      // Copies would be counted twice.
      if (!is_one || train.arrivals.size() >= static_cast<std::size_t>(order.shape.packets))
        continue;
      const auto index = static_cast<int>(packet.header.index);
      train.arrivals.push_back({index, packet.at_ns});
      train.gives_up = os::monotonic_now() + kNextPacket;
      train.has_last = train.has_last || index == order.shape.packets - 1;
    }
}

void TrainAgent::Impl::finish_trains() {
  const Seconds now = os::monotonic_now();
  for (auto at = awaited.begin(); at != awaited.end();) {
    Awaited& train = at->second;
    if (!train.has_last && now < train.gives_up) {
      ++at;
      continue;
    }
    const auto arrived = static_cast<int>(train.arrivals.size());
    const auto rate = arrival_rate(train.order.shape, std::move(train.arrivals));
    report(TrainReceived{at->first, arrived, rate.value_or(BytesPerSecond{})});
    at = awaited.erase(at);
  }
}

void TrainAgent::Impl::report_load() {
  const Seconds now = os::monotonic_now();
  if (nics.empty() || now < load_due) return;
  load_due = now + kAgentPeriod;
  LoadReport report_of_all;
  for (const auto& [address, name] : nics)
    if (const auto interface = netlink->interface(name))
      report_of_all.nics.push_back({address, static_cast<std::uint64_t>(interface->sent.value),
                                    static_cast<std::uint64_t>(interface->received.value)});
  if (!report_of_all.nics.empty()) report(report_of_all);
}

Seconds TrainAgent::Impl::next_due(Seconds now) const {
  Seconds due = now + kLooksAtStop;
  if (!nics.empty()) due = std::min(due, load_due);
  for (const auto& [number, train] : awaited)
    due = std::min(due, train.gives_up);
  return due;
}

TrainAgent::TrainAgent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TrainAgent::~TrainAgent() = default;
TrainAgent::TrainAgent(TrainAgent&&) noexcept = default;
TrainAgent& TrainAgent::operator=(TrainAgent&&) noexcept = default;

Result<TrainAgent> TrainAgent::open(std::function<void(const std::string&)> send) {
  auto impl = std::make_unique<Impl>();
  impl->send = std::move(send);
  REGATTA_TRY(netlink, os::Netlink::open());
  impl->netlink.emplace(std::move(netlink));
  impl->wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!impl->wake) return os::errno_error("agent of trains");
  return TrainAgent(std::move(impl));
}

Status TrainAgent::order(std::string_view line) {
  REGATTA_TRY(order, parse_agent_order(line));
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->orders.size() < kOrdersMost) impl_->orders.push_back(std::move(order));
  }
  impl_->rouse();
  return {};
}

Status TrainAgent::run(const std::atomic<bool>& stop) {
  Impl& impl = *impl_;
  while (!stop) {
    std::vector<pollfd> wait{pollfd{impl.wake.get(), POLLIN, 0}};
    for (const auto& [address, receiver] : impl.receivers)
      wait.push_back({receiver.fd(), POLLIN, 0});
    const Seconds now = os::monotonic_now();
    const double left_ms = std::max(0.0, (impl.next_due(now) - now).value * 1e3);
    if (::poll(wait.data(), wait.size(), static_cast<int>(left_ms) + 1) < 0 && errno != EINTR)
      return os::errno_error("agent of trains");
    for (const AgentOrder& order : impl.take_orders())
      impl.carry_out(order);
    impl.trace_waiting();
    impl.receive();
    impl.finish_trains();
    impl.report_load();
  }
  return {};
}

}  // namespace regatta::link_rates
