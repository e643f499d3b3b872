// comm/internal/transport/peer_channel.h: the open way to one peer, before a PeerLink is made of
// it.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/shm_ring.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

// Who sends has connected: it chose the source ports, and with them the ways that its data takes.
// The control connection, which the higher rank opens, is used by both.
struct TcpConnections {
  os::UniqueFd control;
  std::vector<os::UniqueFd> out;
  std::vector<os::UniqueFd> in;
};

// A segment and a wake-up socket, or TCP connections; empty for the rank itself. Where both ranks
// use RDMA, one for control alone: the rest comes to be over it.
struct PeerChannel {
  std::optional<RingSegment> segment;
  bool is_creator = false;  // this side made the segment
  os::UniqueFd wake_socket;
  SharedSegment shared_segment;  // the peer's; closed where it could not be had
  TcpConnections tcp;
  bool uses_rdma = false;
};

}  // namespace regatta::comm
