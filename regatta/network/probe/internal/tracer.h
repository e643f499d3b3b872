// probe/internal/tracer.h: probes the routers on the path of a 5-tuple, one after the other, by
// packets whose time to live ends there (as traceroute does). Acts: Linux. Sources: RFC 792 (time
// exceeded), RFC 1812 4.3.2.3 (the returned part of the packet), ip(7) IP_RECVERR. Idea for each
// 5-tuple: Augustin et al., "Avoiding traceroute anomalies with Paris traceroute", IMC 2006.
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

// Traces all at once; takes kTraceStep for each packet of the longest and kTraceGrace. None for a
// path whose port another program has. Only routers that return 16 bytes of a packet or more count.
// Empty as a whole when `stop` was set, or when this thread was delayed so long that the losses are
// unknown.
std::vector<std::optional<std::vector<TraceHop>>> trace(std::span<const Traced> paths,
                                                        const std::atomic<bool>& stop);

}  // namespace regatta::probe
