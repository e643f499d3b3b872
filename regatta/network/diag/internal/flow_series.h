// diag/internal/flow_series.h: what flows carry over time, as those who count bytes at short, equal
// intervals see it. No name of a job, a collective or a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::diag {

// One direction of a connection, or of all connections from one server to another.
struct FlowSeries {
  NodeId from;
  NodeId to;
  std::vector<double> bytes;  // in each interval
  // Flows of one number, not 0, are one process's: connections to the port that it listens on.
  std::uint32_t process = 0;
};

// All flows have the same number of intervals.
struct TrafficSeries {
  Seconds start;     // of the first interval
  Seconds interval;  // length of each, above 0
  std::vector<FlowSeries> flows;
};

using Series = std::span<const double>;

}  // namespace regatta::diag
