// comm/internal/transport/spread_ports.h: chooses source ports whose connections spread evenly over
// equal-cost links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace regatta::comm {

// The routers on the path of this source port, nearest first; "" is one without a reply. ECMP
// switches hash addresses and ports, so the port alone decides.
struct TracedPort {
  std::uint16_t port = 0;
  std::vector<std::string> routers;
};

// Indices of `count` of the candidates besides the `taken` first ones, which are in use already.
// Every switch on the path divides its connections among its next hops as evenly as the candidates
// allow, the nearest switch first. Fewer when there are no more candidates.
std::vector<std::size_t> spread_ports(const std::vector<TracedPort>& candidates, std::size_t taken,
                                      std::size_t count);

}  // namespace regatta::comm
