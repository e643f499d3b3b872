// comm/internal/transport/path_discovery.h: finds source ports whose connections to one rank spread
// over all links. Connections that differ in the source port take different ones of the equal-cost
// links on the way (ECMP), but by chance: of eight, all may meet on one uplink. A SYN that may pass
// few routers ends at one that answers with its address, so a port tells its way before it is used
// (as traceroute does; RFC 792). Ports stay as the kernel gives them where routers keep silent, and
// where kernels before 5.19 do not hand their answers to a socket that is still connecting.
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

// Asks the routers on the way of one source port, one after the other.
class PortTrace {
 public:
  // From router `first_hop` (1 is the nearest) to router `last_hop`. The kernel chooses the port.
  PortTrace(std::string from, TcpAddress to, int first_hop, int last_hop);

  enum class State {
    kInProgress,
    kKnown,    // all routers were asked; "" stands for one that kept silent
    kReached,  // the other end was there before `last_hop`: take fd(), it is connected
    kUnknown,  // two routers in a row keep silent, or the other end cannot be reached
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
  int silent_ = 0;  // routers without an answer in a row
  os::UniqueFd fd_;
  Seconds asked_at_;
  TracedPort traced_;
};

// The ports of all connections to one rank.
class PathDiscovery {
 public:
  // For `count` connections from the numeric address `from`; the rank behind `to` listens already.
  PathDiscovery(int peer, std::string from, TcpAddress to, std::size_t count);

  // Goes on without blocking; true at the end, at most 0.3 s after the first call.
  bool serve(Seconds now);
  void add_poll_fds(std::vector<pollfd>& fds) const;
  int peer() const { return peer_; }
  // In how many different ways the traced ports go; at least 1.
  int paths() const;

  // What a connection starts from: a port (0: any) and, of the first one, perhaps an open socket.
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
  PortTrace first_trace_;  // finds how many routers there are; becomes the first connection
  bool is_first_trace_done_ = false;
  os::UniqueFd first_trace_fd_;
  std::vector<PortTrace> candidates_;
  std::vector<TracedPort> known_;
};

}  // namespace regatta::comm
