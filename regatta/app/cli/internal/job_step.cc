#include "regatta/app/cli/internal/job_step.h"

#include <utility>

#include <fmt/format.h>

#include "regatta/app/cli/internal/plan_gpu.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/model/cost/collective.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/estimated_plan_search.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::cli {
namespace {

// The mean of what a stage does for a micro-batch, without the message that it waits for.
Seconds mean_of(const plan::StageTimeline& timeline, plan::StageWork work) {
  Seconds sum;
  int count = 0;
  for (const std::vector<plan::StageSpan>& row : timeline.rows) {
    for (const plan::StageSpan& span : row) {
      if (span.work != work) continue;
      sum += span.end - span.start - span.message;
      ++count;
    }
  }
  return count == 0 ? Seconds{} : sum / count;
}

// Bytes that a rank reduces with its replicas: a ring sends them twice over each connection.
double gradients_of(const plan::StrategyTraffic& traffic) {
  double bytes = 0;
  for (const plan::GroupTraffic& line :
       traffic[static_cast<std::size_t>(plan::ParallelAxis::kDp)].lines)
    if (line.ranks > 1) bytes += line.bytes / (2 * cost::pass_share(line.ranks));
  return bytes;
}

}  // namespace

Result<JobStep> plan_job_step(const workload::Job& job, const topo::Cluster& cluster) {
  if (!is_gpu_cluster(cluster)) {
    return Error{Code::kUnsupported,
                 fmt::format("job {}: the step of a job is taken from the plan for GPUs, and "
                             "cluster {} has none; write the step's numbers instead",
                             job.name, cluster.name)};
  }
  workload::Job planned = job;
  if (!planned.strategy.schedule) planned.strategy.schedule = workload::PipelineSchedule::k1F1B;
  REGATTA_TRY(stack, plan::choose_software_stack("", planned, cluster));
  REGATTA_TRY(problem, plan::planning_problem(planned, cluster, *stack));
  std::optional<workload::Strategy> strategy =
      plan::fixed_strategy(planned.strategy, problem.devices);
  if (!strategy) {
    REGATTA_TRY(found, plan::search_estimated_plans(problem, plan::SearchMode::kPruned, 1,
                                                    search_threads()));
    strategy = found.ranked.front().strategy;
  }
  if (strategy->schedule != workload::PipelineSchedule::k1F1B) {
    return Error{Code::kUnsupported,
                 fmt::format("job {}: its schedule is {}, and a simulated step is that of 1f1b; "
                             "write schedule: 1f1b into the job's strategy",
                             job.name, to_string(strategy->schedule))};
  }
  const plan::EstimateInput input = plan::input_of(problem, *strategy);
  REGATTA_TRY(timeline, plan::stage_timeline(input, problem.machine));
  const plan::MicroBatchWork work = plan::micro_batch_work(input, problem.machine);
  const int micro_batches = plan::micro_batches_of(problem, *strategy);
  const plan::StrategyTraffic traffic = plan::strategy_traffic(input, work, micro_batches);
  JobStep step{.strategy = to_string(*strategy)};
  step.shape = {.tp = strategy->tp * strategy->cp,
                .pp = strategy->pp,
                .dp = strategy->dp,
                .micro_batches = micro_batches,
                .forward = mean_of(timeline, plan::StageWork::kForward),
                .backward = mean_of(timeline, plan::StageWork::kBackward),
                .activations = {static_cast<long long>(work.boundary)},
                .gradients = {static_cast<long long>(gradients_of(traffic))},
                .optimizer = mean_of(timeline, plan::StageWork::kOptimizer)};
  return step;
}

}  // namespace regatta::cli
