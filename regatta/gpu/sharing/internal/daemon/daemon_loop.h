// sharing/internal/daemon/daemon_loop.h: the daemon's event loop: it accepts connections, answers
// requests, and ends the leases of processes that have exited. daemon_loop.cc has the loop,
// daemon_loop_handshake.cc admits clients, daemon_loop_requests.cc answers.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <utility>
#include <variant>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/client_processes.h"
#include "regatta/gpu/sharing/internal/daemon/connection_table.h"
#include "regatta/gpu/sharing/internal/daemon/daemon_parts.h"
#include "regatta/gpu/sharing/internal/daemon/event_poll.h"
#include "regatta/gpu/sharing/internal/daemon/peer_process.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

class DaemonLoop {
 public:
  DaemonLoop(DaemonParts parts, EventPoll poll, ConnectionTable connections)
      : parts_(std::move(parts)), poll_(std::move(poll)), connections_(std::move(connections)) {}

  // Takes over the clients that an earlier daemon left: removes the dead, watches the living, and
  // opens their pages. A client whose page may not be opened keeps what it has until its next
  // request.
  Status adopt_clients();
  Status run(const std::atomic<bool>& stop);

 private:
  void handle(const PollEvent& event);
  void accept_newcomers();
  void close_overdue();
  void read_message(int number);
  void close_connection(int number);
  void close_connections_of(int client);
  void adopt_client(int client, Seconds look_until);
  bool watch_process(int client, os::UniqueFd pidfd);
  void on_client_exit(int client);
  bool reap_exited_clients(int tenant);
  void reap_tenant(int tenant);
  void reap_unused_tenants();
  void poll_cgroups();
  std::optional<int> living_client(pid_t pid) const;
  std::optional<ClientReply> check_membership(const ProcessStat& process, int tenant,
                                              const os::UniqueFd& tenant_page) const;
  Result<bool> is_still_client(int client, int tenant, bool has_page);
  Result<int> add_client(int tenant, ProcessId process, os::UniqueFd pidfd);
  std::variant<int, ClientReply> client_for_handshake(const ClientConnection& connection,
                                                      const ClientRequest& request,
                                                      DaemonMessage& message);
  Result<os::UniqueFd> share_page(int client, bool has_one, os::UniqueFd page);
  void answer_find_tenant(ClientConnection& connection);
  void answer_handshake(ClientConnection& connection, const ClientRequest& request,
                        DaemonMessage& message);
  void answer_client(ClientConnection& connection, const ClientRequest& request);
  void answer_event_connection(ClientConnection& connection, const ClientRequest& request);
  void answer_operator(ClientConnection& connection, const DaemonMessage& message);
  void reply(ClientConnection& connection, const ClientReply& answer,
             std::array<int, 2> fds = {-1, -1});

  DaemonParts parts_;
  EventPoll poll_;
  ConnectionTable connections_;
  ClientProcesses processes_;
  Seconds last_poll_{0.0};  // of what is not reported: cgroups, newcomers
};

}  // namespace regatta::sharing
