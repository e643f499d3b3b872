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

void DaemonLoop::answer_event_connection(ClientConnection& connection,
                                         const ClientRequest& request) {
  if (connection.client >= 0) return close_connection(connection.fd.get());
  const auto client = living_client(connection.peer.pid);
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
  auto peer = read_peer_process(connection.fd.get(), connection.peer.pid);
  if (!peer) return reply(connection, failed(peer.error()));
  if (const auto allowed = check_operator(parts_.tenant_store, parts_.tenant_cgroups, processes_,
                                          peer->stat, connection.peer.uid);
      !allowed) {
    return reply(connection, failed(allowed.error()));
  }
  connection.since = os::monotonic_now();
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
