// Invariants of decisions on random states of at most six nodes.
#include <map>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/test_random_gangs.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

constexpr int kNodesMax = 6;

struct RandomState {
  ClusterSnapshot snapshot;
  JobQueue queue;
  SchedulingPolicy policy;
};

void set_random_terms(RandomSequence& random, JobRequest& job) {
  job.queue = random.below(2) == 0 ? "a" : "b";
  job.priority = random_int(random, 0, 2);
  job.is_preemptible = random.below(4) != 0;
  job.run_time = {.median = {600.0 * random_int(random, 0, 20)},
                  .log_spread = 0.5 * random_int(random, 0, 2)};
  job.checkpointing = {.interval = {600}, .write = {1}, .restart = {30}};
  job.submitted = {1000.0 * random_int(random, 0, 9)};
  for (Role& role : job.roles) {
    if (random.below(4) == 0) role.replicas_max += random_int(random, 1, 2);
    if (role.devices == 0) role.cpu_milli = std::max(role.cpu_milli, 1000);
    role.name = "role" + std::to_string(&role - job.roles.data());
  }
}

RandomState random_state(std::uint64_t seed) {
  RandomSequence random(seed);
  RandomState state;
  state.snapshot = random_snapshot(random, kNodesMax, random_int(random, 0, 6));
  state.snapshot.now = {10'000};
  for (ClusterNode& node : state.snapshot.nodes)
    if (node.devices == 0) node.failed_devices = 0;
  for (RunningJob& job : state.snapshot.running) {
    for (std::size_t role = 0; role < job.request.roles.size(); ++role) {
      const int count = at(replica_counts(job.request, job.replicas), static_cast<int>(role));
      job.request.roles[role].replicas_min = count;
      job.request.roles[role].replicas_max = std::max(1, count);
    }
    set_random_terms(random, job.request);
    for (const ReplicaPlacement& replica : job.replicas)  // roles without devices got CPUs
      if (at(job.request.roles, replica.role).devices == 0)
        at(state.snapshot.nodes, replica.node).cpu_milli += 1000;
    job.started = {1000.0 * random_int(random, 0, 9)};
    job.checkpointed = job.started;
  }
  for (int i = random_int(random, 1, 5); i > 0; --i) {
    JobRequest job = random_gang(random);
    job.name = "p" + std::to_string(i);
    set_random_terms(random, job);
    state.queue.jobs.push_back(pending(job));
  }
  QuotaQueue a{.name = "a", .parent = ""};
  if (random.below(2) == 0) a.guaranteed[Resource::kCompute] = 4 * kDeviceMilli;
  if (random.below(3) == 0) a.limit[0] = 6 * kDeviceMilli;
  state.queue.quotas = *QuotaTree::create({a, {.name = "b", .parent = ""}});
  state.policy = *find_scheduling_policy("regatta");
  state.policy.backfill = random.below(2) == 0 ? BackfillRule::kGreedy : BackfillRule::kReservation;
  state.policy.moves = random_int(random, 0, 2);
  state.policy.resizes = random.below(2) == 0;
  return state;
}

long long compute_of(const ClusterSnapshot& snapshot, const std::string& queue) {
  long long compute = 0;
  for (const RunningJob& job : snapshot.running)
    if (job.request.queue == queue)
      compute += static_cast<long long>(devices_of(job.request, job.replicas) * kDeviceMilli + 0.5);
  return compute;
}

const RunningJob* find_running(const ClusterSnapshot& snapshot, const std::string& name) {
  for (const RunningJob& job : snapshot.running)
    if (job.request.name == name) return &job;
  return nullptr;
}

// Every job of the decision is whole and below one domain of its level.
void expect_whole_gangs(const SchedulingDecision& decision, const ClusterSnapshot& after) {
  const FreeCapacity free(after);
  for (const SchedulingAction& action : decision.actions) {
    if (action.kind != ActionKind::kStart) continue;
    const RunningJob* const job = find_running(after, action.job);
    ASSERT_NE(job, nullptr);
    const GangSize counts = replica_counts(job->request, job->replicas);
    std::set<int> domains;
    for (std::size_t role = 0; role < counts.size(); ++role) {
      EXPECT_GE(counts[role], job->request.roles[role].replicas_min) << action.job;
      EXPECT_LE(counts[role], job->request.roles[role].replicas_max) << action.job;
    }
    for (const ReplicaPlacement& replica : job->replicas)
      domains.insert(free.domains().domain_at(job->request.topology.required,
                                              at(free.domains().position, replica.node)));
    EXPECT_LE(domains.size(), 1U) << action.job;
  }
}

// Nodes with histories, spares and consolidation.
void add_failures(std::uint64_t seed, RandomState& state) {
  RandomSequence random(seed + 1'000'000);
  for (ClusterNode& node : state.snapshot.nodes)
    for (int i = random_int(random, -4, 6); i > 0; --i)
      node.failures.push_back(state.snapshot.now - Seconds{1000.0 * i});
  state.policy.spares = {.nodes = random_int(random, 0, 2), .share = 0, .gang_devices = 2};
  state.policy.consolidation = {.moves = 2, .node = {600}, .leaf = {600}, .rest = {1000}};
}

TEST(DecideOnRandomStates, TakesNoDeviceTwiceAndKeepsGangsWholeAndQuotas) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomState state = random_state(seed);
    if (seed % 2 == 0) add_failures(seed, state);
    ASSERT_TRUE(check_snapshot(state.snapshot)) << check_snapshot(state.snapshot).error().message;
    const auto decision = decide(state.snapshot, state.queue, state.policy);
    ASSERT_TRUE(decision) << decision.error().message;
    const long long before = compute_of(state.snapshot, "a");
    apply_decision(*decision, state.snapshot, state.queue);
    const Status status = check_snapshot(state.snapshot);
    EXPECT_TRUE(status) << status.error().message;
    expect_whole_gangs(*decision, state.snapshot);
    const auto& limit = state.queue.quotas.queue(*state.queue.quotas.find_leaf("a")).limit[0];
    EXPECT_LE(compute_of(state.snapshot, "a"), std::max(limit.value_or(1'000'000), before));
    if (HasFailure()) return;
  }
}

TEST(DecideOnRandomStates, EvictsNobodyInVain) {
  int evictions = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomState state = random_state(seed);
    const auto decision = decide(state.snapshot, state.queue, state.policy);
    ASSERT_TRUE(decision);
    // A job that gives room is followed by the job that takes it.
    int open = 0;
    for (const SchedulingAction& action : decision->actions) {
      open += action.kind == ActionKind::kEvict ? 1 : 0;
      evictions += action.kind == ActionKind::kEvict ? 1 : 0;
      if (action.kind == ActionKind::kStart || action.kind == ActionKind::kReplace) open = 0;
    }
    EXPECT_EQ(open, 0);
  }
  EXPECT_GT(evictions, 500);  // else the states prove nothing
}

TEST(DecideOnRandomStates, PlacesAGangThatFits) {
  int waiting = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomState state = random_state(seed);
    state.policy.backfill = BackfillRule::kGreedy;
    state.policy.resizes = false;
    const JobQueue queue = state.queue;
    const auto decision = decide(state.snapshot, state.queue, state.policy);
    ASSERT_TRUE(decision);
    apply_decision(*decision, state.snapshot, state.queue);
    const FreeCapacity free(state.snapshot);
    for (const WaitingJob& job : decision->waiting) {
      if (job.cause != WaitCause::kNoRoom && job.cause != WaitCause::kNeverFits) continue;
      ++waiting;
      for (const PendingJob& each : queue.jobs) {
        if (each.request.name != job.job) continue;
        EXPECT_FALSE(GangTrial(free, each.request, smallest_size(each.request)).fits()) << job.job;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(waiting, 2000);
}

// A trial of every placement on the empty cluster says the same.
TEST(DecideOnRandomStates, SaysOfAJobThatItNeverFitsWhereTheEmptyClusterDoesNotHoldIt) {
  int never = 0;
  int may = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomState state = random_state(seed);
    const auto decision = decide(state.snapshot, state.queue, state.policy);
    ASSERT_TRUE(decision);
    ClusterSnapshot empty = state.snapshot;
    empty.running.clear();
    for (ClusterNode& node : empty.nodes) {
      node.health = NodeHealth::kReady;
      node.failed_devices = 0;
    }
    const FreeCapacity free(empty);
    for (const WaitingJob& job : decision->waiting) {
      if (job.cause == WaitCause::kQuota || job.cause == WaitCause::kDegraded) continue;
      for (const PendingJob& each : state.queue.jobs) {
        if (each.request.name != job.job) continue;
        const bool fits = GangTrial(free, each.request, smallest_size(each.request)).fits();
        EXPECT_EQ(fits, job.cause != WaitCause::kNeverFits) << job.job;
        ++(fits ? may : never);
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(never, 500);
  EXPECT_GT(may, 500);
}

TEST(DecideOnRandomStates, DecidesTheSameTwice) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const RandomState state = random_state(seed);
    const auto first = decide(state.snapshot, state.queue, state.policy);
    const auto second = decide(state.snapshot, state.queue, state.policy);
    ASSERT_TRUE(first && second);
    ASSERT_EQ(first->actions.size(), second->actions.size());
    for (std::size_t i = 0; i < first->actions.size(); ++i) {
      EXPECT_EQ(first->actions[i].reason, second->actions[i].reason);
      EXPECT_EQ(first->actions[i].replicas, second->actions[i].replicas);
    }
  }
}

// Jobs that are evicted come back as pending jobs: no decision after decision goes in a circle.
TEST(DecideOnRandomStates, ComesToRest) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomState state = random_state(seed);
    int rounds = 0;
    for (; rounds < 20; ++rounds) {
      const auto decision = decide(state.snapshot, state.queue, state.policy);
      ASSERT_TRUE(decision);
      if (decision->actions.empty()) break;
      apply_decision(*decision, state.snapshot, state.queue);
      state.snapshot.now += Seconds{1};
    }
    EXPECT_LT(rounds, 20);
  }
}

}  // namespace
}  // namespace regatta::sched
