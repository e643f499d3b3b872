#include "regatta/platform/sched/decide.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
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
  job->completed = keeps_work ? work_done(snapshot, *job) : kept_work(snapshot, *job);
  job->started = job->checkpointed = snapshot.now;
  job->replicas = action.replicas;
  if (action.kind != ActionKind::kEvict) return;
  queue.jobs.push_back(
      {.request = std::move(job->request), .completed = job->completed, .evictions = 1});
  snapshot.running.erase(job);
}

void apply_mixes(const std::vector<MixAction>& actions, ClusterSnapshot& snapshot) {
  std::map<std::pair<int, int>, DeviceMix> mixes;
  for (const DeviceMix& mix : snapshot.mixes)
    mixes[{mix.node, mix.device}] = mix;
  for (const MixAction& action : actions)
    mixes[{action.mix.node, action.mix.device}] = action.mix;
  snapshot.mixes.clear();
  if (mixes.empty()) return;
  struct Taken {
    int milli = 0;
    long long memory_mib = 0;
  };
  std::map<std::pair<int, int>, Taken> taken;
  for (const RunningJob& job : snapshot.running)
    for (const ReplicaPlacement& replica : job.replicas)
      for (int device = 0; device < kNodeDevicesMax; ++device) {
        if ((replica.devices >> static_cast<unsigned>(device) & 1U) == 0 ||
            mixes.count({replica.node, device}) == 0)
          continue;
        const Role& role = at(job.request.roles, replica.role);
        Taken& of_device = taken[{replica.node, device}];
        of_device.milli += role.device_milli;
        of_device.memory_mib +=
            role.memory_taken(at(snapshot.nodes, replica.node).device_memory_mib);
      }
  for (const auto& [device, mix] : mixes)
    if (const Taken& all = taken[device];
        all.milli > kDeviceMilli ||
        all.memory_mib > at(snapshot.nodes, device.first).device_memory_mib)
      snapshot.mixes.push_back(mix);
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
  apply_mixes(decision.mixes, snapshot);
}

Result<SchedulingDecision> decide(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                  const SchedulingPolicy& policy, mixing::MixMemo* memo) {
  REGATTA_TRY_DO(check_state(snapshot, queue));
  REGATTA_TRY(state, DecisionState::create(snapshot, queue, policy));
  if (policy.mixes) state.mixes.emplace(snapshot, policy, memo);
  heal_degraded_gangs(state);
  keep_spares(state);  // those that healed a gang are taken
  size_services(state);
  empty_draining_nodes(state);
  mend_mixes(state);
  start_pending_jobs(state);
  resize_elastic_jobs(state);
  consolidate_running_jobs(state);
  settle_mixes(state);
  return std::move(state.decision);
}

}  // namespace regatta::sched
