// sharing/internal/daemon/daemon_loop.h: the daemon at work: who is connected, and what is done
// when one asks, rings or ends. Of daemon.cc (the loop) and daemon_loop_requests.cc (what is asked)
// only.
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
#include "regatta/gpu/sharing/internal/daemon/engine_shares.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"
#include "regatta/gpu/sharing/internal/daemon/residency_manager.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_cgroups.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/daemon/turn_manager.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

struct ClientConnection {
  os::UniqueFd fd;
  ucred peer{};
  int client = -1;  // after its handshake
  bool is_event_connection = false;
};

class DaemonLoop {
 public:
  DaemonLoop(TenantStore tenant_store, TenantCgroups tenant_cgroups, TurnManager turn_manager,
             EngineShares engines, ResidencyManager residency_manager, os::UniqueFd epoll,
             os::UniqueFd listener)
      : tenant_store_(std::move(tenant_store)),
        tenant_cgroups_(std::move(tenant_cgroups)),
        turn_manager_(std::move(turn_manager)),
        engines_(std::move(engines)),
        residency_manager_(std::move(residency_manager)),
        epoll_(std::move(epoll)),
        listener_(std::move(listener)),
        pidfds_(kClientsMax),
        connection_of_(kClientsMax, -1),
        event_connection_of_(kClientsMax, -1) {}

  Status adopt_clients();
  Status run(const std::atomic<bool>& stop);

 private:
  enum class Source : std::uint32_t {
    kListener,
    kConnection,
    kProcess,
    kTimer,
    kEngines,
    kResidencyEvents
  };

  bool watch(int fd, Source source, int number);
  void accept_all();
  void read_message(int number);
  void close_connection(int number);
  bool watch_process(int client);
  bool has_ended(int client) const;
  void on_client_exit(int client);
  bool reap_exited_clients(int tenant);
  void reap_tenant(int tenant);
  void reap_unused_tenants();
  void poll_cgroups();
  Result<int> client_for_handshake(const ClientRequest& request, ProcessId process, bool has_page);
  void answer_find_tenant(ClientConnection& connection);
  void answer_handshake(ClientConnection& connection, const ClientRequest& request,
                        DaemonMessage& message);
  void answer_client(ClientConnection& connection, const ClientRequest& request);
  void answer_lease(ClientConnection& connection, const ClientRequest& request);
  void answer_swappable(ClientConnection& connection, const ClientRequest& request);
  void answer_pin(ClientConnection& connection);
  void answer_session(ClientConnection& connection, const ClientRequest& request);
  template <typename Grant>
  void grant_or_refuse(ClientConnection& connection, const Grant& grant);
  void answer_event_connection(ClientConnection& connection, const ClientRequest& request);
  void answer_operator(ClientConnection& connection, const DaemonMessage& message);
  int tenant_of(int client) const {
    return static_cast<int>(tenant_store_.state().clients[client].tenant);
  }
  void reply(ClientConnection& connection, const ClientReply& answer,
             std::array<int, 2> fds = {-1, -1});

  TenantStore tenant_store_;
  TenantCgroups tenant_cgroups_;
  TurnManager turn_manager_;
  EngineShares engines_;
  ResidencyManager residency_manager_;
  os::UniqueFd epoll_;
  os::UniqueFd listener_;
  std::vector<os::UniqueFd> pidfds_;           // of each client
  std::vector<int> connection_of_;             // of each client, -1: none
  std::vector<int> event_connection_of_;       // likewise
  std::vector<ClientConnection> connections_;  // by descriptor
  std::size_t connection_count_ = 0;
  Seconds last_poll_{0.0};  // at the cgroups
};

}  // namespace regatta::sharing
