// sharing/internal/daemon/connection_table.h: the connections of clients and operators to the
// daemon. A client has at most one connection for requests and one for events. All others are
// newcomers: their number is limited, and so is their time.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include <sys/socket.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

struct ConnectionLimits {
  // The most newcomers, so that none of a user and none of a process keeps the others out.
  std::size_t newcomers = 1024;
  std::size_t newcomers_of_user = 512;
  std::size_t newcomers_of_process = 8;
  std::size_t kept_for_operators = 64;  // beside them
  // A newcomer that is no client after this time is closed; an operator, after its last request.
  Seconds newcomer_time{1.0};
};

struct ClientConnection {
  os::UniqueFd fd;  // none: closed
  ucred peer{};
  int client = -1;  // after its handshake; until then it is a newcomer
  bool is_event_connection = false;
  bool has_operators_place = false;
  Seconds since{0.0};  // when it was accepted, or an operator asked last
};

class ConnectionTable {
 public:
  explicit ConnectionTable(os::UniqueFd listener, ConnectionLimits limits = {});

  int listener() const { return listener_.get(); }
  // Accepts the next connection; returns its number, the descriptor. None: nobody waits, or as many
  // were looked at as are in one go. One too many is told so and closed at once.
  std::optional<int> accept(Seconds now, int& looks);
  // The reference stays valid until the next accept().
  ClientConnection& at(int number) { return connections_[as_index(number)]; }
  // Newcomers whose time is over and that have sent nothing which is still unread.
  std::vector<int> overdue(Seconds now) const;

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
  os::UniqueFd accept_next();
  bool has_place(ClientConnection& newcomer) const;
  void count(const ClientConnection& newcomer, int by);

  os::UniqueFd listener_;
  os::UniqueFd spare_;  // makes room to refuse a connection where no descriptor is left
  ConnectionLimits limits_;
  std::vector<ClientConnection> connections_;  // by descriptor
  std::size_t newcomers_ = 0;
  std::size_t in_operators_places_ = 0;
  std::unordered_map<uid_t, std::size_t> newcomers_of_user_;
  std::unordered_map<pid_t, std::size_t> newcomers_of_process_;
  std::vector<int> connection_of_;        // of each client, -1: none
  std::vector<int> event_connection_of_;  // likewise
};

}  // namespace regatta::sharing
