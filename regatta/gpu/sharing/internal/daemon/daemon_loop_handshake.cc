// The part of daemon_loop.h that admits clients.

#include <string>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/daemon_loop.h"
#include "regatta/gpu/sharing/internal/daemon/process_tenant.h"

namespace regatta::sharing {
namespace {

Error refused(pid_t pid, Code code, const std::string& why) {
  return {code, "process " + std::to_string(pid) + ": " + why};
}

// Whether the client has its page; without the descriptor of the tenant's page in `message`.
bool has_page(const ClientRequest& request, const DaemonMessage& message) {
  return message.fds[0] || (request.least & kPageIsMapped) != 0;
}

}  // namespace

std::optional<int> DaemonLoop::living_client(pid_t pid) const {
  const auto client = parts_.tenant_store.clients().find(pid);
  if (!client || !processes_.is_watched(*client) || processes_.has_ended(*client))
    return std::nullopt;
  return client;
}

// Nothing: a process that is no client yet is of this tenant. The token alone proves that not: a
// process can read it from the descriptors of others of its user.
std::optional<ClientReply> DaemonLoop::check_membership(const ProcessStat& process, int tenant,
                                                        const os::UniqueFd& tenant_page) const {
  const TenantTable& tenants = parts_.tenant_store.tenants();
  const pid_t pid = process.id.pid;
  const auto own =
      find_process_tenant(parts_.tenant_store, parts_.tenant_cgroups, processes_, process);
  if (own && *own == tenant) return std::nullopt;
  if (own && *own) {
    return failed(refused(pid, Code::kInvalidInput,
                          "belongs to tenant " + tenants.name(**own) +
                              ", and asks as another one; start it with regatta gpu run"));
  }
  if (tenant_page && tenants.is_page_of(tenant_page, tenant)) return std::nullopt;
  ClientReply answer =
      failed(refused(pid, Code::kUnsupported,
                     "neither descends from a living process of tenant " + tenants.name(tenant) +
                         " nor inherited its descriptor; start it with regatta gpu run"));
  if (!tenant_page) answer.status = ReplyStatus::kProveTenant;
  return answer;
}

// True: the client is still the one that it was. False: after exec() its memory was gone with the
// program that had it, and so is the client.
Result<bool> DaemonLoop::is_still_client(int client, int tenant, bool has_page) {
  const ClientRecord& record = parts_.tenant_store.state().clients[client];
  const int own = parts_.tenant_store.clients().tenant_of(client);
  if (own != tenant) {
    return refused(record.pid, Code::kInvalidInput,
                   "belongs to tenant " + parts_.tenant_store.tenants().name(own) + " already");
  }
  if (has_page || record.page_inode == 0) return true;
  if (!processes_.has_new_program(client)) {
    return refused(record.pid, Code::kConflict, "is a client already; a process has one account");
  }
  close_connections_of(client);
  processes_.forget(client);
  parts_.engines.end(parts_.tenant_store, client, os::monotonic_ns());
  parts_.residency_manager.forget_client(client);
  parts_.tenant_store.remove_client(client);
  return false;
}

Result<int> DaemonLoop::add_client(int tenant, ProcessId process, os::UniqueFd pidfd) {
  const bool was_absent = !parts_.tenant_store.clients().tenant_has_any(tenant);
  REGATTA_TRY(client, parts_.tenant_store.add_client(tenant, process));
  if (was_absent) parts_.turn_manager.set_tenants(parts_.tenant_store);
  if (watch_process(client, std::move(pidfd))) return client;
  on_client_exit(client);
  return refused(process.pid, Code::kNotFound, "cannot be watched; start it again");
}

// The client of the handshake: a known one, or a new one. The cheap refusals come first.
std::variant<int, ClientReply> DaemonLoop::client_for_handshake(const ClientConnection& connection,
                                                                const ClientRequest& request,
                                                                DaemonMessage& message) {
  const pid_t pid = connection.peer.pid;
  os::UniqueFd tenant_page;
  if ((request.least & kWithTenantPage) != 0)
    tenant_page = std::move(message.fds[1] ? message.fds[1] : message.fds[0]);
  const auto tenant = parts_.tenant_store.tenants().find_by_token(request.token);
  if (!tenant) {
    return failed(refused(pid, Code::kNotFound,
                          "belongs to no tenant of now; start it with regatta gpu run"));
  }
  auto pidfd = open_peer(connection.fd.get(), pid);
  if (!pidfd) return failed(pidfd.error());
  const auto known = living_client(pid);
  if (known) {
    const auto is_still = is_still_client(*known, *tenant, has_page(request, message));
    if (!is_still) return failed(is_still.error());
    if (*is_still) return *known;
  }
  const auto stat = read_process(pid);
  if (!stat || has_ended(*pidfd)) return failed(refused(pid, Code::kNotFound, "is gone"));
  if (!known) {
    if (const auto refusal = check_membership(*stat, *tenant, tenant_page)) return *refusal;
  }
  const auto client = add_client(*tenant, stat->id, std::move(*pidfd));
  if (!client) return failed(client.error());
  return *client;
}

// The page that the client is given, or none where it came with one. One that it has mapped alone,
// without a descriptor, is known to this daemon or lost.
Result<os::UniqueFd> DaemonLoop::share_page(int client, bool has_one, os::UniqueFd page) {
  const bool had_page = parts_.tenant_store.clients().has_page(client);
  os::UniqueFd made;
  const bool is_new = !has_one;
  if (is_new || !had_page) {
    processes_.set_program(client,
                           AddressSpace::of(parts_.tenant_store.state().clients[client].pid));
  }
  if (!is_new && !had_page)
    REGATTA_TRY_DO(parts_.tenant_store.adopt_client_page(client, std::move(page)));
  if (is_new) {
    REGATTA_TRY(created, parts_.tenant_store.create_client_page(client));
    made = std::move(created);
  }
  if (!had_page) parts_.engines.begin(parts_.tenant_store, client);
  return made;
}

void DaemonLoop::answer_handshake(ClientConnection& connection, const ClientRequest& request,
                                  DaemonMessage& message) {
  if (connection.client >= 0) return close_connection(connection.fd.get());  // once is enough
  const auto admitted = client_for_handshake(connection, request, message);
  if (const auto* refusal = std::get_if<ClientReply>(&admitted)) return reply(connection, *refusal);
  const int client = std::get<int>(admitted);
  const bool has_one = has_page(request, message);
  const auto page = share_page(client, has_one, std::move(message.fds[0]));
  if (!page) return reply(connection, failed(page.error()));
  const int earlier = connections_.of_client(client, false);
  if (earlier >= 0) close_connection(earlier);
  connections_.set_client(connection, client, false);
  parts_.residency_manager.mark_changed();
  const int tenant = parts_.tenant_store.clients().tenant_of(client);
  reply(connection, ClientReply(), {parts_.tenant_store.tenants().page_fd(tenant), page->get()});
}

}  // namespace regatta::sharing
