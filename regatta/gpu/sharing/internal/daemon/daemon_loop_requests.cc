// What the daemon answers: the part of daemon_loop.h that is about messages of clients and
// operators.

#include <array>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/internal/daemon/daemon_loop.h"
#include "regatta/gpu/sharing/internal/daemon/peer_process.h"

namespace regatta::sharing {

// The client that begins the handshake: one that is known, or a new one.
Result<int> DaemonLoop::client_for_handshake(const ClientRequest& request, ProcessId process,
                                             bool has_page) {
  const auto tenant = tenant_store_.find_tenant_of(request.token);
  if (!tenant) {
    return Error{Code::kNotFound,
                 "process " + std::to_string(process.pid) +
                     ": belongs to no tenant of now; start it with regatta gpu run"};
  }
  const auto own = tenant_cgroups_.tenant_of(process.pid);
  if (own && *own != tenant_store_.tenant_name(*tenant)) {
    return Error{Code::kInvalidInput, "process " + std::to_string(process.pid) +
                                          ": its cgroup is of tenant " + *own +
                                          ", and it asks as another one"};
  }
  if (const auto known = tenant_store_.find_client(process)) {
    const ClientRecord& record = tenant_store_.state().clients[*known];
    if (static_cast<int>(record.tenant) != *tenant) {
      return Error{Code::kInvalidInput,
                   "process " + std::to_string(process.pid) + ": belongs to tenant " +
                       tenant_store_.tenant_name(static_cast<int>(record.tenant)) + " already"};
    }
    if (has_page || record.page_inode == 0) return *known;
    if (has_mapped(process.pid, REGATTA_CLIENT_PAGE_NAME, record.page_inode)) {
      return Error{Code::kConflict, "process " + std::to_string(process.pid) +
                                        ": is a client already; a process has one account"};
    }
    // After exec(): what it had is gone with the program that had it.
    os::UniqueFd pidfd = std::move(pidfds_[*known]);
    if (connection_of_[*known] >= 0) close_connection(connection_of_[*known]);
    if (event_connection_of_[*known] >= 0) close_connection(event_connection_of_[*known]);
    engines_.end(tenant_store_, *known, os::monotonic_ns());
    residency_manager_.forget_client(*known);
    tenant_store_.remove_client(*known);
  }
  const bool was_absent = !tenant_store_.has_clients(*tenant);
  REGATTA_TRY(client, tenant_store_.add_client(*tenant, process));
  if (was_absent) turn_manager_.set_tenants(tenant_store_);
  if (watch_process(client)) return client;
  on_client_exit(client);
  return Error{Code::kNotFound, "process " + std::to_string(process.pid) + ": is gone"};
}

// The page of the tenant that the process belongs to by its cgroup.
void DaemonLoop::answer_find_tenant(ClientConnection& connection) {
  const auto peer = read_peer_process(connection.fd.get(), connection.peer.pid);
  if (!peer) return reply(connection, failed(peer.error()));
  const auto name = tenant_cgroups_.tenant_of(peer->cgroups);
  const auto tenant = name ? tenant_store_.find_tenant(*name) : std::nullopt;
  if (tenant) return reply(connection, ClientReply(), {tenant_store_.tenant_page(*tenant), -1});
  return reply(connection,
               failed({Code::kNotFound,
                       "process " + std::to_string(connection.peer.pid) +
                           ": its cgroup belongs to no tenant; start it with regatta gpu run, or "
                           "give its cgroup to a tenant with regatta gpu enroll"}));
}

void DaemonLoop::answer_handshake(ClientConnection& connection, const ClientRequest& request,
                                  DaemonMessage& message) {
  if (connection.client >= 0) return close_connection(connection.fd.get());  // once is enough
  const auto process = read_process(connection.peer.pid);
  if (!process) return reply(connection, failed(process.error()));
  const bool has_page = static_cast<bool>(message.fds[0]);
  const auto client = client_for_handshake(request, process->id, has_page);
  if (!client) return reply(connection, failed(client.error()));
  os::UniqueFd client_page;
  Status status;
  const bool had_client_page = tenant_store_.has_client_page(*client);
  if (has_page && !had_client_page) {
    status = tenant_store_.adopt_client_page(*client, std::move(message.fds[0]));
  } else if (!has_page) {
    auto made = tenant_store_.create_client_page(*client);
    if (made) client_page = std::move(*made);
    if (!made) status = made.error();
  }
  if (!status) return reply(connection, failed(status.error()));
  if (!had_client_page) engines_.begin(tenant_store_, *client);
  const int number = connection.fd.get();
  if (connection_of_[*client] >= 0 && connection_of_[*client] != number)
    close_connection(connection_of_[*client]);
  connection_of_[*client] = number;
  connection.client = *client;
  residency_manager_.mark_changed();
  const int tenant = static_cast<int>(tenant_store_.state().clients[*client].tenant);
  reply(connection, ClientReply(), {tenant_store_.tenant_page(tenant), client_page.get()});
}

void DaemonLoop::answer_event_connection(ClientConnection& connection,
                                         const ClientRequest& request) {
  if (connection.client >= 0) return close_connection(connection.fd.get());
  const auto process = read_process(connection.peer.pid);
  const auto client = process ? tenant_store_.find_client(process->id) : std::nullopt;
  if (!client || !tenant_store_.has_client_page(*client) ||
      tenant_store_.find_tenant_of(request.token) != tenant_of(*client)) {
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  }
  if (event_connection_of_[*client] >= 0) close_connection(event_connection_of_[*client]);
  const int number = connection.fd.get();
  connection.client = *client;
  connection.is_event_connection = true;
  event_connection_of_[*client] = number;
  turn_manager_.set_event_connection(tenant_store_, *client, true);
  reply(connection, ClientReply());
}

void DaemonLoop::answer_client(ClientConnection& connection, const ClientRequest& request) {
  if (connection.client < 0 || connection.is_event_connection)
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  if (request.type == RequestType::kLeaseSwappable) return answer_swappable(connection, request);
  if (request.type == RequestType::kOpenSession) return answer_session(connection, request);
  if (request.type == RequestType::kPin) return answer_pin(connection);
  answer_lease(connection, request);
}

// What is refused may be granted once the dead of the tenant are buried.
template <typename Grant>
void DaemonLoop::grant_or_refuse(ClientConnection& connection, const Grant& grant) {
  bool is_granted = grant();
  if (!is_granted && reap_exited_clients(tenant_of(connection.client)) && connection.client >= 0)
    is_granted = grant();
  if (!connection.fd) return;  // it was this one that had died
  reply(connection, {.status = is_granted ? ReplyStatus::kGranted : ReplyStatus::kRefused});
}

void DaemonLoop::answer_lease(ClientConnection& connection, const ClientRequest& request) {
  const int client = connection.client;
  const int device = request.device < kDevicesMax ? static_cast<int>(request.device) : -1;
  if (device >= 0 && tenant_store_.is_drained(device))
    return reply(connection, failed(TenantStore::drained_error(device)));
  if (device >= 0 && device < tenant_store_.device_count()) {
    const auto room = residency_manager_.admit(tenant_store_, client, device, request.least);
    if (room == ResidencyManager::Admission::kLater)
      return reply(connection, {.status = ReplyStatus::kRetryLater});
    if (room == ResidencyManager::Admission::kNever)
      return reply(connection, {.status = ReplyStatus::kRefused});
  }
  grant_or_refuse(connection, [&] { return tenant_store_.lease(client, device, request.least); });
}

// What the client may have on the device stands in its page before the answer comes.
void DaemonLoop::answer_swappable(ClientConnection& connection, const ClientRequest& request) {
  const int client = connection.client;
  const int device = request.device < kDevicesMax ? static_cast<int>(request.device) : -1;
  const bool is_more = device >= 0 && request.least > tenant_store_.swappable(client, device);
  if (is_more && tenant_store_.is_drained(device))
    return reply(connection, failed(TenantStore::drained_error(device)));
  if (device >= 0 && device < tenant_store_.device_count())
    residency_manager_.update_checkpointable(tenant_store_, device);
  grant_or_refuse(connection, [&] {
    if (!tenant_store_.set_swappable(client, device, request.least)) return false;
    residency_manager_.mark_changed();
    residency_manager_.step(tenant_store_, turn_manager_);
    return true;
  });
}

void DaemonLoop::answer_pin(ClientConnection& connection) {
  const auto may = residency_manager_.pin(tenant_store_, connection.client);
  reply(connection,
        {.status = may == ResidencyManager::Admission::kNow     ? ReplyStatus::kGranted
                   : may == ResidencyManager::Admission::kLater ? ReplyStatus::kRetryLater
                                                                : ReplyStatus::kRefused});
}

void DaemonLoop::answer_session(ClientConnection& connection, const ClientRequest& request) {
  const int client = connection.client;
  const bool is_known = request.least == REGATTA_ENCODE || request.least == REGATTA_DECODE;
  if (request.device >= static_cast<unsigned>(tenant_store_.device_count()) || !is_known)
    return reply(connection, {.status = ReplyStatus::kRefused});
  const auto device = static_cast<int>(request.device);
  if (tenant_store_.is_drained(device))
    return reply(connection, failed(TenantStore::drained_error(device)));
  const auto engine = static_cast<regatta_engine>(request.least);
  grant_or_refuse(connection,
                  [&] { return engines_.open_session(tenant_store_, client, device, engine); });
}

void DaemonLoop::answer_operator(ClientConnection& connection, const DaemonMessage& message) {
  if (const auto allowed =
          check_operator(tenant_store_, tenant_cgroups_, connection.peer.pid, connection.peer.uid);
      !allowed) {
    return reply(connection, failed(allowed.error()));
  }
  const auto process = read_process(connection.peer.pid);
  if (!process) return reply(connection, failed(process.error()));
  turn_manager_.look(tenant_store_);  // for what is shown
  engines_.step(tenant_store_, os::monotonic_ns());
  const auto answer = answer_control_request(
      {tenant_store_, tenant_cgroups_, turn_manager_, engines_}, message.bytes, process->id);
  reap_unused_tenants();
  residency_manager_.mark_changed();
  if (!answer) return reply(connection, failed(answer.error()));
  int page = -1;
  if (answer->tenant >= 0) {
    const auto client = tenant_store_.find_client(process->id);
    if (!client || !watch_process(*client)) {
      if (client) on_client_exit(*client);
      return;
    }
    page = tenant_store_.tenant_page(answer->tenant);
  }
  // Text of any length goes in a memory file.
  const os::UniqueFd text(::memfd_create("regatta-gpu-answer", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(answer->text.size());
  if (!text || ::write(text.get(), answer->text.data(), answer->text.size()) != size)
    return reply(connection, failed(os::errno_error("cannot write the answer")));
  reply(connection, ClientReply(), {text.get(), page});
}

}  // namespace regatta::sharing
