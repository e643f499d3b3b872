// diag/job_groups.h: groups flows by job, from the flows alone: servers that exchange traffic
// belong together, unless their flows have different steps that are clear or that several processes
// share. Pure. Source: LLMPrism (2025): union-find over flows, and their periods.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/network/diag/internal/flow_series.h"
#include "regatta/network/diag/step_time.h"

namespace regatta::diag {

struct JobGroup {
  std::vector<std::uint32_t> flows;  // of the traffic, ascending
  std::vector<NodeId> servers;       // at their ends, ascending; jobs may share some
  // None: its flows have no period. Often only a guess: see StepTiming::is_clear().
  std::optional<StepTiming> steps;
};

struct JobSearchOptions {
  StepSearchOptions steps;
  // Least periodicity of a flow with the steps of the job that it belongs to.
  double periodicity_min = 0.15;
  // Least periodicity of steps that tell jobs apart because another process has them too.
  double confirmed_periodicity_min = 0.25;
};

// Each flow that carried anything is in one group, with all others of its process; largest group
// first. Two jobs that share servers are told apart by their steps, unless one step is a multiple
// of the other. A flow without a clear step goes to the job whose servers it joins.
std::vector<JobGroup> find_jobs(const TrafficSeries& traffic, const JobSearchOptions& options = {});

}  // namespace regatta::diag
