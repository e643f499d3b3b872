// diag/observation.h: what is seen of a network: by the probers on its servers, by its switches,
// and by those who send over it. Time is cut into windows of equal length, numbered alike on all
// servers; probes belong to the window in which they were due to be sent.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::diag {

using Window = std::int64_t;  // starts at its number times the length of a window

// How busy the server itself was, from the start of the window until the report was written: what a
// prober learns from when it should have woken up, and from packets to itself over loopback.
struct HostState {
  Seconds worst_gap;               // by which it, or an answer over loopback, was late
  std::uint32_t control_sent = 0;  // packets over loopback
  std::uint32_t control_lost = 0;  // not back yet
  std::uint32_t overflows = 0;     // packets that came and found no room
};

// One window of probe `probe` (2 k and 2 k + 1 are its paths there and back), by who sends it.
struct SentCount {
  std::uint32_t probe = 0;
  std::uint16_t sent = 0;
  std::uint16_t answered = 0;  // by now
};

// The same by who answers it. The sender counts the windows.
struct ArrivedCount {
  std::uint32_t probe = 0;
  std::uint16_t arrived = 0;
};

// Of one server, complete: all that it sent and saw arriving, zeros too. May come again for a
// window when answers came late: counts only grow.
struct ProbeReport {
  NodeId server;
  Window window = 0;
  HostState host;
  std::vector<SentCount> sent;
  std::vector<ArrivedCount> arrived;
};

// The carrier of a cable is lost or back, as one end says.
struct CarrierEvent {
  LinkId link;
  bool up = false;
};

// Other packets whose path, there and back, is known: of a connection, by its retransmits; of a
// traceroute, as far as the router that was asked. They suspect nobody: what they say counts for
// the choice among those whom probes suspect.
struct PassiveCount {
  Window window = 0;
  std::vector<std::uint32_t> links;  // directed, by fabric::number_of
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;  // at most `sent`
  // Of a traceroute the router that was asked: it may answer even if it passes nothing on.
  NodeId asked;
  // Share that is lost where nothing is broken, above 0: full queues, routers that do not answer.
  double background = 0.02;
};

}  // namespace regatta::diag
