// cli/internal/fabric_check_text.h: what `regatta fabric check` found, for people and for programs.
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::cli {

// What was found of so many failures at once; 0: of the cluster as it is.
struct FailureCheckResult {
  int at_once = 0;
  fabric::FailureCheck check;
};

// The same of routes that somebody wrote.
struct RouteCheckResult {
  int at_once = 0;
  fabric::RouteFailureCheck check;
};

struct FabricCheckResult {
  fabric::DeadlockCheck now;
  std::optional<fabric::RouteLoop> loop;       // of given routes
  std::vector<FailureCheckResult> after;       // by the number of failures, up to the first circle
  std::vector<RouteCheckResult> routes_after;  // the same with given routes, which make none

  bool has_cycle() const { return now.cycle || (!after.empty() && after.back().check.cycle); }
};

void print_fabric_check(const topo::Graph& graph, const fabric::Routes& routes,
                        const FabricCheckResult& finding);

// The keys of docs/formats/fabric_check.md, but for the proof.
nlohmann::json fabric_check_json(const topo::Graph& graph, const fabric::Routes& routes,
                                 const FabricCheckResult& finding);

}  // namespace regatta::cli
