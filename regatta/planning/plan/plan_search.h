// plan/plan_search.h: every strategy of a job on a cluster, best first: one search for equal GPU
// servers, GPU servers of several types and CPUs. Steps on GPUs are predicted in closed form
// (plan/estimate.h), steps on CPUs are simulated (plan/simulated_plan.h). Stages hold the layers
// that the request gives them; else they are tried evenly, and balanced where that is faster
// (plan/internal/search/stage_split.h, heterogeneous_split.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::plan {

// Whether a strategy may be chosen.
using StrategyPredicate = std::function<bool(const workload::Strategy&)>;

// CPUs, whose steps are simulated. The references outlive the search.
struct SimulatedJob {
  const workload::Job& job;
  const cost::Rates& rates;
};

// The references outlive the search.
struct PlanningProblem {
  const workload::ModelShape& model;
  int global_batch = 0;
  workload::Precision precision = workload::Precision::kBf16;
  const workload::StrategyRequest& request;
  const topo::ServerType& server;  // that of the first server, where they are of several types
  const cost::SoftwareStack& stack;
  MachineModel machine;            // of that server
  int devices = 0;                 // all of them are used
  bool every_form = false;         // plan/internal/search/strategy_space.h
  StrategyPredicate accepts = {};  // bounds the search, as a launcher does; empty: all
  // Servers of several types, and CPUs, one by one: where they lie, and which of them are used.
  // Null: equal GPU servers, of which it is enough to know how many there are.
  const topo::Cluster* cluster = nullptr;
  std::vector<ServerId> servers = {};
  std::optional<SimulatedJob> simulated = {};  // CPUs
  bool even_replicas = false;                  // replicas take as many micro-batches as each other
};

// Whether a server type has GPUs: their plans are estimated in closed form, others are simulated.
bool is_gpu_cluster(const topo::Cluster& cluster);

// Whether its servers differ in more than their names.
bool has_several_types(const topo::Cluster& cluster);

// The software stack of that name; where it is empty, the usual one of the job on the cluster's
// first device. kInvalidInput lists the names.
Result<const cost::SoftwareStack*> choose_software_stack(const std::string& name,
                                                         const workload::Job& job,
                                                         const topo::Cluster& cluster);

// kInvalidInput: the job fixes the placement, which a plan for a GPU cluster decides.
Status check_placement_is_open(const workload::Job& job);

// The problem of a job on all devices of a cluster of GPUs; the arguments outlive it. Server types
// that differ in nothing but their names are one. Fails with kInvalidInput for servers that no
// network joins and for a device whose rate in the job's precision is not known.
Result<PlanningProblem> planning_problem(const workload::Job& job, const topo::Cluster& cluster,
                                         const cost::SoftwareStack& stack);
// The same on a cluster of CPUs, whose rates are measured or described.
PlanningProblem planning_problem(const workload::Job& job, const topo::Cluster& cluster,
                                 const cost::Rates& rates);

// Whether its servers are GPU servers of several types.
bool is_heterogeneous(const PlanningProblem& problem);

// "h100-sxm", or "a100-sxm4-80g and h100-sxm": the types of its devices, in the order of servers.
std::string device_names(const PlanningProblem& problem);

// The number of servers of the problem.
int server_count(const PlanningProblem& problem);
// The same job on so many servers of the cluster, the first of them.
PlanningProblem on_servers(PlanningProblem problem, int servers);
// The same on these servers.
PlanningProblem on_servers(PlanningProblem problem, const std::vector<ServerId>& servers);
// The same with another request, which outlives it.
PlanningProblem with_request(const PlanningProblem& problem,
                             const workload::StrategyRequest& request);

EstimateInput input_of(const PlanningProblem& problem, const workload::Strategy& strategy);
// The micro-batches of one rank in a step, for a strategy that divides the job.
int micro_batches_of(const PlanningProblem& problem, const workload::Strategy& strategy);

enum class MemoryFit { kFits, kClose, kDoesNot };
// A plan that needs more of a device's memory than this is close: allocators leave gaps, and
// estimates err.
inline constexpr double kUsableMemory = 0.94;
MemoryFit memory_fit(const cost::GpuMemory& memory, Bytes device);
std::string to_string(MemoryFit fit);  // "fits", "too close", "does not fit"

struct Plan {
  workload::Strategy strategy;
  // A simulated step: the mean of the ranks; its forward and backward are `matmul`, the gaps `host`
  // (plan_parts() of plan/plan_metrics.h has the phases), working space is that of its buffers.
  Estimate estimate;
  // Servers of several types: the micro-batches of each replica and the servers in rank order.
  std::vector<int> micro_batches = {};
  std::vector<ServerId> servers = {};
  Bytes capacity = {};  // of the smallest device of the fullest stage
  std::shared_ptr<const SimulatedPlan> simulated = {};  // CPUs
};

// The memory of a device of the plan's fullest stage.
Bytes capacity_of(const PlanningProblem& problem, const Plan& plan);
// A simulated plan fits up to the last byte: what its ranks allocate is known.
MemoryFit memory_fit(const PlanningProblem& problem, const Plan& plan);

struct PlanSearchResult {
  // That fit: the best of each family of the same degrees, the fastest family first; plans of the
  // same time to a thousandth are one where only dp and cp differ, and else stand in the order of
  // plan/internal/search/plan_families.h. Simulated plans: every placement that differs in time.
  std::vector<Plan> ranked;
  // Those of the fitting plans that no other beats in both time and memory, fastest first; empty
  // where bounds leave out slower plans.
  std::vector<Plan> frontier;
  long long points = 0;          // of the space: that divide the job
  long long evaluated = 0;       // of them: completely
  long long fitting = 0;         // of the evaluated
  std::optional<Plan> smallest;  // of the evaluated, that which needs the least memory
  std::shared_ptr<const SimulatedSearchResult> simulated;  // CPUs: also what was left out, and why
};

enum class SearchMode {
  kExhaustive,
  kPruned,  // the same `ranked`; the counts are those of the evaluated plans
};

// The plans of the `top` fastest families, on `threads` threads; the same result for any number of
// them. Simulated steps are all looked at, whatever the mode. Fails with kInvalidInput where no
// strategy divides the job or none fits, naming the nearest plan and a change that makes it fit.
Result<PlanSearchResult> search_plans(const PlanningProblem& problem, SearchMode mode, int top,
                                      int threads = 1);

// The fastest that fits. Fails as search_plans(), without a change that makes one fit.
Result<Plan> fastest_plan(const PlanningProblem& problem, int threads = 1);

// The fastest that fits; where strategies divide the job and none fits, the one that needs least
// memory. Fails with kInvalidInput where none divides it.
Result<Plan> nearest_plan(const PlanningProblem& problem, int threads = 1);

// Strategies that differ from a plan of the search in how replicas share and overlap alone, or in
// how many ranks share a sample, that fit and take the same time to a thousandth.
std::vector<workload::Strategy> same_plans(const PlanningProblem& problem, const Plan& plan);

// A strategy as it stands, whether it fits or not: simulated ones in rank order or where the job
// places them. Fails with kInvalidInput where it does not divide the job or does not make the
// problem's devices.
Result<Plan> exact_plan(const PlanningProblem& problem, const workload::Strategy& strategy);

// A strategy on the servers of a cluster in the order of the problem, with these blocks of each
// stage (from 0; empty: even) and replicas as even as can be: as a run on servers of several types
// was made. Fails with kInvalidInput where strategy or layers do not divide the job.
Result<Plan> plan_in_rank_order(const PlanningProblem& problem, const workload::Strategy& strategy,
                                const std::vector<int>& layers);

// The strategy of `request` as it stands: dp is what is left of the devices where it is open and
// the other degrees divide them, interleaved follows from virtual stages; what else is open is as
// in workload::Strategy. exact_plan() says whether it makes the devices.
workload::Strategy exact_strategy(const workload::StrategyRequest& request, int devices);

}  // namespace regatta::plan
