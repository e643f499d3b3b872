// cli/internal/planning_inputs.h: the inputs of commands that predict: cluster, job and rates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::cli {

// The file of the rates that `regatta measure CLUSTER` measured, beside the cluster file:
// "examples/cluster.yaml" -> "examples/cluster.measured.json".
std::string measured_path(const std::string& cluster_path);

struct PlanningInputs {
  topo::Cluster cluster;
  workload::Job job;
  cost::Rates rates;
  std::vector<std::string> warnings;  // one sentence each: print them with print_warnings()
};

// The rates measured for `cluster_path` when the file is there, else those of the description with
// a warning. Fails with kInvalidInput when the file is there and cannot be read or is wrong.
Result<cost::Rates> load_rates(const std::string& cluster_path, const topo::Cluster& cluster,
                               std::vector<std::string>& warnings);

// Both files and the rates. `strategy`: the flag --strategy, empty when not given; what it fixes
// replaces what the job file says.
Result<PlanningInputs> load_planning_inputs(const std::string& job_path,
                                            const std::string& cluster_path,
                                            const std::string& strategy,
                                            const std::vector<std::string>& constraints = {});

// The job of a file, with what the flags --strategy and --constraint say.
Result<workload::Job> load_job_with(const std::string& job_path, const std::string& strategy,
                                    const std::vector<std::string>& constraints = {});

// The source of predicted steps of a job on a cluster: a software stack on GPUs, rates of devices
// and paths on CPUs.
struct StepPredictor {
  std::shared_ptr<const cost::SoftwareStack> stack;  // null on CPUs
  cost::Rates rates;
  std::vector<std::string> warnings = {};
};

// The stack of that name, as stack_of() finds it; on CPUs the rates as load_rates() finds them, or
// those of the description where the cluster was changed from that of its file. kInvalidInput where
// a stack is named for CPUs.
Result<StepPredictor> step_predictor(const std::string& stack, const workload::Job& job,
                                     const topo::Cluster& cluster, const std::string& cluster_path,
                                     bool is_changed = false);

// The problem of a job on all of a cluster; the arguments outlive it.
Result<plan::PlanningProblem> problem_of(const workload::Job& job, const topo::Cluster& cluster,
                                         const StepPredictor& predictor);

// Whether this build can run jobs on the devices of the cluster: it drives CPU devices alone.
// kInvalidInput names the GPUs, begins with `command` and offers `regatta plan`.
Status check_devices_run_here(const topo::Cluster& cluster, const std::string& command);

// "regatta: warning: ..." to standard error.
void print_warnings(const std::vector<std::string>& warnings);

}  // namespace regatta::cli
