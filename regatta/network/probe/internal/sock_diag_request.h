// probe/internal/sock_diag_request.h: what the kernel is asked about TCP connections, and what it
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
// About this one alone.
SockDiagRequest question_for(const ConnectionCounters& known, std::uint32_t sequence);
// False when the answer does not tell what was asked.
bool take(const nlmsghdr& message, ConnectionCounters& out);

}  // namespace regatta::probe
