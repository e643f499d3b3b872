// plan/internal/search/heterogeneous_search.h: every 1F1B strategy of a job on GPU servers of
// several types, each with its best split (heterogeneous_split.h) and its best order of servers:
// servers of a type together, in any order of the types, so that stages differ; or every type
// spread evenly over the stages, so that replicas do.
#pragma once

#include <functional>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_estimate.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// `ranked` is empty where nothing fits, `smallest` too where no strategy divides the job. A
// strategy whose lower bound is slower than the `top` families is left out before it is split,
// unless the search is exhaustive: every block of every micro-batch takes some group of ranks its
// time, and the largest share of a replica of m micro-batches takes p stages at least
// 1 / (1 - (1 - 1/m)^p) of one alone. Fails with kUnsupported for a schedule or a device that
// heterogeneous_estimate.h does not know.
Result<PlanSearchResult> search_heterogeneous_servers(const PlanningProblem& problem,
                                                      SearchMode mode, int top, int threads);

// A strategy in the order of servers and with the split that make it fastest; its stage_layers are
// kept where it has some. Where no split fits its devices: that of equal servers.
Result<Plan> exact_heterogeneous_plan(const PlanningProblem& problem,
                                      const workload::Strategy& strategy);

// The stages of a plan of the problem, and its step anew where `change` is made on every group.
Result<HeterogeneousEstimate> estimate_again(const PlanningProblem& problem, const Plan& plan,
                                             const std::function<void(MachineModel&)>& change = {});

// The timeline of a plan of the problem (plan/stage_timeline.h).
struct StageTimeline;
Result<StageTimeline> heterogeneous_plan_timeline(const PlanningProblem& problem, const Plan& plan);

// `cluster` with these of its servers, in this order.
topo::Cluster reordered(const topo::Cluster& cluster, const std::vector<ServerId>& servers);

}  // namespace regatta::plan
