#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include "regatta/model/cost/collective.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::plan {
namespace {

// The mean of what a stage does for a micro-batch, without the message that it waits for.
Seconds mean_work(const StageTimeline& timeline, StageWork work) {
  Seconds sum;
  int count = 0;
  for (const std::vector<StageSpan>& row : timeline.rows) {
    for (const StageSpan& span : row) {
      if (span.work != work) continue;
      sum += span.end - span.start - span.message;
      ++count;
    }
  }
  return count == 0 ? Seconds{} : sum / count;
}

// Bytes that a rank reduces with its replicas: a ring sends them twice over each connection.
double reduced_bytes(const StrategyTraffic& traffic) {
  double bytes = 0;
  for (const GroupTraffic& line : traffic[static_cast<std::size_t>(ParallelAxis::kDp)].lines)
    if (line.ranks > 1) bytes += line.bytes / (2 * cost::pass_share(line.ranks));
  return bytes;
}

Result<JobStep> step_of(const PlanningProblem& problem, const workload::Strategy& strategy) {
  const EstimateInput input = input_of(problem, strategy);
  REGATTA_TRY(timeline, stage_timeline(input, problem.machine));
  const MicroBatchWork work = micro_batch_work(input, problem.machine);
  const int micro_batches = micro_batches_of(problem, strategy);
  const StrategyTraffic traffic = strategy_traffic(input, work, micro_batches);
  JobStep step{.strategy = to_string(strategy)};
  step.shape = {.tp = strategy.tp * strategy.cp,
                .pp = strategy.pp,
                .dp = strategy.dp,
                .micro_batches = micro_batches,
                .forward = mean_work(timeline, StageWork::kForward),
                .backward = mean_work(timeline, StageWork::kBackward),
                .activations = {static_cast<long long>(work.boundary)},
                .gradients = {static_cast<long long>(reduced_bytes(traffic))},
                .optimizer = mean_work(timeline, StageWork::kOptimizer)};
  return step;
}

}  // namespace

Result<JobStep> plan_job_step(const workload::Job& job, const topo::Cluster& cluster, int threads) {
  if (!is_gpu_cluster(cluster)) {
    return Error{Code::kUnsupported,
                 fmt::format("job {}: the step of a job is taken from the plan for GPUs, and "
                             "cluster {} has none; write the step's numbers instead",
                             job.name, cluster.name)};
  }
  workload::Job planned = job;
  if (!planned.strategy.schedule) planned.strategy.schedule = workload::PipelineSchedule::k1F1B;
  REGATTA_TRY(stack, choose_software_stack("", planned, cluster));
  REGATTA_TRY(problem, planning_problem(planned, cluster, *stack));
  if (is_heterogeneous(problem)) {
    return Error{Code::kUnsupported,
                 fmt::format("job {}: the step of a job is that of equal servers, and those of "
                             "cluster {} are of several types; write the step's numbers instead",
                             job.name, cluster.name)};
  }
  REGATTA_TRY(found, search_plans(problem, SearchMode::kPruned, 1, threads));
  const workload::Strategy& strategy = found.ranked.front().strategy;
  if (strategy.schedule != workload::PipelineSchedule::k1F1B) {
    return Error{Code::kUnsupported,
                 fmt::format("job {}: its schedule is {}, and a simulated step is that of 1f1b; "
                             "write schedule: 1f1b into the job's strategy",
                             job.name, to_string(strategy.schedule))};
  }
  return step_of(problem, strategy);
}

}  // namespace regatta::plan
