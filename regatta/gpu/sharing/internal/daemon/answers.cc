// What the daemon answers: the part of loop.h that is about messages of clients and operators.

#include <array>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/errno_text.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/internal/daemon/loop.h"
#include "regatta/gpu/sharing/internal/daemon/peer.h"

namespace regatta::sharing {

// The client that says hello: one that is known, or a new one.
Result<int> Daemon::client_for_hello(const Request& request, ProcessId process, bool has_page) {
  const auto tenant = books_.find_tenant_of(request.token);
  if (!tenant) {
    return Error{Code::kNotFound,
                 "process " + std::to_string(process.pid) +
                     ": belongs to no tenant of now; start it with regatta gpu run"};
  }
  const auto own = membership_.tenant_of(process.pid);
  if (own && *own != books_.tenant_name(*tenant)) {
    return Error{Code::kInvalidInput, "process " + std::to_string(process.pid) +
                                          ": its cgroup is of tenant " + *own +
                                          ", and it asks as another one"};
  }
  if (const auto known = books_.find_client(process)) {
    const ClientRecord& record = books_.state().clients[*known];
    if (static_cast<int>(record.tenant) != *tenant) {
      return Error{Code::kInvalidInput,
                   "process " + std::to_string(process.pid) + ": belongs to tenant " +
                       books_.tenant_name(static_cast<int>(record.tenant)) + " already"};
    }
    if (has_page || record.page_inode == 0) return *known;
    if (has_mapped(process.pid, REGATTA_PURSES_PAGE_NAME, record.page_inode)) {
      return Error{Code::kConflict, "process " + std::to_string(process.pid) +
                                        ": is a client already; a process has one account"};
    }
    // After exec(): what it had is gone with the program that had it.
    os::UniqueFd pidfd = std::move(pidfds_[*known]);
    if (connection_of_[*known] >= 0) hang_up(connection_of_[*known]);
    if (bell_of_[*known] >= 0) hang_up(bell_of_[*known]);
    engines_.end(books_, *known, os::monotonic_ns());
    residences_.forget_client(*known);
    books_.remove_client(*known);
  }
  const bool was_absent = !books_.has_clients(*tenant);
  REGATTA_TRY(client, books_.add_client(*tenant, process));
  if (was_absent) times_.set_tenants(books_);
  if (watch_process(client)) return client;
  bury(client);
  return Error{Code::kNotFound, "process " + std::to_string(process.pid) + ": is gone"};
}

// The page of the tenant that the process belongs to by its cgroup.
void Daemon::answer_place(Connection& connection) {
  const auto peer = read_peer(connection.fd.get(), connection.peer.pid);
  if (!peer) return reply(connection, failed(peer.error()));
  const auto name = membership_.tenant_of(peer->cgroups);
  const auto tenant = name ? books_.find_tenant(*name) : std::nullopt;
  if (tenant) return reply(connection, Reply(), {books_.tenant_page(*tenant), -1});
  return reply(connection,
               failed({Code::kNotFound,
                       "process " + std::to_string(connection.peer.pid) +
                           ": its cgroup belongs to no tenant; start it with regatta gpu run, or "
                           "give its cgroup to a tenant with regatta gpu enroll"}));
}

void Daemon::answer_hello(Connection& connection, const Request& request, Message& message) {
  if (connection.client >= 0) return hang_up(connection.fd.get());  // once is enough
  const auto process = read_process(connection.peer.pid);
  if (!process) return reply(connection, failed(process.error()));
  const bool has_page = static_cast<bool>(message.fds[0]);
  const auto client = client_for_hello(request, process->id, has_page);
  if (!client) return reply(connection, failed(client.error()));
  os::UniqueFd purses;
  Status status;
  const bool had_purses = books_.has_purses(*client);
  if (has_page && !had_purses) {
    status = books_.adopt_purses(*client, std::move(message.fds[0]));
  } else if (!has_page) {
    auto made = books_.make_purses(*client);
    if (made) purses = std::move(*made);
    if (!made) status = made.error();
  }
  if (!status) return reply(connection, failed(status.error()));
  if (!had_purses) engines_.begin(books_, *client);
  const int number = connection.fd.get();
  if (connection_of_[*client] >= 0 && connection_of_[*client] != number)
    hang_up(connection_of_[*client]);
  connection_of_[*client] = number;
  connection.client = *client;
  residences_.stir();
  const int tenant = static_cast<int>(books_.state().clients[*client].tenant);
  reply(connection, Reply(), {books_.tenant_page(tenant), purses.get()});
}

void Daemon::answer_bell(Connection& connection, const Request& request) {
  if (connection.client >= 0) return hang_up(connection.fd.get());
  const auto process = read_process(connection.peer.pid);
  const auto client = process ? books_.find_client(process->id) : std::nullopt;
  if (!client || !books_.has_purses(*client) ||
      books_.find_tenant_of(request.token) != tenant_of(*client)) {
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  }
  if (bell_of_[*client] >= 0) hang_up(bell_of_[*client]);
  const int number = connection.fd.get();
  connection.client = *client;
  connection.is_bell = true;
  bell_of_[*client] = number;
  times_.listen(books_, *client, true);
  reply(connection, Reply());
}

void Daemon::answer_client(Connection& connection, const Request& request) {
  if (connection.client < 0 || connection.is_bell)
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  if (request.ask == Ask::kMovable) return answer_movable(connection, request);
  if (request.ask == Ask::kSession) return answer_session(connection, request);
  if (request.ask == Ask::kBind) return answer_bind(connection);
  answer_lease(connection, request);
}

// What is refused may be granted once the dead of the tenant are buried.
template <typename Grant>
void Daemon::grant_or_refuse(Connection& connection, const Grant& grant) {
  bool is_granted = grant();
  if (!is_granted && bury_dead(tenant_of(connection.client)) && connection.client >= 0)
    is_granted = grant();
  if (!connection.fd) return;  // it was this one that had died
  reply(connection, {.answer = is_granted ? Answer::kDone : Answer::kRefused});
}

void Daemon::answer_lease(Connection& connection, const Request& request) {
  const int client = connection.client;
  const int device = request.device < kDevicesMax ? static_cast<int>(request.device) : -1;
  if (device >= 0 && books_.is_drained(device))
    return reply(connection, failed(Books::drained_error(device)));
  if (device >= 0 && device < books_.device_count()) {
    const auto room = residences_.room_for(books_, client, device, request.least);
    if (room == Residences::Room::kLater) return reply(connection, {.answer = Answer::kLater});
    if (room == Residences::Room::kNever) return reply(connection, {.answer = Answer::kRefused});
  }
  grant_or_refuse(connection, [&] { return books_.lease(client, device, request.least); });
}

// What the client may have on the device stands in its page before the answer comes.
void Daemon::answer_movable(Connection& connection, const Request& request) {
  const int client = connection.client;
  const int device = request.device < kDevicesMax ? static_cast<int>(request.device) : -1;
  const bool is_more = device >= 0 && request.least > books_.movable(client, device);
  if (is_more && books_.is_drained(device))
    return reply(connection, failed(Books::drained_error(device)));
  if (device >= 0 && device < books_.device_count()) residences_.look_who_leaves(books_, device);
  grant_or_refuse(connection, [&] {
    if (!books_.set_movable(client, device, request.least)) return false;
    residences_.stir();
    residences_.step(books_, times_);
    return true;
  });
}

void Daemon::answer_bind(Connection& connection) {
  const auto may = residences_.bind(books_, connection.client);
  reply(connection, {.answer = may == Residences::Room::kNow     ? Answer::kDone
                               : may == Residences::Room::kLater ? Answer::kLater
                                                                 : Answer::kRefused});
}

void Daemon::answer_session(Connection& connection, const Request& request) {
  const int client = connection.client;
  const bool is_known = request.least == REGATTA_ENCODE || request.least == REGATTA_DECODE;
  if (request.device >= static_cast<unsigned>(books_.device_count()) || !is_known)
    return reply(connection, {.answer = Answer::kRefused});
  const auto device = static_cast<int>(request.device);
  if (books_.is_drained(device)) return reply(connection, failed(Books::drained_error(device)));
  const auto engine = static_cast<regatta_engine>(request.least);
  grant_or_refuse(connection,
                  [&] { return engines_.open_session(books_, client, device, engine); });
}

void Daemon::answer_operator(Connection& connection, const Message& message) {
  if (const auto allowed =
          check_operator(books_, membership_, connection.peer.pid, connection.peer.uid);
      !allowed) {
    return reply(connection, failed(allowed.error()));
  }
  const auto process = read_process(connection.peer.pid);
  if (!process) return reply(connection, failed(process.error()));
  times_.look(books_);  // for what is shown
  engines_.step(books_, os::monotonic_ns());
  const auto answer =
      answer_control({books_, membership_, times_, engines_}, message.bytes, process->id);
  end_unheld();
  residences_.stir();
  if (!answer) return reply(connection, failed(answer.error()));
  int page = -1;
  if (answer->tenant >= 0) {
    const auto client = books_.find_client(process->id);
    if (!client || !watch_process(*client)) {
      if (client) bury(*client);
      return;
    }
    page = books_.tenant_page(answer->tenant);
  }
  // Text of any length goes in a memory file.
  const os::UniqueFd text(::memfd_create("regatta-gpu-answer", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(answer->text.size());
  if (!text || ::write(text.get(), answer->text.data(), answer->text.size()) != size)
    return reply(connection, failed(os::errno_error("cannot write the answer")));
  reply(connection, Reply(), {text.get(), page});
}

}  // namespace regatta::sharing
