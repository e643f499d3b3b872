// comm/internal/transport/path_discovery.h: finds source ports whose connections to one rank spread
// over all links. Connections with different source ports take different equal-cost links (ECMP),
// but at random: all of eight may share one uplink. A router replies with its address to a SYN
// whose hops are used up, so the path of a port is known before it is used (as in traceroute; RFC
// 792). Where routers do not reply, and where kernels before 5.19 do not pass their replies to a
// socket that is still connecting, connections keep the ports that the kernel assigns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/socket.h"
#include "regatta/runtime/comm/internal/transport/spread_ports.h"

namespace regatta::comm {

// Probes the routers on the path of one source port, one after the other.
class PortTrace {
 public:
  // From router `first_hop` (1 is the nearest) to router `last_hop`. The kernel chooses the port.
  PortTrace(std::string from, TcpAddress to, int first_hop, int last_hop);

  enum class State {
    kInProgress,
    kKnown,    // all routers were probed; "" stands for one without a reply
    kReached,  // the path is shorter than `last_hop`: take_fd(), it is connected
    kUnknown,  // two routers in a row do not reply, or the peer cannot be reached
  };
  State serve(Seconds now);

  int poll_fd() const { return fd_.get(); }
  const TracedPort& traced() const { return traced_; }
  os::UniqueFd take_fd() { return std::move(fd_); }

 private:
  State next_hop(std::string router);

  TcpAddress from_;
  TcpAddress to_;
  int hop_;
  int last_hop_;
  int silent_ = 0;  // routers without a reply in a row
  os::UniqueFd fd_;
  Seconds probed_at_;
  TracedPort traced_;
};

// The ports of all connections to one rank.
class PathDiscovery {
 public:
  // For `count` connections from the numeric address `from`; the rank at `to` listens already.
  PathDiscovery(int peer, std::string from, TcpAddress to, std::size_t count);

  // Continues without blocking; true at the end, at most 0.3 s after the first call.
  bool serve(Seconds now);
  void add_poll_fds(std::vector<pollfd>& fds) const;
  int peer() const { return peer_; }
  // The number of different paths of the traced ports; at least 1.
  int paths() const;

  // The source of a connection: a port (0: any); the first one may have an open socket.
  struct Start {
    std::uint16_t port = 0;
    os::UniqueFd fd;
  };
  // `count` of them, once.
  std::vector<Start> take();

 private:
  bool serve_first_trace(Seconds now);
  bool serve_candidate_traces(Seconds now);

  int peer_;
  std::string from_;
  TcpAddress to_;
  std::size_t count_;
  Seconds deadline_{0};
  PortTrace first_trace_;  // counts the routers; becomes the first connection
  bool is_first_trace_done_ = false;
  os::UniqueFd first_trace_fd_;
  std::vector<PortTrace> candidates_;
  std::vector<TracedPort> known_;
};

}  // namespace regatta::comm
