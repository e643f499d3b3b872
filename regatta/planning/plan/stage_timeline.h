// plan/stage_timeline.h: the timeline of every pipeline stage of a plan in one step: the pipeline
// is simulated (pipeline/pipeline_simulation.h) with the times of the estimate's parts,
// then come the reduction, the optimizer and the offload transfers, as far as nothing hides them.
//
// A row is a stage, not a rank: all ranks of a stage do the same at the same time, but on servers
// of several types, where it is that of the slowest replica, and in a step that was simulated,
// where it is that of the first replica. With equal stages the last end is the estimate's step;
// with unequal ones the estimate takes the slowest stage for each, and the timeline is more exact.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/model/workload/timeline.h"
#include "regatta/network/simulate/step_shape.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

enum class StageWork {
  kForward,
  kBackward,  // both gradients in one piece
  kInputGradient,
  kWeightGradient,
  kReduction,  // of gradients over the replicas, and gathers of weights; all of the step's at once
  kOptimizer,
  kOffload,
};

// Without a pause. The message that it waits for and the recomputation come first, in this order.
struct StageSpan {
  StageWork work = StageWork::kForward;
  int part = 0;          // of the model, among those that the stage holds
  int micro_batch = -1;  // -1: none
  // DualPipe: this forward and the backward behind it in the row run at once, from the start of
  // the one to the end of the other.
  bool overlaps_next = false;
  Seconds start;
  Seconds end;
  Seconds message;
  Seconds recompute;
};

// The memory of a device of a stage from `at` on.
struct MemoryPoint {
  Seconds at;
  double bytes = 0;
};
using MemoryCurve = std::vector<MemoryPoint>;  // in the order of time, from 0

// Its maximum.
double peak_of(const MemoryCurve& line);

struct StageTimeline {
  workload::PipelineSchedule schedule = workload::PipelineSchedule::k1F1B;
  int micro_batches = 0;
  std::vector<std::vector<StageSpan>> rows;  // of each stage, in the order of time
  Seconds pipeline_end;                      // of the last gradient
  Seconds makespan;                          // of the whole step
  bool has_equal_stages = false;             // but for embedding and output layer
  std::vector<MemoryCurve> memory;           // of each stage
  Estimate estimate;
};

// The most pieces of work of a timeline: a viewer shows no more, and a larger trace fills a disk.
inline constexpr long long kMaxTimelinePasses = 1'000'000;

// Fails as estimate_step() does, and with kInvalidInput beyond kMaxTimelinePasses. Cost: constant
// for each piece of work, 2 x stages x micro-batches x parts of them.
Result<StageTimeline> stage_timeline(const EstimateInput& input);
// The same on a machine that is known already: with the fabric of a cluster.
Result<StageTimeline> stage_timeline(const EstimateInput& input, const MachineModel& machine);

// That of a plan of the problem, on any kind of cluster.
Result<StageTimeline> plan_timeline(const PlanningProblem& problem, const Plan& plan);

// The makespan over the estimate's step, minus 1.
double timeline_difference(const StageTimeline& timeline);

// The same as phases that fill every row from 0 to the makespan, stages for ranks; traces are
// written from it. Weight gradients are backward, pauses bubble, transfers of offload other.
workload::Timeline phases_of(const StageTimeline& timeline);

// The step of a job as numbers for a simulation of its traffic.
struct JobStep {
  simulate::SimulatedStep shape;  // its compute times are means over the timeline
  std::string strategy;           // that of the plan
};

// The plan of the job on all servers: its strategy where it names one, else the fastest of 1F1B
// that fits, found on `threads` threads. Fails as search_plans() and stage_timeline(),
// with kUnsupported for clusters without GPUs and for other schedules.
Result<JobStep> plan_job_step(const workload::Job& job, const topo::Cluster& cluster, int threads);

}  // namespace regatta::plan
