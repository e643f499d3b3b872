// heal/internal/route_audit.h: finds the routes that another program has changed, by comparing what
// is installed with what the healer installed. Pure: time is an argument.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/heal/internal/switches.h"
#include "regatta/network/heal/internal/tables.h"

namespace regatta::heal {

// A route that is not as the healer installed it.
struct AlteredRoute {
  RouteChange repair;         // returned: hops that it lacks; withdrawn: hops that it has too many
  std::vector<Part> found;    // none: no route, or one that discards
  std::uint8_t protocol = 0;  // RTPROT_* of the program that installed what was found

  friend bool operator==(const AlteredRoute&, const AlteredRoute&) = default;
};

class RouteAudit {
 public:
  // When the installed routes are to be read again: each second, or earlier.
  Seconds next() const { return next_; }
  // Another program has changed a route: reads soon, but less often while it goes on doing so.
  void read_soon(Seconds now);

  // Routes that differ in this reading, as it found them, and differed in the one before: an
  // interface that goes off between two messages of a kernel looks like a change for a moment.
  std::vector<AlteredRoute> compare(const Tables& tables, std::span<const Installed> installed,
                                    Seconds now);

 private:
  static constexpr Seconds kFirstPause{0.02};

  Seconds next_;
  Seconds read_at_;
  Seconds disturbed_at_;         // by another program, last
  Seconds pause_ = kFirstPause;  // between two readings after a change
  bool is_hurried_ = false;
  std::vector<std::pair<NodeId, NodeId>> suspects_;  // switch and leaf of routes that differed once
};

// "boot", "bird", "protocol 77". Source: linux/rtnetlink.h.
std::string protocol_name(std::uint8_t protocol);

}  // namespace regatta::heal
