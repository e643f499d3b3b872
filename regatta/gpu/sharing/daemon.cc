#include "regatta/gpu/sharing/daemon.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/internal/daemon/daemon_loop.h"
#include "regatta/gpu/sharing/internal/daemon/listener.h"

namespace regatta::sharing {
namespace {

constexpr std::size_t kConnectionsMax = 3 * kClientsMax;
constexpr std::uint64_t kHoldNs = 100'000'000;

}  // namespace

bool DaemonLoop::watch(int fd, Source source, int number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(number);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

// Clients that an earlier daemon left: the dead are removed, the living watched, and their lease
// counters opened anew. Where that is not allowed they keep what they have and come back with their
// next call.
Status DaemonLoop::adopt_clients() {
  std::size_t adopted = 0;
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = tenant_store_.state().clients[client];
    if (record.live == 0) continue;
    if (!watch_process(client)) {
      on_client_exit(client);
      continue;
    }
    ++adopted;
    if (record.page_inode == 0) continue;
    auto page = open_memory_file_of(record.pid, REGATTA_CLIENT_PAGE_NAME, record.page_inode);
    if (page)
      static_cast<void>(tenant_store_.adopt_client_page(client, std::move(*page)).has_value());
    engines_.begin(tenant_store_, client);
  }
  // Cgroups of tenants that a reboot ended, or that an earlier daemon had no time to forget.
  REGATTA_TRY(lost, tenant_cgroups_.leave([&](const TenantCgroup& group) {
    return !tenant_store_.find_tenant(group.tenant);
  }));
  if (lost != 0) os::log_info(fmt::format("gpu daemon: forgets {} cgroups", lost));
  poll_cgroups();
  reap_unused_tenants();
  if (adopted != 0) os::log_info(fmt::format("gpu daemon: goes on with {} processes", adopted));
  return {};
}

// Waits for the end of the client's process; false when it has ended, or its pid is another's now.
bool DaemonLoop::watch_process(int client) {
  const ClientRecord& record = tenant_store_.state().clients[client];
  auto pidfd = os::open_pidfd(record.pid);
  if (!pidfd) return false;
  const auto process = read_process(record.pid);
  if (!process || process->id.start != record.start || process->is_ending) return false;
  pidfds_[client] = std::move(*pidfd);
  return watch(pidfds_[client].get(), Source::kProcess, client);
}

bool DaemonLoop::has_ended(int client) const {
  pollfd entry{pidfds_[client].get(), POLLIN, 0};
  return pidfds_[client] && ::poll(&entry, 1, 0) == 1;
}

// With it ends what it had of the device's time, whatever it was doing.
void DaemonLoop::on_client_exit(int client) {
  const int tenant = tenant_of(client);
  if (connection_of_[client] >= 0) close_connection(connection_of_[client]);
  if (event_connection_of_[client] >= 0) close_connection(event_connection_of_[client]);
  pidfds_[client].reset();
  engines_.end(tenant_store_, client, os::monotonic_ns());
  residency_manager_.forget_client(client);
  tenant_store_.remove_client(client);
  residency_manager_.mark_changed();
  reap_tenant(tenant);
  if (tenant_store_.state().tenants[tenant].live != 0) turn_manager_.look(tenant_store_, tenant);
  if (!tenant_store_.has_clients(tenant)) turn_manager_.set_tenants(tenant_store_);
}

// A tenant ends when neither a process nor a cgroup is left of it. One that keeps a cgroup keeps
// its debts of time, too.
void DaemonLoop::reap_tenant(int tenant) {
  if (tenant_store_.state().tenants[tenant].live == 0 || tenant_store_.has_clients(tenant)) return;
  if (tenant_cgroups_.has_group(tenant_store_.tenant_name(tenant))) return;
  turn_manager_.forget(tenant);
  engines_.forget(tenant);
  residency_manager_.forget_tenant(tenant);
  tenant_store_.remove_tenant(tenant);
}

void DaemonLoop::reap_unused_tenants() {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant)
    reap_tenant(tenant);
  turn_manager_.set_tenants(tenant_store_);
}

// Nothing tells of the end of a cgroup in every version, so they are looked at now and then.
void DaemonLoop::poll_cgroups() {
  last_poll_ = os::monotonic_now();
  if (tenant_cgroups_.drop_removed()) reap_unused_tenants();
}

// The ends that epoll has not told yet. Whether there were any.
bool DaemonLoop::reap_exited_clients(int tenant) {
  const std::vector<int> clients = tenant_store_.clients_of(tenant);
  bool any = false;
  for (const int client : clients) {
    if (!has_ended(client)) continue;
    on_client_exit(client);
    any = true;
  }
  return any;
}

void DaemonLoop::accept_all() {
  for (;;) {
    os::UniqueFd fd = os::accept_connection(listener_);
    if (!fd) return;
    const int number = fd.get();
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool is_known = ::getsockopt(number, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (!is_known || peer.pid <= 0 || connection_count_ >= kConnectionsMax) continue;
    if (!watch(number, Source::kConnection, number)) continue;
    const auto index = static_cast<std::size_t>(number);
    if (index >= connections_.size()) connections_.resize(index + 64);
    connections_[index] = {std::move(fd), peer};
    ++connection_count_;
  }
}

void DaemonLoop::close_connection(int number) {
  ClientConnection& connection = connections_[number];
  if (!connection.fd) return;
  const int client = connection.client;
  const bool is_event_connection = connection.is_event_connection;
  connection = ClientConnection();
  --connection_count_;
  if (client < 0) return;
  (is_event_connection ? event_connection_of_ : connection_of_)[client] = -1;
  if (is_event_connection) turn_manager_.set_event_connection(tenant_store_, client, false);
}

void DaemonLoop::reply(ClientConnection& connection, const ClientReply& answer,
                       std::array<int, 2> fds) {
  // One that does not read its answers is not waited for.
  if (!send_message(connection.fd.get(), as_bytes(answer), fds))
    close_connection(connection.fd.get());
}

void DaemonLoop::read_message(int number) {
  ClientConnection& connection = connections_[number];
  if (!connection.fd) return;
  auto message = receive_message(number, kLongestRequest);
  if (!message) {
    if (message.error().code != Code::kTimeout) close_connection(number);
    return;
  }
  if (message->bytes.empty()) return close_connection(number);
  // A connection is of the process that made it, not of those that inherited it.
  if (message->sender != connection.peer.pid) {
    return reply(connection, failed({Code::kInvalidInput,
                                     "this connection is another process's; "
                                     "connect anew"}));
  }
  if (message->bytes.front() == '{') return answer_operator(connection, *message);
  ClientRequest request;
  if (message->bytes.size() != sizeof request) return close_connection(number);
  std::memcpy(&request, message->bytes.data(), sizeof request);
  if (request.type == RequestType::kHandshake)
    return answer_handshake(connection, request, *message);
  if (request.type == RequestType::kFindTenant) return answer_find_tenant(connection);
  if (request.type == RequestType::kLease || request.type == RequestType::kLeaseSwappable ||
      request.type == RequestType::kOpenSession || request.type == RequestType::kPin)
    return answer_client(connection, request);
  if (request.type == RequestType::kResidencyChanged && connection.client >= 0)
    return residency_manager_.mark_changed();
  if (request.type == RequestType::kEventConnection)
    return answer_event_connection(connection, request);
  if (request.type == RequestType::kNotify && connection.is_event_connection)
    return turn_manager_.look(tenant_store_, tenant_of(connection.client));
  close_connection(number);
}

Status DaemonLoop::run(const std::atomic<bool>& stop) {
  if (!watch(listener_.get(), Source::kListener, 0) ||
      !watch(turn_manager_.timer(), Source::kTimer, 0) ||
      !watch(engines_.timer(), Source::kEngines, 0) ||
      !watch(residency_manager_.timer(), Source::kResidencyEvents, 0))
    return os::errno_error("cannot wait for clients");
  std::array<epoll_event, 64> events{};
  while (!stop) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 500);
    if (count < 0 && errno != EINTR) return os::errno_error("cannot wait for clients");
    if (os::monotonic_now() - last_poll_ >= Seconds{0.5}) poll_cgroups();
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<int>(events[i].data.u64 & 0xffffffffU);
      switch (static_cast<Source>(events[i].data.u64 >> 32)) {
        case Source::kListener:
          accept_all();
          break;
        case Source::kConnection:
          read_message(number);
          break;
        case Source::kProcess:
          if (has_ended(number)) on_client_exit(number);
          break;
        case Source::kTimer:
          turn_manager_.acknowledge_timer();
          break;
        case Source::kEngines:
          engines_.acknowledge_timer();
          engines_.step(tenant_store_, os::monotonic_ns());
          break;
        case Source::kResidencyEvents:
          residency_manager_.acknowledge_timer();
          break;
      }
    }
    residency_manager_.step(tenant_store_, turn_manager_);
    turn_manager_.step(tenant_store_);
  }
  return {};
}

Status serve(const DaemonOptions& options, const std::atomic<bool>& stop) {
  if (options.gpus.size() > kDevicesMax) {
    return Error{
        Code::kInvalidInput,
        fmt::format("--gpu: is given {} times, and a daemon has {} GPUs at most; leave the "
                    "others out",
                    options.gpus.size(), kDevicesMax)};
  }
  if (const auto allowed = os::raise_descriptor_limit(4 * kClientsMax); !allowed)
    os::log_warning("gpu daemon: " + allowed.error().message);  // fewer clients than it could have
  REGATTA_TRY(state, MappedState::open(options.state));
  std::error_code error;  // a process of a tenant may be in another folder
  const std::string socket = std::filesystem::absolute(options.socket, error).string();
  if (error) return os::errno_error(options.socket, error.value());
  REGATTA_TRY(tenant_store,
              TenantStore::open(std::move(state), socket, options.gpus, options.opens_when_lost));
  tenant_store.set_host_memory(options.host_memory);
  REGATTA_TRY(tenant_cgroups, TenantCgroups::open(options.state));
  if (options.policy) REGATTA_TRY_DO(tenant_store.set_policy(*options.policy));
  bool has_clients = false;
  for (const ClientRecord& client : tenant_store.state().clients)
    has_clients = has_clients || client.live != 0;
  os::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return os::errno_error("cannot wait for clients");
  REGATTA_TRY(listener, open_listener(socket));
  // Those who were told by the daemon before that it is their turn come back within this time.
  REGATTA_TRY(turn_manager,
              TurnManager::create(tenant_store, options.turns, has_clients ? kHoldNs : 0));
  REGATTA_TRY(engines,
              EngineShares::create(tenant_store, options.engine_rates, options.engine_sessions));
  REGATTA_TRY(residency_manager, ResidencyManager::create(tenant_store, options.residency));
  DaemonLoop daemon(std::move(tenant_store), std::move(tenant_cgroups), std::move(turn_manager),
                    std::move(engines), std::move(residency_manager), std::move(epoll),
                    std::move(listener));
  REGATTA_TRY_DO(daemon.adopt_clients());
  const Status status = daemon.run(stop);
  ::unlink(socket.c_str());
  return status;
}

}  // namespace regatta::sharing
