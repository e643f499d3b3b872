// report/run_result.h: the result of a training run as one value: the source of result.json,
// trace.json, report.html and the closing table on the terminal.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
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

// Connections of ranks that send at the same time over switches with several next hops.
struct PortAssignmentSet {
  std::string name;     // "data-parallel rings"
  int connections = 0;  // that are planned
  int most = 0;         // on one link between two switches
};

// The source ports of the connections of a run.
struct PortAssignment {
  std::string method;                   // "planned", "surveyed", "hashed"; empty: not known
  std::string why;                      // the method was chosen
  std::vector<PortAssignmentSet> sets;  // planned
  std::vector<std::string> avoided;     // cables without carrier when it was planned
};

// One plan that was trained: prediction and measurement.
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

// Measured against predicted: measured / predicted step time - 1. 0.05: the run was 5 % slower than
// predicted. 0 without a measurement or a prediction. Every page, table and file uses this sign.
double deviation(const PlanRun& run);

// Spearman rank correlation of predicted and measured step times over the sweep; nullopt below 3
// plans, and when all predictions or all measurements are equal.
std::optional<double> sweep_spearman(const RunResult& result);

// Turns the events of a training run (see train/README.md) into what was
// measured. Pure; events may come in any order.

class Aggregator {
 public:
  explicit Aggregator(int world_size);

  // Handles a "step", "phases" or "spans" event; ignores others. Returns the step that this event
  // completes: every rank has reported its time. kInvalidInput names an event of another form.
  Result<std::optional<StepRecord>> add(Rank rank, const nlohmann::json& event);

  // Tokens of one step, all ranks together; 0 before the first step.
  long long tokens_per_step() const { return tokens_; }

  // The step times of the complete steps: the slowest rank's. Leaves the first `warm_up` out of the
  // medians (fewer when there are not twice as many steps: MeasuredRun::warm_up_steps says how
  // many). `traffic` is that of the whole run. Phases: mean over ranks, median over steps, scaled
  // to sum to the step time. The timeline starts at 0.
  MeasuredRun measured(int warm_up, const std::vector<plan::LinkTraffic>& traffic) const;

 private:
  struct StepState {
    std::set<int> reported;  // ranks
    StepRecord record;
    int phases_reported = 0;
    workload::PhaseTimes phases;  // summed over ranks
  };
  Result<std::optional<StepRecord>> add_step(Rank rank, const JsonReader& event);
  std::vector<const StepState*> complete_steps() const;

  int world_size_;
  long long tokens_ = 0;
  std::map<int, StepState> steps_;
  workload::Timeline timeline_;
};

// Result.json, and what `regatta run --json` prints: every figure of a run
// for programs. Keys carry their unit as a suffix: step_time_s, bytes, rate_Bps.
//
//   plan.strategy, plan.placement, predicted.step_time_s, predicted.phases.forward_s,
//   measured.step_time_s, measured.phases.forward_s, measured.steps[].loss, measured.traffic[],
//   deviation, compare.speedup, sweep.spearman, sweep.plans[], candidates[], rejected[],
//   job, cluster

// `compare` and `sweep` are null when the run had none; `sweep.spearman` is null below 3 plans, and
// when all predictions or all measurements are equal. The same result gives the same bytes.
nlohmann::ordered_json result_json(const RunResult& result);

// The file: indented by one space, with a newline at the end.
std::string result_json_text(const RunResult& result);

// trace.json for Perfetto and chrome://tracing: process 1 is the prediction (one step, from time
// 0), process 2 the measurement (the traced steps, from the start of the first). Each rank has two
// threads: computation, and communication in the background. One event a line. Source: "Trace Event
// Format" (Chromium), complete events ("ph": "X").
std::string trace_json_text(const RunResult& result);

// The end of a run on the terminal: predicted beside measured per phase, the comparison, the sweep
// and the cost of its choice by prediction; ends with a newline.
std::string text_report(const RunResult& result);

// A run that goes on.
struct TrainingProgress {
  std::string title;     // begins the line: "main", "compare", "sweep 3/8"
  int steps = 0;         // of the whole run
  long long tokens = 0;  // of a step
  Seconds mean_step;     // of the newest steps, for the time left
};
// A line, without a newline, after `step`.
std::string progress_text(const TrainingProgress& run, const StepRecord& step);
// The run continues the checkpoint in `folder` after `steps` steps; ends with a newline.
std::string resumed_text(const std::string& title, int steps, const std::string& folder);
// The end of one plan's training: its step beside the predicted one, its source ports.
std::string trained_plan_text(const std::string& title, const PlanRun& run);

}  // namespace regatta::report
