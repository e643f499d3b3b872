// Services that follow their demand on random states, and the choice of the replicas that go back.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/service_size.h"
#include "regatta/platform/sched/internal/test_random_gangs.h"
#include "regatta/platform/sched/internal/test_services.h"

namespace regatta::sched {
namespace {

// A service, other jobs that run, and no queue: what the service has next is its own doing.
struct ServiceState {
  ClusterSnapshot snapshot;
  SchedulingPolicy policy = sizing_policy();
};

ServiceState random_service_state(std::uint64_t seed) {
  RandomSequence random(seed);
  ServiceState state;
  state.snapshot = random_snapshot(random, 6, random_int(random, 1, 6));
  state.snapshot.now = {10'000};
  for (ClusterNode& node : state.snapshot.nodes)
    if (node.devices == 0) node.failed_devices = 0;
  state.policy.moves = 0;  // moves to safer nodes may make room
  bool has_service = false;
  for (RunningJob& job : state.snapshot.running) {
    job.request.priority = random_int(random, 0, 2);
    job.request.is_preemptible = random.below(4) != 0;
    job.request.checkpointing = {.interval = {600}, .write = {1}, .restart = {30}};
    job.started = job.checkpointed = {1000.0 * random_int(random, 0, 9)};
    for (std::size_t i = 0; i < job.request.roles.size(); ++i) {
      Role& role = job.request.roles[i];
      const int count = replica_counts(job.request, job.replicas)[i];
      role.name = "role" + std::to_string(i);
      role.replicas_min = count;
      role.replicas_max = std::max(1, count);
      if (role.devices == 0) role.cpu_milli = std::max(role.cpu_milli, 1000);
    }
    for (const ReplicaPlacement& replica : job.replicas)  // roles without devices got CPUs
      if (at(job.request.roles, replica.role).devices == 0)
        at(state.snapshot.nodes, replica.node).cpu_milli += 1000;
    if (job.request.roles.size() != 1 || (has_service && random.below(3) != 0)) continue;
    Role& role = job.request.roles[0];
    role.subgroup_replicas = 1;
    role.replicas_min = random.below(3) == 0 ? role.replicas_max : 1;
    if (has_service && random.below(2) == 0) continue;  // an elastic job
    role.replicas_max += random_int(random, 0, 4);
    job.request.job_class = random.below(2) == 0 ? JobClass::kTidal : JobClass::kOnline;
    const double now = random_int(random, 0, 9);
    job.request.demand = ServiceDemand{
        .history = random.below(2) == 0
                       ? steady_history(now, random_int(random, 0, 400))
                       : falling_history(random_int(random, 0, 9), now, random_int(random, 1, 40))};
    has_service = true;
  }
  return state;
}

const RunningJob& job_named(const ClusterSnapshot& snapshot, const std::string& name) {
  return *std::find_if(snapshot.running.begin(), snapshot.running.end(),
                       [&](const RunningJob& job) { return job.request.name == name; });
}

// Whether one replica more of the service would fit if all jobs of lower priority that may be
// evicted, and that the decision does not change, were gone: by trial of all places.
bool has_room_for_more(const ClusterSnapshot& snapshot, const RunningJob& job,
                       const SchedulingDecision& decision) {
  ClusterSnapshot without = snapshot;
  std::erase_if(without.running, [&](const RunningJob& other) {
    return other.request.is_preemptible && other.request.priority < job.request.priority &&
           find_action(decision, other.request.name) == nullptr;
  });
  const FreeCapacity free(without);
  return GangTrial(free, job.request, {static_cast<int>(job.replicas.size()) + 1}, job.replicas)
      .fits();
}

std::set<std::string> services_that_made_room(const SchedulingDecision& decision) {
  std::set<std::string> names;
  for (const SchedulingAction& action : decision.actions)
    if (action.kind == ActionKind::kEvict || action.reason.find("up for job") != std::string::npos)
      names.insert(action.job);
  return names;
}

TEST(DecideServicesOnRandomStates, HaveWhatTheyNeedOrAllThatTheyHaveARightTo) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ServiceState state = random_service_state(seed);
    const SchedulingDecision decision = decided(state.snapshot, {}, state.policy);
    ClusterSnapshot after = state.snapshot;
    JobQueue queue;
    apply_decision(decision, after, queue);
    const Status status = check_snapshot(after);
    ASSERT_TRUE(status) << status.error().message;
    seen["evictions"] += static_cast<int>(queue.jobs.size());
    const std::set<std::string> victims = services_that_made_room(decision);
    for (const RunningJob& job : after.running) {
      if (!job.request.demand || victims.contains(job.request.name) ||
          is_degraded(state.snapshot, job_named(state.snapshot, job.request.name)))
        continue;
      const ServiceSize size = service_size(state.policy, job.request);
      const int before =
          static_cast<int>(job_named(state.snapshot, job.request.name).replicas.size());
      const int has = static_cast<int>(job.replicas.size());
      seen[has < before ? "shrunk" : has > before ? "grown" : "kept"] += 1;
      EXPECT_LE(has, std::max(before, size.wanted)) << job.request.name;
      EXPECT_GE(has, std::min(before, size.held)) << job.request.name;
      EXPECT_LE(has, std::max(size.wanted, size.held)) << job.request.name;
      if (has >= size.wanted) continue;
      seen["short"] += 1;
      EXPECT_FALSE(has_room_for_more(after, job, decision)) << job.request.name;
    }
    if (HasFailure()) return;
  }
  for (const char* const kind : {"evictions", "shrunk", "grown", "kept", "short"})
    EXPECT_GT(seen[kind], 50) << kind;  // else the states prove nothing
}

TEST(DecideServicesOnRandomStates, DecideTheSameTwiceAndDoNotChangeAgainAtOnce) {
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ServiceState state = random_service_state(seed);
    const SchedulingDecision first = decided(state.snapshot, {}, state.policy);
    const SchedulingDecision again = decided(state.snapshot, {}, state.policy);
    ASSERT_EQ(first.actions.size(), again.actions.size());
    for (std::size_t i = 0; i < first.actions.size(); ++i) {
      EXPECT_EQ(first.actions[i].reason, again.actions[i].reason);
      EXPECT_EQ(first.actions[i].replicas, again.actions[i].replicas);
    }
    ClusterSnapshot after = state.snapshot;
    JobQueue queue;
    apply_decision(first, after, queue);
    const std::set<std::string> victims = services_that_made_room(first);
    const SchedulingDecision second = decided(after, queue, state.policy);
    for (const SchedulingAction& action : second.actions) {
      const SchedulingAction* const before = find_action(first, action.job);
      if (before == nullptr || action.reason.find(" a replica ") == std::string::npos ||
          victims.contains(action.job) || before->kind == action.kind ||
          (before->kind != ActionKind::kGrow && before->kind != ActionKind::kShrink))
        continue;
      ADD_FAILURE() << action.job << ": " << before->reason << " and then " << action.reason;
    }
    changed += static_cast<int>(first.actions.size());
    if (HasFailure()) return;
  }
  EXPECT_GT(changed, 500);
}

// The nodes that become free are as many as any choice of so many replicas frees.
TEST(ReplicasToReturn, FreeAsManyWholeNodesAsAnyChoice) {
  int several = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomSequence random(seed);
    ClusterSnapshot snapshot = cluster_of(4);
    RunningJob job = on_devices(service("chat", 1, 12, {}), {});
    std::vector<std::pair<int, int>> batch;
    for (int node = 0; node < 4; ++node) {
      for (int i = random_int(random, 0, 3); i > 0; --i)
        job.replicas.push_back({0, node, 1U << static_cast<unsigned>(i)});
      if (random.below(3) == 0) batch.emplace_back(node, 7);
    }
    if (job.replicas.empty()) continue;
    snapshot.running = {job, on_devices(gang("batch", 1, 1), batch)};
    const JobQueue queue;
    const SchedulingPolicy policy = sizing_policy();
    const auto state = DecisionState::create(snapshot, queue, policy);
    ASSERT_TRUE(state);
    const auto freed_nodes = [&](std::uint32_t returned) {
      std::set<int> held;
      for (const auto& [node, device] : batch)
        held.insert(node);
      std::set<int> freed;
      for (int i = 0; i < std::ssize(job.replicas); ++i)
        ((returned >> i & 1U) != 0 ? freed : held).insert(at(job.replicas, i).node);
      std::erase_if(freed, [&](int node) { return held.contains(node); });
      return static_cast<int>(freed.size());
    };
    std::vector<int> best(job.replicas.size() + 1);  // by number of replicas
    for (std::uint32_t choice = 0; choice < 1U << job.replicas.size(); ++choice) {
      int& most = at(best, std::popcount(choice));
      most = std::max(most, freed_nodes(choice));
    }
    for (int count = 0; count <= std::ssize(job.replicas); ++count) {
      std::uint32_t returned = 0;
      for (const int i : replicas_to_return(*state, job.request, job.replicas, count))
        returned |= 1U << static_cast<unsigned>(i);
      EXPECT_EQ(std::popcount(returned), count);
      EXPECT_EQ(freed_nodes(returned), at(best, count)) << count;
      several += at(best, count) > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(several, 100);
}

TEST(ReplicasToReturn, LeaveNodesThatDrainFirst) {
  ClusterSnapshot snapshot = cluster_of(2);
  snapshot.nodes[1].health = NodeHealth::kDraining;
  const RunningJob job = on_devices(service("chat", 1, 4, {}), {{0, 0}, {1, 0}, {1, 1}, {1, 2}});
  snapshot.running = {job};
  const JobQueue queue;
  const SchedulingPolicy policy = sizing_policy();
  const auto state = DecisionState::create(snapshot, queue, policy);
  ASSERT_TRUE(state);
  EXPECT_EQ(replicas_to_return(*state, job.request, job.replicas, 1), std::vector<int>{3});
}

}  // namespace
}  // namespace regatta::sched
