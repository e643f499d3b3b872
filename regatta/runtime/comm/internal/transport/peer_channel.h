// comm/internal/transport/peer_channel.h: the open connections to one peer, from which a PeerLink
// is made.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/shm_ring.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

// The sender of data opens a connection: it chooses the source port, and with it the path. The
// higher rank opens the control connection, which both use.
struct TcpConnections {
  os::UniqueFd control;
  std::vector<os::UniqueFd> out;
  std::vector<os::UniqueFd> in;
};

// A segment and a wake-up socket, or TCP connections; empty for the rank itself. Where both ranks
// use RDMA, only the control connection, over which the queue pairs are connected.
struct PeerChannel {
  std::optional<RingSegment> segment;
  bool is_creator = false;  // this side made the segment
  os::UniqueFd wake_socket;
  SharedSegment shared_segment;  // the peer's; closed where there is none
  TcpConnections tcp;
  bool uses_rdma = false;
};

}  // namespace regatta::comm
