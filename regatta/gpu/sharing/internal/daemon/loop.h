// sharing/internal/daemon/loop.h: the daemon at work: who is connected, and what is done when one
// asks, rings or ends. Of daemon.cc (the loop) and answers.cc (what is asked) only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/books.h"
#include "regatta/gpu/sharing/internal/daemon/engines.h"
#include "regatta/gpu/sharing/internal/daemon/membership.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"
#include "regatta/gpu/sharing/internal/daemon/residences.h"
#include "regatta/gpu/sharing/internal/daemon/timekeeper.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

struct Connection {
  os::UniqueFd fd;
  ucred peer{};
  int client = -1;  // after its hello
  bool is_bell = false;
};

class Daemon {
 public:
  Daemon(Books books, Membership membership, Timekeeper times, Engines engines,
         Residences residences, os::UniqueFd epoll, os::UniqueFd door)
      : books_(std::move(books)),
        membership_(std::move(membership)),
        times_(std::move(times)),
        engines_(std::move(engines)),
        residences_(std::move(residences)),
        epoll_(std::move(epoll)),
        door_(std::move(door)),
        pidfds_(kClientsMax),
        connection_of_(kClientsMax, -1),
        bell_of_(kClientsMax, -1) {}

  Status adopt_clients();
  Status run(const std::atomic<bool>& stop);

 private:
  enum class Source : std::uint32_t { kDoor, kConnection, kProcess, kTimer, kEngines, kResidences };

  bool watch(int fd, Source source, int number);
  void accept_all();
  void hear(int number);
  void hang_up(int number);
  bool watch_process(int client);
  bool has_ended(int client) const;
  void bury(int client);
  bool bury_dead(int tenant);
  void end_if_unheld(int tenant);
  void end_unheld();
  void look_at_cgroups();
  Result<int> client_for_hello(const Request& request, ProcessId process, bool has_page);
  void answer_place(Connection& connection);
  void answer_hello(Connection& connection, const Request& request, Message& message);
  void answer_client(Connection& connection, const Request& request);
  void answer_lease(Connection& connection, const Request& request);
  void answer_movable(Connection& connection, const Request& request);
  void answer_bind(Connection& connection);
  void answer_session(Connection& connection, const Request& request);
  template <typename Grant>
  void grant_or_refuse(Connection& connection, const Grant& grant);
  void answer_bell(Connection& connection, const Request& request);
  void answer_operator(Connection& connection, const Message& message);
  int tenant_of(int client) const {
    return static_cast<int>(books_.state().clients[client].tenant);
  }
  void reply(Connection& connection, const Reply& answer, std::array<int, 2> fds = {-1, -1});

  Books books_;
  Membership membership_;
  Timekeeper times_;
  Engines engines_;
  Residences residences_;
  os::UniqueFd epoll_;
  os::UniqueFd door_;
  std::vector<os::UniqueFd> pidfds_;     // of each client
  std::vector<int> connection_of_;       // of each client, -1: none
  std::vector<int> bell_of_;             // likewise
  std::vector<Connection> connections_;  // by descriptor
  std::size_t connection_count_ = 0;
  Seconds last_look_{0.0};  // at the cgroups
};

}  // namespace regatta::sharing
