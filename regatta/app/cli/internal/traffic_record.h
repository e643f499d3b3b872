// cli/internal/traffic_record.h: what was seen of the traffic of some servers, as plain values:
// bytes of each connection by interval, and what the ranks at their ends did meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/units.h"

namespace regatta::cli {

// An operation of a rank; times as comm/watch_file.h has them.
struct RankOperation {
  std::uint64_t number = 0;
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;  // in its group
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  bool is_transfer = false;
  Seconds started;
  Seconds ended;
};

struct WatchedRank {
  pid_t pid = 0;
  std::string job;
  std::uint64_t world = 0;
  int rank = 0;
  std::string server;
  std::vector<RankOperation> operations;  // by number
};

// One direction of a connection.
struct WatchedFlow {
  std::string from;  // server, or an address of none that is known
  std::string to;
  int from_rank = -1;  // index of WatchedRank; -1: not a rank's, or not known
  int to_rank = -1;
  // Of flows to and from one listening port, the same: one process's; 0: it is not known which end
  // listens.
  std::uint32_t listener = 0;
  std::uint64_t retransmits = 0;  // since it is watched
  Seconds round_trip;
  std::vector<double> bytes;
};

struct TrafficRecord {
  Seconds start;  // CLOCK_MONOTONIC
  Seconds interval;
  std::size_t intervals = 0;  // of all flows
  std::vector<WatchedRank> ranks;
  std::vector<WatchedFlow> flows;
  double cost = 0;  // of a core, for looking at the connections
  std::size_t connections = 0;
};

}  // namespace regatta::cli
