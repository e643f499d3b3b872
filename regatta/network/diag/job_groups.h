// diag/job_groups.h: which flows belong to one job, from the flows alone: servers that talk to each
// other belong together, unless their flows keep different time. Pure.
// Source: LLMPrism (2025): union-find over flows, and their periods.
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
  std::optional<StepTiming> steps;   // none: its flows keep no time
};

struct JobSearchOptions {
  StepSearchOptions steps;
  // A flow belongs to a job when this much of its ups and downs repeats with the job's steps.
  double repeats_least = 0.15;
};

// Each flow that carried anything is in one group, with all others of its process; largest group
// first. Two jobs that share servers
// are told apart by their steps; that fails where these go in step with each other for the whole
// time. What keeps no time goes to the job whose servers it joins, where that is one.
std::vector<JobGroup> find_jobs(const TrafficSeries& traffic, const JobSearchOptions& search = {});

}  // namespace regatta::diag
