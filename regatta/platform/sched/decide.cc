#include "regatta/platform/sched/decide.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"

namespace regatta::sched {

Status check_state(const ClusterSnapshot& snapshot, const JobQueue& queue) {
  REGATTA_TRY_DO(check_snapshot(snapshot));
  std::unordered_set<std::string_view> names;
  names.reserve(snapshot.running.size() + queue.jobs.size());
  for (const RunningJob& job : snapshot.running)
    names.insert(job.request.name);
  for (const PendingJob& job : queue.jobs) {
    REGATTA_TRY_DO(check_job(job.request));
    if (!names.insert(job.request.name).second)
      return Error{Code::kInvalidInput,
                   fmt::format("job {}: the name comes twice; rename one", job.request.name)};
  }
  return {};
}

namespace {

void start_job(const SchedulingAction& action, ClusterSnapshot& snapshot, JobQueue& queue) {
  const auto job = std::find_if(queue.jobs.begin(), queue.jobs.end(), [&](const PendingJob& each) {
    return each.request.name == action.job;
  });
  if (job == queue.jobs.end()) return;
  snapshot.running.push_back({.request = std::move(job->request),
                              .replicas = action.replicas,
                              .started = snapshot.now,
                              .checkpointed = snapshot.now,
                              .completed = job->completed});
  queue.jobs.erase(job);
}

void change_job(const SchedulingAction& action, ClusterSnapshot& snapshot, JobQueue& queue) {
  const auto job =
      std::find_if(snapshot.running.begin(), snapshot.running.end(),
                   [&](const RunningJob& each) { return each.request.name == action.job; });
  if (job == snapshot.running.end()) return;
  const bool keeps_work = action.kind == ActionKind::kShrink || action.kind == ActionKind::kGrow;
  job->completed = keeps_work ? work_done(*job, snapshot.now) : kept_work(*job, snapshot.now);
  job->started = job->checkpointed = snapshot.now;
  job->replicas = action.replicas;
  if (action.kind != ActionKind::kEvict) return;
  queue.jobs.push_back(
      {.request = std::move(job->request), .completed = job->completed, .evictions = 1});
  snapshot.running.erase(job);
}

}  // namespace

void apply_decision(const SchedulingDecision& decision, ClusterSnapshot& snapshot,
                    JobQueue& queue) {
  for (const SchedulingAction& action : decision.actions) {
    if (action.kind == ActionKind::kStart)
      start_job(action, snapshot, queue);
    else
      change_job(action, snapshot, queue);
  }
}

Result<SchedulingDecision> decide(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                  const SchedulingPolicy& policy) {
  REGATTA_TRY_DO(check_state(snapshot, queue));
  REGATTA_TRY(state, DecisionState::create(snapshot, queue, policy));
  heal_degraded_gangs(state);
  size_services(state);
  empty_draining_nodes(state);
  start_pending_jobs(state);
  resize_elastic_jobs(state);
  return std::move(state.decision);
}

}  // namespace regatta::sched
