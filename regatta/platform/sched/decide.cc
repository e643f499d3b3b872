#include "regatta/platform/sched/decide.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/key_index.h"

namespace regatta::sched {

namespace {

std::size_t hash_of(std::string_view name) {
  return std::hash<std::string_view>{}(name);
}

}  // namespace

Status check_state(const ClusterSnapshot& snapshot, const JobQueue& queue) {
  REGATTA_TRY_DO(check_snapshot(snapshot));
  const int running = static_cast<int>(snapshot.running.size());
  KeyIndex names(snapshot.running.size() + queue.jobs.size());
  for (int i = 0; i < running; ++i)
    names.find_or_add(hash_of(at(snapshot.running, i).request.name), i, [](int) { return false; });
  for (int i = 0; i < std::ssize(queue.jobs); ++i) {
    const JobRequest& job = at(queue.jobs, i).request;
    REGATTA_TRY_DO(check_job(job));
    const auto has_same_name = [&](int other) {
      return job.name == (other < running ? at(snapshot.running, other).request.name
                                          : at(queue.jobs, other - running).request.name);
    };
    if (names.find_or_add(hash_of(job.name), running + i, has_same_name) != running + i)
      return Error{Code::kInvalidInput,
                   fmt::format("job {}: the name comes twice; rename one", job.name)};
  }
  return {};
}

namespace {

// Jobs of one list by name while actions take some out and add others: those that leave keep their
// place until remove_left().
template <typename Job>
class NamedJobs {
 public:
  explicit NamedJobs(std::vector<Job>& jobs) : jobs_(jobs), numbers_(jobs.size()) {
    for (int i = 0; i < std::ssize(jobs_); ++i)
      add_name(i);
  }

  // Nothing where none has the name.
  Job* find(std::string_view name) {
    const int number = numbers_.find(hash_of(name), [&](int each) { return has_name(each, name); });
    return number < 0 ? nullptr : &at(jobs_, number);
  }
  void add(Job job) {
    jobs_.push_back(std::move(job));
    add_name(static_cast<int>(jobs_.size()) - 1);
  }
  // Its request has been moved from.
  void leave(const Job* job) { at(has_left_, job - jobs_.data()) = 1; }
  void remove_left() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (has_left_[i] != 0) continue;
      if (kept != i) jobs_[kept] = std::move(jobs_[i]);
      ++kept;
    }
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(kept), jobs_.end());
  }

 private:
  bool has_name(int number, std::string_view name) const {
    return at(has_left_, number) == 0 && at(jobs_, number).request.name == name;
  }
  void add_name(int number) {
    has_left_.push_back(0);
    const std::string_view name = at(jobs_, number).request.name;
    numbers_.find_or_add(hash_of(name), number, [&](int each) { return has_name(each, name); });
  }

  std::vector<Job>& jobs_;
  std::vector<char> has_left_;
  KeyIndex numbers_;
};

void start_job(const SchedulingAction& action, Seconds now, NamedJobs<RunningJob>& running,
               NamedJobs<PendingJob>& pending) {
  PendingJob* const job = pending.find(action.job);
  if (job == nullptr) return;
  pending.leave(job);
  running.add({.request = std::move(job->request),
               .replicas = action.replicas,
               .started = now,
               .checkpointed = now,
               .completed = job->completed});
}

void change_job(const SchedulingAction& action, const ClusterSnapshot& snapshot,
                NamedJobs<RunningJob>& running, NamedJobs<PendingJob>& pending) {
  RunningJob* const job = running.find(action.job);
  if (job == nullptr) return;
  const bool keeps_work = action.kind == ActionKind::kShrink || action.kind == ActionKind::kGrow;
  job->completed = keeps_work ? work_done(snapshot, *job) : kept_work(snapshot, *job);
  job->started = job->checkpointed = snapshot.now;
  job->replicas = action.replicas;
  if (action.kind != ActionKind::kEvict) return;
  running.leave(job);
  pending.add({.request = std::move(job->request), .completed = job->completed, .evictions = 1});
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
  NamedJobs running(snapshot.running);
  NamedJobs pending(queue.jobs);
  for (const SchedulingAction& action : decision.actions) {
    if (action.kind == ActionKind::kStart)
      start_job(action, snapshot.now, running, pending);
    else
      change_job(action, snapshot, running, pending);
  }
  running.remove_left();
  pending.remove_left();
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
