// cli/check_text.h: what `regatta fabric check` found, for people and for programs.
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/fabric/deadlock.h"
#include "regatta/fabric/failures.h"
#include "regatta/fabric/route_failures.h"
#include "regatta/fabric/route_loops.h"
#include "regatta/fabric/routes.h"
#include "regatta/topo/graph.h"

namespace regatta::cli {

// What was found of so many failures at once; 0: of the cluster as it is.
struct FailureFinding {
  int at_once = 0;
  fabric::FailureCheck check;
};

// The same of routes that somebody wrote.
struct RouteFinding {
  int at_once = 0;
  fabric::RouteFailureCheck check;
};

struct FabricFinding {
  fabric::DeadlockCheck now;
  std::optional<fabric::RouteLoop> loop;   // of given routes
  std::vector<FailureFinding> after;       // by the number of failures, up to the first circle
  std::vector<RouteFinding> routes_after;  // the same with given routes, which make none

  bool has_circle() const { return now.circle || (!after.empty() && after.back().check.circle); }
};

void print_finding(const topo::Graph& graph, const fabric::Routes& routes,
                   const FabricFinding& finding);

// The keys of docs/formats/fabric_check.md, but for the proof.
nlohmann::json finding_json(const topo::Graph& graph, const fabric::Routes& routes,
                            const FabricFinding& finding);

}  // namespace regatta::cli
