#include "regatta/gpu/sharing/internal/daemon/daemon_loop.h"

#include <cstring>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/internal/daemon/control_requests.h"

namespace regatta::sharing {
namespace {

// Processes of a million descriptors each hold a daemon that starts no longer; whose page was not
// looked for keeps what it has until its next request.
constexpr Seconds kLookForPages{0.5};
constexpr int kAcceptedInOneGo = 64;

}  // namespace

// The client of an earlier daemon, if its process lives.
void DaemonLoop::adopt_client(int client, Seconds look_until) {
  const ClientRecord& record = parts_.tenant_store.state().clients[client];
  auto pidfd = os::open_pidfd(record.pid);
  const auto process = read_process(record.pid);
  const bool is_alive = pidfd && process && process->id.start == record.start && !has_ended(*pidfd);
  if (!is_alive || !watch_process(client, std::move(*pidfd))) return on_client_exit(client);
  if (record.page_inode == 0 || os::monotonic_now() > look_until) return;
  // First, so that a program that comes meanwhile is not taken for the one with the page.
  AddressSpace program = AddressSpace::of(record.pid);
  auto page = open_client_page_of(*process, record.page_inode);
  if (page) {
    static_cast<void>(parts_.tenant_store.adopt_client_page(client, std::move(*page)).has_value());
  } else if (page.error().code == Code::kNotFound) {
    program = AddressSpace::ended();
  }
  processes_.set_program(client, std::move(program));
}

Status DaemonLoop::adopt_clients() {
  std::size_t adopted = 0;
  const Seconds look_until = os::monotonic_now() + kLookForPages;
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = parts_.tenant_store.state().clients[client];
    if (record.live == 0) continue;
    adopt_client(client, look_until);
    if (record.live == 0) continue;
    ++adopted;
    parts_.engines.begin(parts_.tenant_store, client);
  }
  // Removes cgroups of tenants that ended with a reboot, or that an earlier daemon had no time to
  // forget.
  REGATTA_TRY(lost, parts_.tenant_cgroups.leave([&](const TenantCgroup& group) {
    return !parts_.tenant_store.tenants().find(group.tenant);
  }));
  if (lost != 0) os::log_info(fmt::format("gpu daemon: forgets {} cgroups", lost));
  poll_cgroups();
  reap_unused_tenants();
  if (adopted != 0) os::log_info(fmt::format("gpu daemon: goes on with {} processes", adopted));
  return {};
}

bool DaemonLoop::watch_process(int client, os::UniqueFd pidfd) {
  processes_.watch(client, std::move(pidfd));
  return poll_.add(processes_.pidfd(client), EventSource::kProcess, client);
}

// Ends the client's turn and leases, whatever it was doing.
void DaemonLoop::on_client_exit(int client) {
  const int tenant = parts_.tenant_store.clients().tenant_of(client);
  close_connections_of(client);
  processes_.forget(client);
  parts_.engines.end(parts_.tenant_store, client, os::monotonic_ns());
  parts_.residency_manager.forget_client(client);
  parts_.tenant_store.remove_client(client);
  parts_.residency_manager.mark_changed();
  reap_tenant(tenant);
  if (parts_.tenant_store.tenants().is_live(tenant))
    parts_.turn_manager.sample(parts_.tenant_store, tenant);
  if (!parts_.tenant_store.clients().tenant_has_any(tenant))
    parts_.turn_manager.set_tenants(parts_.tenant_store);
}

// A tenant ends without a process and a cgroup. One that keeps a cgroup keeps its debts of time,
// too.
void DaemonLoop::reap_tenant(int tenant) {
  if (!parts_.tenant_store.tenants().is_live(tenant) ||
      parts_.tenant_store.clients().tenant_has_any(tenant))
    return;
  if (parts_.tenant_cgroups.has_group(parts_.tenant_store.tenants().name(tenant))) return;
  parts_.turn_manager.forget(tenant);
  parts_.engines.forget(tenant);
  parts_.residency_manager.forget_tenant(tenant);
  parts_.tenant_store.remove_tenant(tenant);
}

void DaemonLoop::reap_unused_tenants() {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant)
    reap_tenant(tenant);
  parts_.turn_manager.set_tenants(parts_.tenant_store);
}

// Not every kernel reports the end of a cgroup, so they are polled.
void DaemonLoop::poll_cgroups() {
  last_poll_ = os::monotonic_now();
  if (parts_.tenant_cgroups.drop_removed()) reap_unused_tenants();
}

// Handles ends of processes that epoll has not reported yet; true when there were any.
bool DaemonLoop::reap_exited_clients(int tenant) {
  const std::vector<int> clients = parts_.tenant_store.clients().of_tenant(tenant);
  bool any = false;
  for (const int client : clients) {
    if (!processes_.has_ended(client)) continue;
    on_client_exit(client);
    any = true;
  }
  return any;
}

// Some at a time, so that who connects without end holds up nobody who is connected.
void DaemonLoop::accept_newcomers() {
  int looks = kAcceptedInOneGo;
  const Seconds now = os::monotonic_now();
  while (const auto number = connections_.accept(now, looks)) {
    if (!poll_.add(*number, EventSource::kConnection, *number)) close_connection(*number);
  }
}

void DaemonLoop::close_overdue() {
  for (const int number : connections_.overdue(os::monotonic_now()))
    close_connection(number);
}

void DaemonLoop::close_connection(int number) {
  const ClientConnection closed = connections_.close(number);
  if (closed.is_event_connection)
    parts_.turn_manager.set_event_connection(parts_.tenant_store, closed.client, false);
}

void DaemonLoop::close_connections_of(int client) {
  for (const bool is_event_connection : {false, true}) {
    const int number = connections_.of_client(client, is_event_connection);
    if (number >= 0) close_connection(number);
  }
}

void DaemonLoop::reply(ClientConnection& connection, const ClientReply& answer,
                       std::array<int, 2> fds) {
  // A client that does not read its replies is closed.
  if (!send_message(connection.fd.get(), as_bytes(answer), fds))
    close_connection(connection.fd.get());
}

void DaemonLoop::read_message(int number) {
  ClientConnection& connection = connections_.at(number);
  if (!connection.fd) return;
  auto message = receive_message(number, kControlRequestMax);
  if (!message) {
    if (message.error().code != Code::kTimeout) close_connection(number);
    return;
  }
  if (message->bytes.empty()) return close_connection(number);
  // A connection belongs to the process that made it, not to those that inherited it.
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
    return parts_.residency_manager.mark_changed();
  if (request.type == RequestType::kEventConnection)
    return answer_event_connection(connection, request);
  if (request.type == RequestType::kNotify && connection.is_event_connection)
    return parts_.turn_manager.sample(parts_.tenant_store,
                                      parts_.tenant_store.clients().tenant_of(connection.client));
  close_connection(number);
}

void DaemonLoop::handle(const PollEvent& event) {
  switch (event.source) {
    case EventSource::kListener:
      return accept_newcomers();
    case EventSource::kConnection:
      return read_message(event.number);
    case EventSource::kProcess:
      if (processes_.has_ended(event.number)) on_client_exit(event.number);
      return;
    case EventSource::kTurnTimer:
      return parts_.turn_manager.acknowledge_timer();
    case EventSource::kEngineTimer:
      parts_.engines.acknowledge_timer();
      return parts_.engines.step(parts_.tenant_store, os::monotonic_ns());
    case EventSource::kResidencyTimer:
      return parts_.residency_manager.acknowledge_timer();
  }
}

Status DaemonLoop::run(const std::atomic<bool>& stop) {
  if (!poll_.add(connections_.listener(), EventSource::kListener) ||
      !poll_.add(parts_.turn_manager.timer(), EventSource::kTurnTimer) ||
      !poll_.add(parts_.engines.timer(), EventSource::kEngineTimer) ||
      !poll_.add(parts_.residency_manager.timer(), EventSource::kResidencyTimer))
    return os::errno_error("cannot wait for clients");
  while (!stop) {
    REGATTA_TRY(events, poll_.wait(500));
    for (const PollEvent& event : events)
      handle(event);
    if (os::monotonic_now() - last_poll_ >= Seconds{0.5}) {
      poll_cgroups();
      close_overdue();
    }
    parts_.residency_manager.step(parts_.tenant_store, parts_.turn_manager);
    parts_.turn_manager.step(parts_.tenant_store);
  }
  return {};
}

}  // namespace regatta::sharing
