// report/pages.h: results as pages and drawings for people. Each function returns one whole file
// that loads nothing from outside. The same arguments give the same bytes; all names are escaped.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "regatta/app/report/run_result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/network/diag/traffic_analysis.h"
#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/scenario.h"
#include "regatta/network/simulate/simulated_network.h"
#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::report {

// report.html of a run: key figures, plan, phases, timeline of every rank, loss, traffic,
// comparison, sweep.
std::string report_html(const RunResult& result);

// The references outlive the call.
struct PlanPage {
  std::string job_name;
  std::string cluster_name;
  std::string stack_name;
  std::string stack_assumes = {};  // how the stack runs a step; empty: not said
  std::optional<plan::PredictionInterval> interval = {};  // of the step; none: not said
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  workload::Precision precision = workload::Precision::kBf16;
  int global_batch = 0;
  std::string device;  // "a100-sxm4-80g"
  Bytes capacity;      // of a device of the fullest stage
  const plan::StageTimeline& timeline;
  const workload::PhaseTimes* phases = nullptr;  // of a step that was simulated rank by rank
  // The cluster sizes that were evaluated; the plan is for sizes[picked]. nullptr: only one size.
  const plan::ClusterSizes* sizes = nullptr;
  std::size_t picked = 0;
};

// A plan: key figures, the timeline of its stages, where the
// step goes, what a device holds.
std::string plan_html(const PlanPage& page);

// The timeline of the stages for Perfetto: one process, a thread for each stage.
std::string plan_trace(const plan::StageTimeline& timeline);

// A simulated scenario: key figures, its items and failures, the load of links over time, the
// slowest messages.
std::string simulation_html(const simulate::Scenario& scenario,
                            const simulate::SimulatedNetwork& network,
                            const simulate::SimulationResult& outcome);

// Traffic by job, collective and step. `place`: the lab or machine.
std::string traffic_html(const diag::TrafficAnalysis& analysis, const std::string& place);

// A cluster as an SVG file, for light and dark pages: tiers in rows, cables wider the faster they
// are, servers with their devices and NICs below their leaves. Draws every server and switch of a
// cluster of up to kServersDrawn servers, unless the drawing would be too wide to read. Larger
// ones: blocks of servers are counted, and of equal blocks, groups and switches only the first and
// the last are drawn, with the number of the others between them. Requires a validated cluster.
std::string fabric_svg(const topo::Cluster& cluster);

}  // namespace regatta::report
