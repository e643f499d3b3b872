// simulate/scenario.h: a scenario to simulate: traffic over a fabric, the routing of its switches,
// and failures.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/simulate/step_shape.h"

namespace regatta::simulate {

// No time of a scenario is later: beyond it, fractions of a packet's time are lost.
inline constexpr Seconds kLatestTime{1e6};

enum class Level { kFlow, kPacket, kMixed };

enum class RoutePolicy { kEcmp, kDestination, kSpray, kFlowlet, kAdaptive };

struct Routing {
  RoutePolicy policy = RoutePolicy::kEcmp;
  int connections = 1;       // of each pair that sends
  bool plans_ports = false;  // source ports by fabric/port_plan.h, not by chance
  bool shares_seed = false;  // all switches hash alike
  Seconds flowlet_gap{50e-6};
};

// Settings of the packet and the mixed level.
struct PacketSettings {
  Bytes mtu{4096};
  Bytes header{30};          // of each packet, besides its payload
  bool is_lossless = true;   // switches pause senders; false: they drop packets that find no room
  Bytes buffer{1 << 20};     // of each link, where it is not lossless
  Seconds storm_after{0.2};  // a queue paused for so long is in a storm
  bool has_dcqcn = false;    // connections slow down when their packets are marked
};

enum class TrafficPattern {
  kRing,
  kTree,
  kHalvingDoubling,
  kHierarchical,
  kAllToAll,
  kPairwise,
  kRail,
  kPermutation,
  kIncast,
  kMessage,
  kTrace,
  kStep,
};

// The devices that take part, in rank order unless they are listed.
enum class RankChoice { kAll, kServers, kRails, kListed };

struct TraceMessage {
  int line = 0;
  Seconds start;
  std::string from;  // "s0/1"
  std::string to;
  Bytes bytes;
};

struct TrafficItem {
  int line = 0;
  std::string name;
  TrafficPattern pattern = TrafficPattern::kRing;
  Bytes bytes;
  RankChoice choice = RankChoice::kAll;
  std::vector<std::string> ranks;  // kListed
  std::string from;                // kMessage
  std::string to;                  // kMessage, kIncast
  Seconds start;
  std::string after;  // this item starts when that earlier one ends; empty: none
  int repeat = 1;
  bool aggregates = true;  // kAllToAll: where switches spray, equivalent messages are one flow
  SimulatedStep step;      // kStep
  std::string job;         // kStep: a job file from which `step` is derived
  std::string trace_file;  // kTrace
  std::vector<TraceMessage> trace;  // of that file, once it is read
};

struct Failure {
  int line = 0;
  Seconds at;
  Seconds until{std::numeric_limits<double>::infinity()};
  std::string link;           // by name, or
  std::string switch_name;    // a switch with all its links, or
  std::string pausing_nic;    // the link of a NIC that accepts nothing and pauses its switch
  Seconds local{1e-3};        // until the switches at its ends use other links
  Seconds converged{100e-3};  // until all switches use other links
};

struct Scenario {
  std::string name;
  std::string file;     // its name in messages
  std::string cluster;  // a file, by its path from the scenario's file
  Level level = Level::kFlow;
  std::uint64_t seed = 1;
  Routing routing;
  Seconds resolution;  // FlowOptions::resolution
  PacketSettings packet;
  std::vector<TrafficItem> traffic;
  std::vector<Failure> failures;
};

}  // namespace regatta::simulate
