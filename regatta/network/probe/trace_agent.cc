#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/flow_counters.h"
#include "regatta/network/probe/internal/tracer.h"
#include "regatta/network/probe/prober.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kOrdersMost = 256;     // that wait
constexpr std::size_t kTracedTogether = 16;  // paths
constexpr Seconds kSameLook{3};              // since the last count of connections, to compare with

std::uint32_t ipv4_of(const Endpoint& endpoint) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8U | endpoint.address[i];
  return value;
}

}  // namespace

struct TraceAgent::Impl {
  TraceAgentOptions options;
  std::map<std::uint32_t, fabric::FiveTuple> flows;  // by path: those that begin here
  std::set<std::uint32_t> addresses;                 // of its NICs
  std::optional<os::CarrierWatch> carriers;
  std::optional<os::AddressWatch> address_changes;
  std::optional<FlowCounters> counters;
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> counted;  // by cookie
  Seconds counted_at{-1e9};

  Mutex mutex;
  std::vector<Order> orders REGATTA_GUARDED_BY(mutex);
  os::UniqueFd wake;
  std::atomic<bool> stop = false;
  std::thread thread;

  ~Impl() { end(); }
  void end() {
    stop = true;
    rouse();
    if (thread.joinable()) thread.join();
  }
  void rouse() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake.get(), &one, sizeof one) == sizeof one);
  }
  diag::Window window() const {
    return static_cast<diag::Window>(std::floor(os::system_now() / options.window));
  }
  void send(const Evidence& evidence) const { options.send(evidence_line(evidence)); }

  void work();
  std::vector<Order> take_orders();
  void carry_out(const std::vector<Order>& all);
  void trace_paths(const std::vector<TraceOrder>& paths);
  void count_flows();
  void tell_carriers(const std::optional<std::string>& only = {});
  void tell_addresses() const;
};

void TraceAgent::Impl::work() {
  while (!stop) {
    std::array<pollfd, 3> wait{pollfd{wake.get(), POLLIN, 0},
                               pollfd{carriers ? carriers->fd() : -1, POLLIN, 0},
                               pollfd{address_changes ? address_changes->fd() : -1, POLLIN, 0}};
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
    if (stop) return;
    if (wait[2].revents != 0 && address_changes->consume_change()) tell_addresses();
    if (wait[0].revents != 0) carry_out(take_orders());
    while (wait[1].revents != 0 && !stop) {
      auto event = carriers->next(Seconds{0});
      if (!event || !*event) break;
      tell_carriers((*event)->interface);
    }
  }
}

std::vector<Order> TraceAgent::Impl::take_orders() {
  std::uint64_t count = 0;
  static_cast<void>(::read(wake.get(), &count, sizeof count) == sizeof count);
  const MutexLock lock(mutex);
  return std::exchange(orders, {});
}

void TraceAgent::Impl::carry_out(const std::vector<Order>& all) {
  std::vector<TraceOrder> paths;
  bool has_flows = false;
  for (const Order& order : all) {
    if (const auto* path = std::get_if<TraceOrder>(&order)) paths.push_back(*path);
    if (std::holds_alternative<FlowsOrder>(order) && !std::exchange(has_flows, true)) count_flows();
    if (std::holds_alternative<CarriersOrder>(order)) {
      tell_carriers();
      tell_addresses();
    }
  }
  trace_paths(paths);
}

void TraceAgent::Impl::trace_paths(const std::vector<TraceOrder>& paths) {
  for (std::size_t from = 0; from < paths.size() && !stop; from += kTracedTogether) {
    const std::size_t until = std::min(paths.size(), from + kTracedTogether);
    std::vector<Traced> together;
    for (std::size_t i = from; i < until; ++i)
      together.push_back(
          {.flow = flows.at(paths[i].path), .hops = paths[i].hops, .tries = paths[i].tries});
    const diag::Window at = window();
    const auto hops = trace(together, stop);
    for (std::size_t i = 0; i < hops.size(); ++i)
      if (hops[i]) send(Trace{.window = at, .path = paths[from + i].path, .hops = *hops[i]});
  }
}

// Those that retransmitted, and those that sent most, since the last time; nothing the first time.
void TraceAgent::Impl::count_flows() {
  if (!counters) {
    auto opened = FlowCounters::open({.look_for_new = Seconds{0}});
    if (!opened) return;
    counters = std::move(*opened);
  }
  const auto read = counters->read();
  if (!read) return;
  const bool is_fresh = os::monotonic_now() - counted_at <= kSameLook;
  FlowCounts counts{.window = window(), .flows = {}};
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> now;
  for (const ConnectionCounters& one : **read) {
    if (one.connection.is_ipv6) continue;
    const std::uint32_t from = ipv4_of(one.connection.local);
    if (!addresses.contains(from)) continue;
    now[one.cookie] = {one.sent_segments, one.retransmits};
    const auto before = counted.find(one.cookie);
    if (before == counted.end()) continue;
    const auto segments = static_cast<std::uint32_t>(one.sent_segments - before->second.first);
    const auto again = static_cast<std::uint32_t>(one.retransmits - before->second.second);
    if (segments == 0) continue;
    counts.flows.push_back({.flow = {from, ipv4_of(one.connection.remote),
                                     one.connection.local.port, one.connection.remote.port, kTcp},
                            .segments = segments,
                            .again = std::min(again, segments)});
  }
  counted = std::move(now);
  counted_at = os::monotonic_now();
  if (!is_fresh) return;
  // A connection that gets nothing through sends little.
  std::ranges::sort(counts.flows, std::ranges::greater(),
                    [](const FlowCount& one) { return std::pair(one.again > 0, one.segments); });
  if (counts.flows.size() > kFlowsMost) counts.flows.resize(kFlowsMost);
  send(counts);
}

void TraceAgent::Impl::tell_carriers(const std::optional<std::string>& only) {
  if (!carriers) return;
  const auto names = os::interfaces_by_address();
  for (const std::uint32_t address : addresses) {
    const auto name = names.find(address);
    if (name == names.end() || (only && *only != name->second)) continue;
    for (const os::CarrierEvent& one : carriers->state())
      if (one.interface == name->second) send(NicCarrier{.address = address, .up = one.up});
  }
}

void TraceAgent::Impl::tell_addresses() const {
  std::map<std::string, std::vector<std::uint32_t>> by_interface;
  int count = 0;
  for (const auto& [address, name] : os::interfaces_by_address()) {
    const bool is_loopback = address >> 24U == IN_LOOPBACKNET;
    if (!is_loopback && ++count <= kAddressesMost) by_interface[name].push_back(address);
  }
  InterfaceAddresses all;
  for (auto& [name, its] : by_interface)
    all.interfaces.push_back(std::move(its));
  send(all);
}

TraceAgent::TraceAgent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceAgent::~TraceAgent() = default;
TraceAgent::TraceAgent(TraceAgent&&) noexcept = default;
TraceAgent& TraceAgent::operator=(TraceAgent&&) noexcept = default;

Result<TraceAgent> TraceAgent::open(const Matrix& matrix, const ServerPart& part,
                                    TraceAgentOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  for (const std::uint32_t probe : part.sends)
    impl->flows[2 * probe] = matrix.probes[probe].flow;
  for (const std::uint32_t probe : part.answers)
    impl->flows[2 * probe + 1] = answer_to(matrix.probes[probe].flow);
  impl->addresses = own_addresses(matrix, part);
  impl->wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!impl->wake) return os::errno_error("scout of a prober");
  // Without the right to hear of carriers or addresses it does without.
  if (auto carriers = os::CarrierWatch::open()) impl->carriers = std::move(*carriers);
  if (auto watch = os::AddressWatch::open()) impl->address_changes = std::move(*watch);
  impl->thread = os::signal_masked_thread([raw = impl.get()] { raw->work(); });
  return TraceAgent(std::move(impl));
}

Status TraceAgent::order(std::string_view line) {
  REGATTA_TRY(order, parse_order(line));
  const auto* const path = std::get_if<TraceOrder>(&order);
  if (path != nullptr && !impl_->flows.contains(path->path))
    return Error{Code::kInvalidInput, "the collector asks for a path that does not begin here"};
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->orders.size() < kOrdersMost) impl_->orders.push_back(order);
  }
  impl_->rouse();
  return {};
}

void TraceAgent::stop() {
  impl_->end();
}

}  // namespace regatta::probe
