#include "regatta/platform/sched/decide.h"

#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "regatta/platform/sched/internal/decision_state.h"

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

Result<SchedulingDecision> decide(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                  const SchedulingPolicy& policy) {
  REGATTA_TRY_DO(check_state(snapshot, queue));
  REGATTA_TRY(state, DecisionState::create(snapshot, queue, policy));
  heal_degraded_gangs(state);
  empty_draining_nodes(state);
  start_pending_jobs(state);
  resize_elastic_jobs(state);
  return std::move(state.decision);
}

}  // namespace regatta::sched
