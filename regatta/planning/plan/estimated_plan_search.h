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
// The same with another request, which outlives it.
PlanningProblem with_request(const PlanningProblem& problem,
                             const workload::StrategyRequest& request);

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
  // That fit: the best of each family of the same degrees, the fastest family first; plans of the
  // same time to a thousandth are one where only dp and cp differ, and else stand in the order of
  // plan/internal/search/plan_families.h.
  std::vector<EstimatedPlan> ranked;
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

// The plans of the `top` fastest families, on `threads` threads; the same result for any number of
// them. Fails with kInvalidInput where no strategy divides the job or none fits, naming the nearest
// plan and a change that makes it fit.
Result<EstimatedSearchResult> search_estimated_plans(const PlanningProblem& problem,
                                                     SearchMode mode, int top, int threads = 1);

// The fastest that fits. Fails as search_estimated_plans(), without a change that makes one fit.
Result<EstimatedPlan> fastest_plan(const PlanningProblem& problem, int threads = 1);

// The fastest that fits; where strategies divide the job and none fits, the one that needs least
// memory. Fails with kInvalidInput where none divides it.
Result<EstimatedPlan> nearest_plan(const PlanningProblem& problem, int threads = 1);

// Strategies that differ from a plan of the search in how replicas share and overlap alone, or in
// how many ranks share a sample, that fit and take the same time to a thousandth.
std::vector<workload::Strategy> same_plans(const PlanningProblem& problem,
                                           const EstimatedPlan& plan);

// One strategy on the problem's machine. Fails with kInvalidInput where it does not divide the job
// or does not make the problem's devices.
Result<Estimate> estimate_on(const PlanningProblem& problem, const workload::Strategy& strategy);

// The strategy of `request` as it stands: dp is what is left of the devices where it is open and
// the other degrees divide them, interleaved follows from virtual stages; what else is open is as
// in workload::Strategy. estimate_on() says whether it makes the devices.
workload::Strategy exact_strategy(const workload::StrategyRequest& request, int devices);

}  // namespace regatta::plan
