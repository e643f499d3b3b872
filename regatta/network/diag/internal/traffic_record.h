// diag/internal/traffic_record.h: recorded traffic of servers as plain values: bytes of each
// connection by interval, and the operations of the ranks at its ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/units.h"

namespace regatta::diag {

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
  std::string from;  // server, or the address of an unknown one
  std::string to;
  int from_rank = -1;  // index of WatchedRank; -1: none or unknown
  int to_rank = -1;
  // The same for all flows to and from one listening port, that is one process; 0: unknown.
  std::uint32_t listener = 0;
  std::uint64_t retransmits = 0;  // during the record
  Seconds round_trip;
  std::vector<double> bytes;
};

struct TrafficRecord {
  Seconds start;  // CLOCK_MONOTONIC
  Seconds interval;
  std::size_t intervals = 0;  // of all flows
  std::vector<WatchedRank> ranks;
  std::vector<WatchedFlow> flows;
  double cost = 0;  // of the recorder, in cores
  std::size_t connections = 0;
};

}  // namespace regatta::diag
