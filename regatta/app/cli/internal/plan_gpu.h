// cli/internal/plan_gpu.h: `regatta plan` for clusters of GPUs: plans in closed form, under a
// software stack.
#pragma once

#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/base/core/result.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::cli {

// Threads that a search on this machine uses.
int search_threads();

// kInvalidInput: the job fixes what a plan for a GPU cluster decides.
Status check_gpu_job(const workload::Job& job);

// The planning problem of a job on a cluster of equal servers, with all devices; the arguments
// outlive it. Fails with kInvalidInput for servers of several types and for a device whose rate in
// the job's precision is not known.
Result<plan::PlanningProblem> planning_problem(const workload::Job& job,
                                               const topo::Cluster& cluster,
                                               const cost::SoftwareStack& stack);

// The stack of that name, or the usual one of the job on the first device where it is empty.
Result<const cost::SoftwareStack*> stack_of(const std::string& name, const workload::Job& job,
                                            const topo::Cluster& cluster);

// Prints the plans, or the one that the job fixes completely. The exit status.
int show_gpu_plans(const PlanOptions& options, const workload::Job& job,
                   const topo::Cluster& cluster);

}  // namespace regatta::cli
