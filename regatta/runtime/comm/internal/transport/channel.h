// comm/internal/transport/channel.h: the open way to one peer, before a Link is made of it.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/shm_ring.h"
#include "regatta/runtime/comm/shelf.h"

namespace regatta::comm {

// Who sends has dialled: it chose the source ports, and with them the ways that its data takes. The
// control connection, which the higher rank dials, is used by both.
struct TcpConnections {
  os::UniqueFd control;
  std::vector<os::UniqueFd> out;
  std::vector<os::UniqueFd> in;
};

// A segment and a bell, or TCP connections; empty for the rank itself. Where both ranks use RDMA,
// one for control alone: the rest comes to be over it.
struct Channel {
  std::optional<ShmSegment> segment;
  bool is_creator = false;  // this side made the segment
  os::UniqueFd bell;
  Shelf shelf;  // the peer's; closed where it could not be had
  TcpConnections tcp;
  bool uses_rdma = false;
};

}  // namespace regatta::comm
