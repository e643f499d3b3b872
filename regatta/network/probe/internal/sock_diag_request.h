// probe/internal/sock_diag_request.h: queries to the kernel about TCP connections, and their
// answers. Source: sock_diag(7), linux/inet_diag.h, linux/tcp.h.
#pragma once

#include <cstdint>

#include <linux/inet_diag.h>
#include <linux/netlink.h>

#include "regatta/network/probe/flow_counters.h"

namespace regatta::probe {

struct SockDiagRequest {
  nlmsghdr head{};
  inet_diag_req_v2 body{};
};

// About all established connections of AF_INET or AF_INET6, with NLM_F_DUMP as `flags`.
SockDiagRequest question_for(std::uint8_t family, std::uint16_t flags, std::uint32_t sequence);
// About this connection alone.
SockDiagRequest question_for(const ConnectionCounters& known, std::uint32_t sequence);
// False when the answer lacks the queried data.
bool parse_connection(const nlmsghdr& message, ConnectionCounters& out);

}  // namespace regatta::probe
