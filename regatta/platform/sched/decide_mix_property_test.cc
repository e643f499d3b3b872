// Invariants of mixing on random small states, and the placement of a mixable job against a trial
// of all devices.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/mixing/mix_decision.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

constexpr int kMiB = 1 << 20;
constexpr int kStates = 60;

int random_int(packing::RandomSequence& random, int low, int high) {
  return low + static_cast<int>(random.below(static_cast<std::size_t>(high - low + 1)));
}

// Few kinds of workloads, so that their mixes are drawn once.
JobRequest random_job(packing::RandomSequence& random, const std::string& name) {
  JobRequest job = gang(name, 1, random.below(5) == 0 ? 2 : 1);
  job.priority = random_int(random, 0, 2);
  job.job_class = static_cast<JobClass>(random.below(4));
  job.is_preemptible = job.job_class != JobClass::kOnline;
  if (random.below(5) == 0) return job;
  Role& role = job.roles[0];
  if (role.devices == 1 && random.below(3) == 0) role.device_milli = 600;
  role.device_memory_mib = random.below(2) == 0 ? 16 << 10 : 36 << 10;
  const float duty = random.below(2) == 0 ? 0.15F : 0.5F;
  role.duty.shares = {0, duty, duty};
  return job;
}

struct State {
  ClusterSnapshot snapshot;
  JobQueue queue;
  SchedulingPolicy policy;
};

// A state that a few decisions have led to, with jobs that wait.
State random_state(packing::RandomSequence& random, mixing::MixMemo& memo) {
  State state;
  state.snapshot = cluster_of(random_int(random, 1, 3), 2);
  for (ClusterNode& node : state.snapshot.nodes)
    node.devices = random_int(random, 1, 3);
  state.policy = *find_scheduling_policy("regatta");
  state.policy.mixes = true;
  state.policy.protected_run_time = {0};
  if (random.below(3) == 0) state.policy.host_memory_mib = 100 << 10;
  int names = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = random_int(random, 1, 4); i > 0; --i)
      state.queue.jobs.push_back(pending(random_job(random, "j" + std::to_string(names++))));
    if (round == 2) break;
    const auto decision = decide(state.snapshot, state.queue, state.policy, &memo);
    EXPECT_TRUE(decision) << decision.error().message;
    if (decision) apply_decision(*decision, state.snapshot, state.queue);
    std::erase_if(state.snapshot.running,
                  [&](const RunningJob& /*job*/) { return random.below(4) == 0; });
    state.snapshot.now = state.snapshot.now + Seconds{100};
  }
  return state;
}

struct Use {
  int milli = 0;
  long long memory_mib = 0;
  bool is_mixable = true;
  std::vector<const JobRequest*> jobs;
};
using Uses = std::map<std::pair<int, int>, Use>;

Uses uses_of(const ClusterSnapshot& snapshot) {
  Uses uses;
  for (const RunningJob& job : snapshot.running)
    for (const ReplicaPlacement& replica : job.replicas)
      for (int device = 0; device < kNodeDevicesMax; ++device) {
        if ((replica.devices >> device & 1U) == 0) continue;
        const Role& role = at(job.request.roles, replica.role);
        Use& use = uses[{replica.node, device}];
        use.milli += role.device_milli;
        use.memory_mib += role.memory_taken(at(snapshot.nodes, replica.node).device_memory_mib);
        use.is_mixable &= role.is_mixable();
        use.jobs.push_back(&job.request);
      }
  return uses;
}

std::optional<mixing::MixDecision> mix_of(const std::vector<const JobRequest*>& jobs,
                                          const SchedulingPolicy& policy,
                                          std::map<std::string, mixing::MixDecision>& known) {
  std::vector<mixing::ProfiledWorkload> workloads;
  std::string key = std::to_string(policy.host_memory_mib);
  for (const JobRequest* job : jobs) {
    const Role& role = job->roles[0];
    workloads.push_back(
        {job->name, job->job_class, Bytes{1LL * role.device_memory_mib * kMiB}, role.duty});
    key += ' ' + std::to_string(static_cast<int>(job->job_class)) + ',' +
           std::to_string(role.device_memory_mib) + ',' + std::to_string(role.duty.shares[1]);
  }
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const auto decision =
      decide_profiled_mix(workloads,
                          {.memory = Bytes{(80LL << 10) * kMiB},
                           .host_memory = Bytes{1LL * policy.host_memory_mib * kMiB},
                           .interference = policy.interference},
                          policy.budget);
  if (!decision) return std::nullopt;
  return known.emplace(key, *decision).first->second;
}

bool keeps_budget(const std::vector<const JobRequest*>& jobs, const SchedulingPolicy& policy,
                  std::map<std::string, mixing::MixDecision>& known) {
  const auto decision = mix_of(jobs, policy, known);
  if (!decision || !decision->is_within_budget) return false;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (!has_latency_target(jobs[i]->job_class) &&
        decision->slices[i].expected_share < policy.least_share)
      return false;
  return true;
}

double work_of(const std::vector<const JobRequest*>& jobs, const SchedulingPolicy& policy,
               std::map<std::string, mixing::MixDecision>& known) {
  double work = 0;
  const auto decision = mix_of(jobs, policy, known);
  for (std::size_t i = 0; decision && i < jobs.size(); ++i)
    work += decision->slices[i].expected_share * mean_share(jobs[i]->roles[0].duty);
  return work;
}

TEST(DecideMixProperty, DevicesKeepBudgetAndMemoryAndGangsStayWhole) {
  mixing::MixMemo memo;
  std::map<std::string, mixing::MixDecision> known;
  int mixed = 0;
  for (unsigned seed = 1; seed <= kStates; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    State state = random_state(random, memo);
    const auto decision = decide(state.snapshot, state.queue, state.policy, &memo);
    ASSERT_TRUE(decision) << decision.error().message;
    ClusterSnapshot after = state.snapshot;
    JobQueue queue = state.queue;
    apply_decision(*decision, after, queue);
    const Status status = check_snapshot(after);
    ASSERT_TRUE(status) << status.error().message;
    for (const RunningJob& job : after.running)
      EXPECT_EQ(job.replicas.size(), 1U);
    const Uses uses = uses_of(after);
    std::set<std::pair<int, int>> beyond;
    for (const auto& [device, use] : uses) {
      if (use.milli <= kDeviceMilli && use.memory_mib <= 80 << 10) continue;
      beyond.insert(device);
      EXPECT_TRUE(use.is_mixable);
      EXPECT_TRUE(keeps_budget(use.jobs, state.policy, known));
    }
    mixed += static_cast<int>(beyond.size());
    std::set<std::pair<int, int>> mixes;
    for (const DeviceMix& mix : after.mixes) {
      mixes.insert({mix.node, mix.device});
      if (mix.mode != mixing::MixMode::kTimeSlice) {
        EXPECT_LE(uses.at({mix.node, mix.device}).memory_mib, 80 << 10);
      }
      EXPECT_EQ(mix.mode, mix_of(uses.at({mix.node, mix.device}).jobs, state.policy, known)->mode);
    }
    EXPECT_EQ(mixes, beyond);
  }
  EXPECT_GT(mixed, kStates / 3);
}

TEST(DecideMixProperty, ADecisionIsTheSameWithAndWithoutAMemo) {
  mixing::MixMemo memo;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    const State state = random_state(random, memo);
    const auto first = decide(state.snapshot, state.queue, state.policy, &memo);
    const auto second = decide(state.snapshot, state.queue, state.policy);
    ASSERT_TRUE(first && second);
    ASSERT_EQ(first->actions.size(), second->actions.size());
    for (std::size_t i = 0; i < first->actions.size(); ++i) {
      EXPECT_EQ(first->actions[i].job, second->actions[i].job);
      EXPECT_EQ(first->actions[i].replicas, second->actions[i].replicas);
      EXPECT_EQ(first->actions[i].reason, second->actions[i].reason);
    }
    ASSERT_EQ(first->mixes.size(), second->mixes.size());
    for (std::size_t i = 0; i < first->mixes.size(); ++i)
      EXPECT_EQ(first->mixes[i].reason, second->mixes[i].reason);
  }
}

// A trial of all devices: a job of one device that one of them admits does not wait, and nobody is
// evicted for it.
TEST(DecideMixProperty, AMixableJobThatADeviceAdmitsStartsWithoutAnEviction) {
  mixing::MixMemo memo;
  std::map<std::string, mixing::MixDecision> known;
  int admitted = 0;
  for (unsigned seed = 1; seed <= kStates; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    State state = random_state(random, memo);
    JobRequest job = random_job(random, "one");
    job.roles[0].devices = 1;
    job.roles[0].device_memory_mib = 16 << 10;
    job.roles[0].duty.shares = {0, 0.15F, 0.15F};
    job.priority = 5;
    state.queue.jobs = {pending(job)};
    bool is_admitted = false;
    for (const auto& [device, use] : uses_of(state.snapshot)) {
      if (!use.is_mixable || use.jobs.size() >= kMixedJobsMax) continue;
      std::vector<const JobRequest*> jobs = use.jobs;
      jobs.push_back(&job);
      is_admitted |=
          keeps_budget(jobs, state.policy, known) &&
          (has_latency_target(job.job_class) ||
           work_of(jobs, state.policy, known) > work_of(use.jobs, state.policy, known) + 1e-9);
    }
    if (!is_admitted) continue;
    ++admitted;
    const auto decision = decide(state.snapshot, state.queue, state.policy, &memo);
    ASSERT_TRUE(decision);
    bool starts = false;
    for (const SchedulingAction& action : decision->actions) {
      EXPECT_NE(action.kind, ActionKind::kEvict) << action.reason;
      starts |= action.kind == ActionKind::kStart && action.job == "one";
    }
    EXPECT_TRUE(starts);
  }
  EXPECT_GT(admitted, kStates / 3);
}

TEST(FreeCapacityProperty, AJobThatLeavesAMixedDeviceFreesWhatItTook) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    const ClusterSnapshot snapshot = cluster_of(1);
    FreeCapacity free(snapshot);
    const NodeCapacity empty = free.free(0);
    std::vector<std::pair<Role, ReplicaPlacement>> taken;
    for (int i = 0; i < 6; ++i) {
      Role role = random_job(random, "j").roles[0];
      role.device_memory_mib = 1024 * random_int(random, 1, 40);
      role.duty.shares = {0.1F};
      role.devices = random_int(random, 1, 2);
      const ReplicaPlacement placement{
          .role = 0, .node = 0, .devices = role.devices == 1 ? 1U : 3U};
      free.take(role, placement);
      taken.emplace_back(role, placement);
    }
    EXPECT_LT(free.free(0).device_milli[0], 0);
    EXPECT_EQ(free.free(0).whole_free & 1U, 0U);
    while (!taken.empty()) {
      const NodeCapacity before = free.free(0);
      const auto which = random.below(taken.size());
      const auto [role, placement] = taken[which];
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
      free.give(role, placement);
      EXPECT_EQ(free.free(0).device_milli[0] - before.device_milli[0], role.device_milli);
      EXPECT_EQ(free.free(0).device_memory_mib[0] - before.device_memory_mib[0],
                role.device_memory_mib);
      EXPECT_EQ((free.free(0).whole_free & 1U) != 0, taken.empty());
    }
    EXPECT_EQ(free.free(0), empty);
  }
}

}  // namespace
}  // namespace regatta::sched
