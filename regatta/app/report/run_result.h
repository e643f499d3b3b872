// report/run_result.h: everything a run leaves behind, as one value: the source of result.json,
// trace.json, report.html and the closing table on the terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/timeline.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::report {

struct StepRecord {
  int step = 0;  // from 0
  double loss = 0;
  Seconds time;  // wall time of the step, the slowest rank
};

struct MeasuredRun {
  Seconds step_time;      // median without the first steps (warm-up)
  Seconds step_time_min;  // of the same steps
  Seconds step_time_max;
  int warm_up_steps = 5;
  workload::PhaseTimes phases;  // mean over ranks, scaled to sum to step_time
  workload::Timeline timeline;  // all steps that were traced, every rank
  std::vector<StepRecord> steps;
  std::vector<plan::LinkTraffic> traffic;  // mean per step
  double tokens_per_s = 0;
};

// Connections of ranks that send at the same time: those that cross switches which have a choice.
struct PortAssignmentSet {
  std::string name;     // "data-parallel rings"
  int connections = 0;  // that are planned
  int most = 0;         // of them on one link between two switches
};

// Where the connections of a run started from.
struct PortAssignment {
  std::string method;                   // "planned", "surveyed", "hashed"; empty: not known
  std::string why;                      // it was taken
  std::vector<PortAssignmentSet> sets;  // planned
  std::vector<std::string> avoided;     // cables without carrier when it was planned
};

// One plan that was trained: what was predicted and what came.
struct PlanRun {
  plan::SimulatedPlan plan;
  MeasuredRun measured;
  PortAssignment ports = {};
};

struct RunResult {
  std::string started_at;  // "2026-11-21T08:00:00Z"
  workload::Job job;
  topo::Cluster cluster;
  std::string rates_source;  // cost::Rates::source
  std::string speed_note;    // lab::LabInfo::speed_note
  std::string machine;       // what ran it: "2 cores of Xeon ..., Linux 6.1"; empty = not stated
  plan::SimulatedSearchResult search;
  PlanRun main;
  std::optional<PlanRun> compare;  // --compare pure-dp
  std::vector<PlanRun> sweep;      // --sweep N
};

// compare / main step time; nullopt without a comparison.
std::optional<double> speedup(const RunResult& result);

// predicted / measured - 1: -0.05 means that the prediction was 5 % too fast; 0 without a
// measurement.
double prediction_error(const PlanRun& run);

// Spearman rank correlation of predicted and measured step times over the sweep; nullopt below 3
// plans, and when all predictions or all measurements are equal.
std::optional<double> sweep_spearman(const RunResult& result);

}  // namespace regatta::report
