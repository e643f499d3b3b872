// report/internal/link_rows.h: bytes on links as people read them: both ends named, rate and share
// of it.
#pragma once

#include <string>
#include <vector>

#include "regatta/app/report/run_result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::report {

// One direction of a link, with what a run put on it per step.
struct LinkRow {
  topo::DirectedLink link;
  std::string name;  // "leaf0-spine1"
  std::string from;  // node names
  std::string to;
  BytesPerSecond rate;
  Bytes predicted;  // per step
  Bytes measured;
  double predicted_share = 0;  // of the link's rate over the whole predicted step
  double measured_share = 0;
};

// Every directed link that carries something in the prediction or the measurement, in link order,
// forward first. Traffic on links that `graph` does not have is left out.
std::vector<LinkRow> link_rows(const topo::Graph& graph, const PlanRun& run);

}  // namespace regatta::report
