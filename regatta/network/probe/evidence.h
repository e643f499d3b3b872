// probe/evidence.h: what a prober finds out besides its probes, mostly when it is asked: which
// routers answer on a path, what connections had to send again, whether its NICs have a carrier. As
// data, and as the lines that it is told in; docs/formats/probe.md has them.
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
inline constexpr std::size_t kLongestEvidence = 64UL * kFlowsMost;  // bytes of a line

// What to find out.
struct TraceOrder {
  std::uint32_t path = 0;  // 2 k and 2 k + 1 of probe k
  int hops = 0;            // routers on it, 1 to kHopsMost
  int tries = 1;           // packets to each, 1 to kTriesMost
};
struct FlowsOrder {};     // what connections have sent since the last one
struct CarriersOrder {};  // how all NICs are
using Order = std::variant<TraceOrder, FlowsOrder, CarriersOrder>;

// Of a router: packets that should have ended there, and those of which it said so.
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

// Of a TCP connection that this server has to another.
struct FlowCount {
  fabric::FiveTuple flow;
  std::uint32_t segments = 0;  // sent, with those sent again
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

using Evidence = std::variant<Trace, FlowCounts, NicCarrier>;

// All with the end of the line.
std::string order_line(const Order& order);
std::string evidence_line(const Evidence& evidence);

// Whether a prober's line is one of these rather than of probe/internal/report_text.h.
bool is_evidence(std::string_view line);

// Without the end of the line. kInvalidInput for what is none, or beyond the numbers above.
Result<Order> parse_order(std::string_view line);
Result<Evidence> parse_evidence(std::string_view line);

}  // namespace regatta::probe
