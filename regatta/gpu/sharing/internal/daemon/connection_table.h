// sharing/internal/daemon/connection_table.h: the connections of clients and operators to the
// daemon. A client has at most one connection for requests and one for events.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <sys/socket.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

struct ClientConnection {
  os::UniqueFd fd;  // none: closed
  ucred peer{};
  int client = -1;  // after its handshake
  bool is_event_connection = false;
};

class ConnectionTable {
 public:
  explicit ConnectionTable(os::UniqueFd listener);

  int listener() const { return listener_.get(); }
  // Accepts the next connection; returns its number, the descriptor. None: nobody waits. One too
  // many, or one whose peer is unknown, is closed at once.
  std::optional<int> accept();
  // The reference stays valid until the next accept().
  ClientConnection& at(int number) { return connections_[as_index(number)]; }

  // The client's connection of this kind; -1: none.
  int of_client(int client, bool is_event_connection) const {
    return regatta::at(numbers(is_event_connection), client);
  }
  void set_client(ClientConnection& connection, int client, bool is_event_connection);
  // Closes it; returns what it was.
  ClientConnection close(int number);

 private:
  const std::vector<int>& numbers(bool is_event_connection) const {
    return is_event_connection ? event_connection_of_ : connection_of_;
  }

  os::UniqueFd listener_;
  std::vector<ClientConnection> connections_;  // by descriptor
  std::size_t count_ = 0;
  std::vector<int> connection_of_;        // of each client, -1: none
  std::vector<int> event_connection_of_;  // likewise
};

}  // namespace regatta::sharing
