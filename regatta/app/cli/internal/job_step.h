// cli/internal/job_step.h: the step of a job on a cluster of GPUs as numbers to simulate: from
// its plan.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/network/simulate/step_shape.h"

namespace regatta::cli {

struct JobStep {
  simulate::SimulatedStep shape;
  std::string strategy;  // that of the plan
};

// The plan of the job: its strategy where it names one, else the fastest of 1F1B that fits. Fails
// as `regatta plan` does, with kUnsupported for clusters without GPUs and for other schedules.
Result<JobStep> plan_job_step(const workload::Job& job, const topo::Cluster& cluster);

}  // namespace regatta::cli
