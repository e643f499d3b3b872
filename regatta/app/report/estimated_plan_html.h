// report/estimated_plan_html.h: a plan for a GPU cluster as one page without scripts that asks for
// nothing from outside: key figures, the timeline of its stages, where the step goes, what a device
// holds; and its timeline as a trace.
#pragma once

#include <cstddef>
#include <string>

#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::report {

// The references outlive the call.
struct EstimatedPlanPage {
  std::string job_name;
  std::string cluster_name;
  std::string stack_name;
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  workload::Precision precision = workload::Precision::kBf16;
  int global_batch = 0;
  const topo::ServerType& server;
  const plan::StageTimeline& timeline;
  // Of the sizes that were looked at, the plan is that of this one; nullptr: only one was.
  const plan::ClusterSizes* sizes = nullptr;
  std::size_t picked = 0;
};

// The same page for the same plan. All names are escaped.
std::string estimated_plan_html(const EstimatedPlanPage& page);

// One process, a thread for each stage: for Perfetto (trace_json.h).
std::string estimated_plan_trace(const plan::StageTimeline& timeline);

}  // namespace regatta::report
