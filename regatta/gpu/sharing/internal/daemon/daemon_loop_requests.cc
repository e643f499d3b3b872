// The part of daemon_loop.h that answers clients and operators.

#include <array>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/client_requests.h"
#include "regatta/gpu/sharing/internal/daemon/control_requests.h"
#include "regatta/gpu/sharing/internal/daemon/daemon_loop.h"
#include "regatta/gpu/sharing/internal/daemon/operators.h"
#include "regatta/gpu/sharing/internal/daemon/peer_process.h"

namespace regatta::sharing {

namespace {

Error refused(pid_t pid, Code code, const std::string& why) {
  return {code, "process " + std::to_string(pid) + ": " + why};
}

}  // namespace

// After exec() the memory of a known client is gone with the program that had it.
Status DaemonLoop::remove_earlier_program(int client) {
  if (!processes_.has_new_program(client)) {
    return refused(parts_.tenant_store.state().clients[client].pid, Code::kConflict,
                   "is a client already; a process has one account");
  }
  close_connections_of(client);
  processes_.forget(client);
  parts_.engines.end(parts_.tenant_store, client, os::monotonic_ns());
  parts_.residency_manager.forget_client(client);
  parts_.tenant_store.remove_client(client);
  return {};
}

Result<int> DaemonLoop::add_client(int tenant, PeerProcess process) {
  const bool was_absent = !parts_.tenant_store.clients().tenant_has_any(tenant);
  REGATTA_TRY(client, parts_.tenant_store.add_client(tenant, process.stat.id));
  if (was_absent) parts_.turn_manager.set_tenants(parts_.tenant_store);
  if (watch_process(client, std::move(process.pidfd))) return client;
  on_client_exit(client);
  return refused(process.stat.id.pid, Code::kNotFound, "is gone");
}

// The client of the handshake: a known one, or a new one.
Result<int> DaemonLoop::client_for_handshake(const ClientRequest& request, int socket, pid_t pid,
                                             bool has_page) {
  const auto tenant = parts_.tenant_store.tenants().find_by_token(request.token);
  if (!tenant) {
    return refused(pid, Code::kNotFound,
                   "belongs to no tenant of now; start it with regatta gpu run");
  }
  REGATTA_TRY(peer, read_peer_process(socket, pid));
  const auto own = parts_.tenant_cgroups.tenant_of(peer.stat);
  if (own && *own != parts_.tenant_store.tenants().name(*tenant)) {
    return refused(pid, Code::kInvalidInput,
                   "its cgroup is of tenant " + *own + ", and it asks as another one");
  }
  if (const auto known = parts_.tenant_store.clients().find(peer.stat.id)) {
    const ClientRecord& record = parts_.tenant_store.state().clients[*known];
    if (static_cast<int>(record.tenant) != *tenant) {
      return refused(pid, Code::kInvalidInput,
                     "belongs to tenant " +
                         parts_.tenant_store.tenants().name(static_cast<int>(record.tenant)) +
                         " already");
    }
    if (has_page || record.page_inode == 0) return *known;
    REGATTA_TRY_DO(remove_earlier_program(*known));
  }
  return add_client(*tenant, std::move(peer));
}

// Replies with the page of the tenant whose cgroup the process is in.
void DaemonLoop::answer_find_tenant(ClientConnection& connection) {
  const auto peer = read_peer_process(connection.fd.get(), connection.peer.pid);
  if (!peer) return reply(connection, failed(peer.error()));
  const auto name = parts_.tenant_cgroups.tenant_of(peer->stat);
  // It lives, so the number whose cgroups were read was its own.
  if (has_ended(peer->pidfd)) return close_connection(connection.fd.get());
  const auto tenant = name ? parts_.tenant_store.tenants().find(*name) : std::nullopt;
  if (tenant)
    return reply(connection, ClientReply(), {parts_.tenant_store.tenants().page_fd(*tenant), -1});
  return reply(connection,
               failed({Code::kNotFound,
                       "process " + std::to_string(connection.peer.pid) +
                           ": its cgroup belongs to no tenant; start it with regatta gpu run, or "
                           "give its cgroup to a tenant with regatta gpu enroll"}));
}

void DaemonLoop::answer_handshake(ClientConnection& connection, const ClientRequest& request,
                                  DaemonMessage& message) {
  if (connection.client >= 0) return close_connection(connection.fd.get());  // once is enough
  const bool has_page = message.fds[0] || request.least == kPageIsMapped;
  const auto client =
      client_for_handshake(request, connection.fd.get(), connection.peer.pid, has_page);
  if (!client) return reply(connection, failed(client.error()));
  os::UniqueFd client_page;
  Status status;
  const bool had_client_page = parts_.tenant_store.clients().has_page(*client);
  if (has_page && !had_client_page) {
    status = parts_.tenant_store.adopt_client_page(*client, std::move(message.fds[0]));
  } else if (!has_page) {
    processes_.set_program(*client, AddressSpace::of(connection.peer.pid));
    auto made = parts_.tenant_store.create_client_page(*client);
    if (made) client_page = std::move(*made);
    if (!made) status = made.error();
  }
  if (!status) return reply(connection, failed(status.error()));
  if (!had_client_page) parts_.engines.begin(parts_.tenant_store, *client);
  const int earlier = connections_.of_client(*client, false);
  if (earlier >= 0) close_connection(earlier);
  connections_.set_client(connection, *client, false);
  parts_.residency_manager.mark_changed();
  const int tenant = parts_.tenant_store.clients().tenant_of(*client);
  reply(connection, ClientReply(),
        {parts_.tenant_store.tenants().page_fd(tenant), client_page.get()});
}

void DaemonLoop::answer_event_connection(ClientConnection& connection,
                                         const ClientRequest& request) {
  if (connection.client >= 0) return close_connection(connection.fd.get());
  const auto process = read_process(connection.peer.pid);
  const auto client = process ? parts_.tenant_store.clients().find(process->id) : std::nullopt;
  if (!client || !parts_.tenant_store.clients().has_page(*client) ||
      parts_.tenant_store.tenants().find_by_token(request.token) !=
          parts_.tenant_store.clients().tenant_of(*client)) {
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  }
  const int earlier = connections_.of_client(*client, true);
  if (earlier >= 0) close_connection(earlier);
  connections_.set_client(connection, *client, true);
  parts_.turn_manager.set_event_connection(parts_.tenant_store, *client, true);
  reply(connection, ClientReply());
}

void DaemonLoop::answer_client(ClientConnection& connection, const ClientRequest& request) {
  if (connection.client < 0 || connection.is_event_connection)
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  const int client = connection.client;
  ClientReply answer = answer_client_request(parts_, client, request);
  // A refused request may be granted once the dead processes of the tenant have lost their leases.
  if (answer.status == ReplyStatus::kRefused &&
      reap_exited_clients(parts_.tenant_store.clients().tenant_of(client))) {
    if (!connection.fd) return;  // this client was among the dead
    answer = answer_client_request(parts_, client, request);
  }
  reply(connection, answer);
}

void DaemonLoop::answer_operator(ClientConnection& connection, const DaemonMessage& message) {
  if (const auto allowed = check_operator(parts_.tenant_store, parts_.tenant_cgroups,
                                          connection.peer.pid, connection.peer.uid);
      !allowed) {
    return reply(connection, failed(allowed.error()));
  }
  auto peer = read_peer_process(connection.fd.get(), connection.peer.pid);
  if (!peer) return reply(connection, failed(peer.error()));
  const ProcessId process = peer->stat.id;
  parts_.turn_manager.sample(parts_.tenant_store);  // for what is shown
  parts_.engines.step(parts_.tenant_store, os::monotonic_ns());
  const auto answer = answer_control_request(parts_, message.bytes, process);
  reap_unused_tenants();
  parts_.residency_manager.mark_changed();
  if (!answer) return reply(connection, failed(answer.error()));
  int page = -1;
  if (answer->tenant >= 0) {
    const auto client = parts_.tenant_store.clients().find(process);
    if (!client || !watch_process(*client, std::move(peer->pidfd))) {
      if (client) on_client_exit(*client);
      return;
    }
    page = parts_.tenant_store.tenants().page_fd(answer->tenant);
  }
  // A memory file holds text of any length.
  const auto text = os::memory_file("answer of the daemon", answer->text);
  if (!text) return reply(connection, failed(text.error()));
  reply(connection, ClientReply(), {text->get(), page});
}

}  // namespace regatta::sharing
