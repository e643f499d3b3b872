// cli/internal/run_training.h: trains one plan through a session and measures it.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>

#include "regatta/app/cli/internal/job_ports.h"
#include "regatta/app/report/run_result.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/simulated_plan.h"
#include "regatta/runtime/agent/session.h"

namespace regatta::cli {

struct TrainingRequest {
  workload::Job job;  // its number of steps is trained
  plan::SimulatedPlan plan;
  bool resume = false;
  std::string title;         // of the progress lines
  std::FILE* out = nullptr;  // where progress goes
  PortChoice ports;
  std::string flight_dir;  // where a rank that fails writes its last operations; empty: nowhere
};

// Steps that are left out of medians: allocations, caches and connections settle in them.
inline constexpr int kWarmUpSteps = 5;

// Starts a worker per rank, shows progress and collects their events. Fails with the session's
// sentence when a rank, server or link fails, or with kUnavailable when `stop` is set.
Result<report::PlanRun> train_plan(agent::Session& session, const topo::Cluster& cluster,
                                   const TrainingRequest& request, const std::atomic<bool>& stop);

}  // namespace regatta::cli
