// probe/evidence.h: findings of a prober besides its probes, mostly on request: routers that answer
// on a path, retransmits of connections, carriers of its NICs. As data, and as lines; format:
// docs/formats/probe.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::probe {

inline constexpr std::uint8_t kTcp = 6;                             // protocol of a 5-tuple
inline constexpr int kHopsMost = 8;                                 // routers on a path
inline constexpr int kTriesMost = 16;                               // packets to each of them
inline constexpr int kFlowsMost = 256;                              // connections in one answer
inline constexpr int kAddressesMost = 1024;                         // of a server
inline constexpr std::size_t kLongestEvidence = 64UL * kFlowsMost;  // bytes of a line

// A traceroute request.
struct TraceOrder {
  std::uint32_t path = 0;  // 2 k and 2 k + 1 of probe k
  int hops = 0;            // routers on it, 1 to kHopsMost
  int tries = 1;           // packets to each, 1 to kTriesMost
};
struct FlowsOrder {};     // segments of connections since the last one
struct CarriersOrder {};  // states of all NICs, and all addresses
using Order = std::variant<TraceOrder, FlowsOrder, CarriersOrder>;

struct EvidenceRequest {
  NodeId server;
  Order order;
};

// Packets that should have ended at a router, and how many it answered.
struct TraceHop {
  std::uint16_t sent = 0;
  std::uint16_t answered = 0;
  std::uint32_t router = 0;  // the last address that answered; 0: none has
};

// Packets of a probe's 5-tuple that ended at one router after the other.
struct Trace {
  diag::Window window = 0;
  std::uint32_t path = 0;
  std::vector<TraceHop> hops;
};

// Segments of a TCP connection from this server to another.
struct FlowCount {
  fabric::FiveTuple flow;
  std::uint32_t segments = 0;  // including retransmits
  std::uint32_t again = 0;     // at most `segments`
};
struct FlowCounts {
  diag::Window window = 0;  // the last one
  std::vector<FlowCount> flows;
};

struct NicCarrier {
  std::uint32_t address = 0;
  bool up = false;
};

// The IPv4 addresses of the server by interface, without those of 127.0.0.0/8.
struct InterfaceAddresses {
  std::vector<std::vector<std::uint32_t>> interfaces;  // none of them empty
};

using Evidence = std::variant<Trace, FlowCounts, NicCarrier, InterfaceAddresses>;

// Evidence about a culprit: packets of traceroutes over it that should end at the last router
// before it and at the routers behind it, and segments of connections that cross it and of others.
struct CollectedEvidence {
  std::uint32_t before_sent = 0;
  std::uint32_t before_answered = 0;
  std::uint32_t behind_sent = 0;
  std::uint32_t behind_answered = 0;
  std::uint64_t segments = 0;
  std::uint64_t again = 0;
  std::uint64_t other_segments = 0;
  std::uint64_t other_again = 0;

  bool has_traces() const { return before_sent + behind_sent > 0; }
  bool has_connections() const { return segments > 0; }
  friend bool operator==(const CollectedEvidence&, const CollectedEvidence&) = default;
};

// All include the end of the line.
std::string order_line(const Order& order);
std::string evidence_line(const Evidence& evidence);

// Whether a prober's line is evidence rather than of probe/internal/report_text.h.
bool is_evidence(std::string_view line);

// Without the end of the line. kInvalidInput for other lines, or beyond the limits above.
Result<Order> parse_order(std::string_view line);
Result<Evidence> parse_evidence(std::string_view line);

}  // namespace regatta::probe
