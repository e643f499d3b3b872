// probe/internal/tracer.h: asks the routers on the path of a 5-tuple, one after the other, by
// packets whose time to live ends there (as traceroute does). Acts: Linux. Sources: RFC 792 (time
// exceeded), RFC 1812 4.3.2.3 (what of the packet comes back), ip(7) IP_RECVERR. Idea for
// each 5-tuple: Augustin et al., "Avoiding traceroute anomalies with Paris traceroute", IMC 2006.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/probe/evidence.h"

namespace regatta::probe {

struct Traced {
  fabric::FiveTuple flow;  // UDP; its source address and port are this server's
  int hops = 0;
  int tries = 1;
};

inline constexpr Seconds kTraceStep{0.01};  // between two packets on one path
inline constexpr Seconds kTraceGrace{0.1};  // for the last answers

// All at once; takes kTraceStep for each packet of the longest and kTraceGrace. None of a path
// whose port another program has. Routers are heard that send back 16 bytes of a packet or more.
// Empty as a whole when `stop` was set, or when this thread itself was kept waiting so long that
// nobody knows what was lost.
std::vector<std::optional<std::vector<TraceHop>>> trace(std::span<const Traced> paths,
                                                        const std::atomic<bool>& stop);

}  // namespace regatta::probe
