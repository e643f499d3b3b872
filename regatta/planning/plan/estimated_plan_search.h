// plan/estimated_plan_search.h: every strategy of a job on a cluster of equal GPU servers in rank
// order: all of them one by one, or with bounds that leave out those that cannot be among the best.
// Stages hold the layers that the request gives them; else they are tried evenly, and balanced
// where that is faster (plan/internal/search/stage_split.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {

// Whether a strategy may be chosen.
using StrategyPredicate = std::function<bool(const workload::Strategy&)>;

// The references outlive the search.
struct PlanningProblem {
  const workload::ModelShape& model;
  int global_batch = 0;
  workload::Precision precision = workload::Precision::kBf16;
  const workload::StrategyRequest& request;
  const topo::ServerType& server;
  const cost::SoftwareStack& stack;
  MachineModel machine;
  int devices = 0;                 // all of them are used
  bool every_form = false;         // plan/internal/search/strategy_space.h
  StrategyPredicate accepts = {};  // bounds the search, as a launcher does; empty: all
};

// Whether a server type has GPUs: their plans are estimated in closed form, others are simulated.
bool is_gpu_cluster(const topo::Cluster& cluster);

// The software stack of that name; where it is empty, the usual one of the job on the cluster's
// first device. kInvalidInput lists the names.
Result<const cost::SoftwareStack*> choose_software_stack(const std::string& name,
                                                         const workload::Job& job,
                                                         const topo::Cluster& cluster);

// kInvalidInput: the job fixes the placement, which a plan for a GPU cluster decides.
Status check_placement_is_open(const workload::Job& job);

// The problem of a job on all devices of a cluster of equal servers; the arguments outlive it.
// Fails with kInvalidInput for servers of several types, for servers that no network joins, and for
// a device whose rate in the job's precision is not known.
Result<PlanningProblem> planning_problem(const workload::Job& job, const topo::Cluster& cluster,
                                         const cost::SoftwareStack& stack);

// The same job on so many servers of the cluster.
PlanningProblem on_servers(PlanningProblem problem, int servers);

EstimateInput input_of(const PlanningProblem& problem, const workload::Strategy& strategy);
// The micro-batches of one rank in a step, for a strategy that divides the job.
int micro_batches_of(const PlanningProblem& problem, const workload::Strategy& strategy);

enum class MemoryFit { kFits, kClose, kDoesNot };
// A plan that needs more than 0.94 of the device is close: allocators leave gaps, and estimates
// err.
MemoryFit memory_fit(const cost::GpuMemory& memory, Bytes device);
std::string to_string(MemoryFit fit);  // "fits", "too close", "does not fit"

struct EstimatedPlan {
  workload::Strategy strategy;
  Estimate estimate;
};

struct EstimatedSearchResult {
  std::vector<EstimatedPlan> ranked;  // that fit, fastest first
  // Those of the fitting plans that no other beats in both time and memory, fastest first; empty
  // where bounds leave out slower plans.
  std::vector<EstimatedPlan> frontier;
  long long points = 0;                   // of the space: that divide the job
  long long evaluated = 0;                // of them: completely
  long long fitting = 0;                  // of the evaluated
  std::optional<EstimatedPlan> smallest;  // of the evaluated, that which needs the least memory
};

enum class SearchMode {
  kExhaustive,
  kPruned,  // the same `ranked`; the counts are those of the evaluated plans
};

// The `top` fastest, on `threads` threads; the same result for any number of them. Fails with
// kInvalidInput where no strategy divides the job or none fits, naming the nearest plan and a
// change that makes it fit.
Result<EstimatedSearchResult> search_estimated_plans(const PlanningProblem& problem,
                                                     SearchMode mode, int top, int threads = 1);

// The fastest that fits, or the one that the request fixes completely, whether it fits or not.
// Fails as search_estimated_plans() or estimate_on().
Result<EstimatedPlan> fastest_plan(const PlanningProblem& problem, int threads = 1);

// One strategy on the problem's machine. Fails with kInvalidInput where it does not divide the job
// or does not make the problem's devices.
Result<Estimate> estimate_on(const PlanningProblem& problem, const workload::Strategy& strategy);

// The fixed parts of `request`, when they are a complete strategy: degrees that make all devices,
// a micro-batch; what else is not given is as in workload::Strategy.
std::optional<workload::Strategy> fixed_strategy(const workload::StrategyRequest& request,
                                                 int devices);

}  // namespace regatta::plan
