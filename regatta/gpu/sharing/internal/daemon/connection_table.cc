#include "regatta/gpu/sharing/internal/daemon/connection_table.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "regatta/base/os/socket.h"
#include "regatta/gpu/sharing/internal/daemon/operators.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {
namespace {

os::UniqueFd open_spare() {
  return os::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

// The client asks again; it is not left without a daemon.
void refuse(const os::UniqueFd& connection, const ucred& peer) {
  ClientReply reply =
      failed({Code::kExhausted, "process " + std::to_string(peer.pid) +
                                    ": too many connections wait for the daemon, of it, of user " +
                                    std::to_string(peer.uid) + " or of all; end some"});
  reply.status = ReplyStatus::kRetryLater;
  static_cast<void>(send_message(connection.get(), as_bytes(reply)).has_value());
}

template <typename Key>
void add_to(std::unordered_map<Key, std::size_t>& counts, Key key, int by) {
  const auto found = counts.try_emplace(key, 0).first;
  found->second += static_cast<std::size_t>(by);
  if (found->second == 0) counts.erase(found);
}

template <typename Key>
std::size_t count_of(const std::unordered_map<Key, std::size_t>& counts, Key key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

ConnectionTable::ConnectionTable(os::UniqueFd listener, ConnectionLimits limits)
    : listener_(std::move(listener)),
      spare_(open_spare()),
      limits_(limits),
      connection_of_(kClientsMax, -1),
      event_connection_of_(kClientsMax, -1) {}

// Where this process can open no more, the connection is closed: it would be reported for ever.
os::UniqueFd ConnectionTable::accept_next() {
  os::UniqueFd fd = os::accept_connection(listener_);
  if (fd || (errno != EMFILE && errno != ENFILE)) return fd;
  spare_.reset();
  fd = os::accept_connection(listener_);
  fd.reset();
  spare_ = open_spare();
  return {};
}

bool ConnectionTable::has_place(ClientConnection& newcomer) const {
  const ucred& peer = newcomer.peer;
  if (count_of(newcomers_of_process_, peer.pid) >= limits_.newcomers_of_process) return false;
  if (newcomers_ < limits_.newcomers &&
      count_of(newcomers_of_user_, peer.uid) < limits_.newcomers_of_user)
    return true;
  newcomer.has_operators_place =
      in_operators_places_ < limits_.kept_for_operators && may_be_operator(peer.pid, peer.uid);
  return newcomer.has_operators_place;
}

void ConnectionTable::count(const ClientConnection& newcomer, int by) {
  add_to(newcomers_of_process_, newcomer.peer.pid, by);
  if (newcomer.has_operators_place) {
    in_operators_places_ += static_cast<std::size_t>(by);
  } else {
    newcomers_ += static_cast<std::size_t>(by);
    add_to(newcomers_of_user_, newcomer.peer.uid, by);
  }
}

std::optional<int> ConnectionTable::accept(Seconds now, int& looks) {
  while (looks-- > 0) {
    ClientConnection newcomer{.fd = accept_next(), .since = now};
    if (!newcomer.fd) return std::nullopt;
    socklen_t size = sizeof newcomer.peer;
    const int number = newcomer.fd.get();
    if (::getsockopt(number, SOL_SOCKET, SO_PEERCRED, &newcomer.peer, &size) != 0 ||
        newcomer.peer.pid <= 0)
      continue;
    if (!has_place(newcomer)) {
      refuse(newcomer.fd, newcomer.peer);
      continue;
    }
    count(newcomer, 1);
    if (as_index(number) >= connections_.size()) connections_.resize(as_index(number) + 64);
    at(number) = std::move(newcomer);
    return number;
  }
  return std::nullopt;
}

std::vector<int> ConnectionTable::overdue(Seconds now) const {
  std::vector<int> numbers;
  if (newcomers_ + in_operators_places_ == 0) return numbers;
  for (const ClientConnection& connection : connections_) {
    if (!connection.fd || connection.client >= 0 || now - connection.since < limits_.newcomer_time)
      continue;
    pollfd entry{connection.fd.get(), POLLIN, 0};
    if (::poll(&entry, 1, 0) == 0) numbers.push_back(connection.fd.get());
  }
  return numbers;
}

void ConnectionTable::set_client(ClientConnection& connection, int client,
                                 bool is_event_connection) {
  if (connection.client < 0) count(connection, -1);
  connection.client = client;
  connection.is_event_connection = is_event_connection;
  auto& of_client = is_event_connection ? event_connection_of_ : connection_of_;
  regatta::at(of_client, client) = connection.fd.get();
}

ClientConnection ConnectionTable::close(int number) {
  ClientConnection closed = std::exchange(at(number), ClientConnection());
  if (!closed.fd) return closed;
  if (closed.client < 0) count(closed, -1);
  if (closed.client >= 0)
    regatta::at(closed.is_event_connection ? event_connection_of_ : connection_of_, closed.client) =
        -1;
  closed.fd.reset();
  return closed;
}

}  // namespace regatta::sharing
