// fabric/internal/packet/simulation_clock.h: the time of the packets and the time of the flows,
// which is ahead by all time that fast-forwards skipped.
#pragma once

#include <algorithm>
#include <cmath>

#include "regatta/network/fabric/internal/packet/calendar_queue.h"

namespace regatta::fabric::packet {

inline Picoseconds picoseconds(double seconds) {
  return std::llround(seconds * 1e12);
}
constexpr double seconds(Picoseconds time) {
  return static_cast<double>(time) * 1e-12;
}

// Picoseconds can count more, with some to spare.
inline constexpr Picoseconds kLatest = 4'000'000'000'000'000'000;

struct SimulationClock {
  Picoseconds now = 0;  // of the packets
  Picoseconds skipped = 0;

  Picoseconds flow_time() const { return now + skipped; }
  // The time of the packets when the flows reach theirs, if they have not yet; otherwise now.
  Picoseconds packet_time(Picoseconds flow_time) const {
    return std::max(now, flow_time - skipped);
  }
};

}  // namespace regatta::fabric::packet
