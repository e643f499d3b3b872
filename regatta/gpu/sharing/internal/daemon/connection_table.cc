#include "regatta/gpu/sharing/internal/daemon/connection_table.h"

#include <utility>

#include "regatta/base/os/socket.h"

namespace regatta::sharing {
namespace {

constexpr std::size_t kConnectionsMax = 3 * kClientsMax;

}  // namespace

ConnectionTable::ConnectionTable(os::UniqueFd listener)
    : listener_(std::move(listener)),
      connection_of_(kClientsMax, -1),
      event_connection_of_(kClientsMax, -1) {}

std::optional<int> ConnectionTable::accept() {
  for (;;) {
    os::UniqueFd fd = os::accept_connection(listener_);
    if (!fd) return std::nullopt;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool is_known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (!is_known || peer.pid <= 0 || count_ >= kConnectionsMax) continue;
    const int number = fd.get();
    if (as_index(number) >= connections_.size()) connections_.resize(as_index(number) + 64);
    at(number) = {std::move(fd), peer};
    ++count_;
    return number;
  }
}

void ConnectionTable::set_client(ClientConnection& connection, int client,
                                 bool is_event_connection) {
  connection.client = client;
  connection.is_event_connection = is_event_connection;
  auto& of_client = is_event_connection ? event_connection_of_ : connection_of_;
  regatta::at(of_client, client) = connection.fd.get();
}

ClientConnection ConnectionTable::close(int number) {
  ClientConnection closed = std::exchange(at(number), ClientConnection());
  if (!closed.fd) return closed;
  --count_;
  if (closed.client >= 0)
    regatta::at(closed.is_event_connection ? event_connection_of_ : connection_of_, closed.client) =
        -1;
  closed.fd.reset();
  return closed;
}

}  // namespace regatta::sharing
