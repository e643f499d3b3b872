// Services that follow their demand: decide() and the choice of the replicas that go back.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/service_size.h"
#include "regatta/platform/sched/internal/test_random_gangs.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

constexpr int kHour = 60;  // intervals

SchedulingPolicy sizing_policy() {
  SchedulingPolicy policy = *find_scheduling_policy("regatta");
  policy.protected_run_time = {};
  return policy;
}

// Replicas of one device, each for a demand of 50.
JobRequest service(const std::string& name, int least, int most, std::vector<double> history) {
  JobRequest job = gang(name, least, 1);
  job.roles[0].replicas_max = most;
  job.job_class = JobClass::kTidal;
  job.priority = 5;
  job.is_preemptible = false;
  job.run_time = {};
  job.checkpointing = {};
  job.demand = ServiceDemand{.interval = {60}, .history = std::move(history), .per_replica = 50};
  return job;
}

std::vector<double> constant(double value, int intervals) {
  return std::vector<double>(as_index(intervals), value);
}

std::vector<double> falling(double before, double after, int intervals_after) {
  std::vector<double> history = constant(before, 8 * kHour);
  history.insert(history.end(), as_index(intervals_after), after);
  return history;
}

// Devices of the job by node.
RunningJob on_devices(JobRequest job, const std::vector<std::pair<int, int>>& devices) {
  RunningJob made = running(job, {});
  for (const auto& [node, device] : devices)
    made.replicas.push_back({.role = 0, .node = node, .devices = 1U << device});
  return made;
}

SchedulingDecision decided(const ClusterSnapshot& snapshot, const JobQueue& queue,
                           const SchedulingPolicy& policy = sizing_policy()) {
  auto decision = decide(snapshot, queue, policy);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision ? *decision : SchedulingDecision{};
}

TEST(DecideServices, GrowIntoFreeDevicesAheadOfTheirDemand) {
  ClusterSnapshot snapshot = cluster_of(2);
  snapshot.running = {on_devices(service("chat", 1, 12, constant(420, 8 * kHour)),
                                 {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}})};
  const SchedulingDecision decision = decided(snapshot, {});
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kGrow);
  EXPECT_EQ(decision.actions[0].replicas.size(), 9U);
  EXPECT_TRUE(decision.actions[0].reason.starts_with(
      "demand of 420 within 2 min at 50 a replica needs 9 replicas; 2 more on 2 devices on"))
      << decision.actions[0].reason;
  SchedulingPolicy fixed = sizing_policy();
  fixed.sizes_services = fixed.resizes = false;
  EXPECT_TRUE(decided(snapshot, {}, fixed).actions.empty());
}

// A busy node of 8 devices each for the jobs; the service has one of a third node.
struct Contest {
  ClusterSnapshot snapshot = cluster_of(2);

  Contest(int service_replicas, double demand, std::vector<JobRequest> others) {
    std::vector<std::pair<int, int>> devices;
    for (int i = 0; i < service_replicas; ++i)
      devices.emplace_back(0, i);
    snapshot.nodes[0].failed_devices = 0xffU << static_cast<unsigned>(service_replicas) & 0xffU;
    snapshot.running = {on_devices(service("chat", 1, 8, constant(demand, 8 * kHour)), devices)};
    int next = 0;
    for (JobRequest& job : others) {
      std::vector<std::pair<int, int>> own;
      for (int i = 0; i < job.roles[0].replicas_max; ++i)
        own.emplace_back(1, next++);
      snapshot.running.push_back(on_devices(job, own));
    }
    for (int i = next; i < 8; ++i)
      snapshot.nodes[1].failed_devices |= 1U << static_cast<unsigned>(i);
  }
};

TEST(DecideServices, EvictBatchOfLowerPriorityForNoMoreThanTheyNeed) {
  JobRequest equal = gang("equal", 2, 1);
  equal.priority = 5;
  const Contest contest(2, 250, {gang("small", 3, 1), gang("large", 3, 1), equal});
  const SchedulingDecision decision = decided(contest.snapshot, {});
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kEvict);
  EXPECT_EQ(decision.actions[1].kind, ActionKind::kGrow);
  EXPECT_EQ(decision.actions[1].replicas.size(), 5U);
  EXPECT_TRUE(decision.actions[1].reason.ends_with("job small makes room") ||
              decision.actions[1].reason.ends_with("job large makes room"));
  SchedulingPolicy peaceful = sizing_policy();
  peaceful.preempts = false;
  EXPECT_TRUE(decided(contest.snapshot, {}, peaceful).actions.empty());
}

TEST(DecideServices, ShrinkElasticBatchAndGrowAsFarAsThereIsRoom) {
  JobRequest elastic = gang("elastic", 2, 1);
  elastic.roles[0].replicas_max = 6;
  elastic.is_preemptible = false;
  const Contest contest(1, 400, {elastic});
  const SchedulingDecision decision = decided(contest.snapshot, {});
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kShrink);
  EXPECT_EQ(decision.actions[0].replicas.size(), 2U);
  EXPECT_EQ(decision.actions[1].kind, ActionKind::kGrow);
  EXPECT_EQ(decision.actions[1].replicas.size(), 5U);
  EXPECT_EQ(decision.actions[1].reason,
            "demand of 400 within 2 min at 50 a replica needs 8 replicas; 4 more on 4 devices on "
            "node n1; job elastic makes room; for 3 there is no room");
}

TEST(DecideServices, KeepTheLimitOfTheirQueue) {
  ClusterSnapshot snapshot = cluster_of(2);
  JobRequest chat = service("chat", 1, 12, constant(420, 8 * kHour));
  chat.queue = "small";
  snapshot.running = {on_devices(chat, {{0, 0}, {0, 1}})};
  JobQueue queue;
  QuotaQueue small{.name = "small", .parent = ""};
  small.limit[0] = 4 * kDeviceMilli;
  queue.quotas = *QuotaTree::create({small, {.name = "large", .parent = ""}});
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].replicas.size(), 4U);
  EXPECT_TRUE(decision.actions[0].reason.ends_with(
      "for 5 there is no room: queue small is at its limit of 4 devices"))
      << decision.actions[0].reason;
}

TEST(DecideServices, GiveReplicasBackWhenNoForecastOfTheHoldTimeAskedForThem) {
  ClusterSnapshot snapshot = cluster_of(2);
  const std::vector<std::pair<int, int>> nine = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4},
                                                 {0, 5}, {0, 6}, {1, 0}, {1, 1}};
  snapshot.running = {on_devices(service("chat", 1, 9, falling(420, 130, 12)), nine)};
  EXPECT_TRUE(decided(snapshot, {}).actions.empty());
  snapshot.running[0].request.demand->history = falling(420, 130, 8 * kHour);
  const SchedulingDecision decision = decided(snapshot, {});
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kShrink);
  EXPECT_EQ(nodes_of(decision.actions[0]), (std::vector<int>{0, 0, 0}));  // node 1 is free
  EXPECT_EQ(decision.actions[0].reason,
            "demand of 130 within 2 min at 50 a replica needs 3 replicas, and for 15 min no "
            "forecast asked for more than 3; it gives 6 devices on 2 nodes below leaf 0 up");
}

TEST(DecideServices, NeedAllTheirReplicasUntilThereIsAForecast) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.running = {on_devices(service("chat", 1, 4, constant(10, 5)), {{0, 0}})};
  const SchedulingDecision decision = decided(snapshot, {});
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].reason,
            "its demand is known for 5 min alone, which gives no forecast: it needs all of its 4 "
            "replicas; 3 more on 3 devices on node n0");
}

TEST(DecideServices, StartWithTheSizeOfTheirForecastOrTheSmallestThatFits) {
  ClusterSnapshot snapshot = cluster_of(1);
  JobQueue queue;
  queue.jobs = {pending(service("chat", 2, 8, constant(300, 8 * kHour)))};
  SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].reason,
            "starts on 6 devices on node n0 after 16.7 min; demand of 300 within 2 min at 50 a "
            "replica needs 6 replicas");
  snapshot.nodes[0].failed_devices = 0xf8;
  decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].replicas.size(), 3U);
  EXPECT_TRUE(decision.actions[0].reason.ends_with("6 replicas; for 3 there is no room"));
  snapshot.nodes[0].failed_devices = 0xfe;
  decision = decided(snapshot, queue);
  EXPECT_TRUE(decision.actions.empty());
  ASSERT_EQ(decision.waiting.size(), 1U);
}

TEST(DecideServices, StartOnTheDevicesOfATypeThatTheirQueueMayUse) {
  const ClusterSnapshot snapshot = cluster_of(2);
  QuotaQueue online;
  online.name = "online";
  online.device_types = {{.type = "h100", .limit = 4 * kDeviceMilli}};
  JobQueue queue;
  queue.quotas = *QuotaTree::create({online});
  JobRequest chat = service("chat", 2, 8, constant(300, 8 * kHour));
  chat.queue = "online";
  queue.jobs = {pending(chat)};
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].replicas.size(), 4U);
}

TEST(DecideServices, KeepTheLimitOfTheTypeOnWhichTheyStartWhereAnotherTypeHasNone) {
  ClusterSnapshot snapshot = cluster_of(2);
  snapshot.nodes[1].device_type = "a100";
  snapshot.nodes[1].failed_devices = 0xff;
  QuotaQueue online;
  online.name = "online";
  online.device_types = {{.type = "h100", .limit = 4 * kDeviceMilli}};
  JobQueue queue;
  queue.quotas = *QuotaTree::create({online});
  JobRequest chat = service("chat", 2, 8, constant(300, 8 * kHour));
  chat.queue = "online";
  chat.device_types = {"h100", "a100"};
  queue.jobs = {pending(chat)};
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].replicas.size(), 4U);
  queue.jobs.clear();
  snapshot.running = {on_devices(chat, {{0, 0}, {0, 1}})};
  const SchedulingDecision grown = decided(snapshot, queue);
  ASSERT_EQ(grown.actions.size(), 1U);
  EXPECT_EQ(grown.actions[0].replicas.size(), 4U);
  EXPECT_TRUE(grown.actions[0].reason.ends_with(
      "for 2 there is no room: queue online is at its limit of 4 devices of type h100"))
      << grown.actions[0].reason;
}

// A service of priority 5 that has 4 of 8 devices and needs all, and a job that wants 3.
struct ServiceAndPendingJob {
  ClusterSnapshot snapshot = cluster_of(1);
  JobQueue queue;

  ServiceAndPendingJob(int priority, std::vector<QuotaQueue> queues) {
    JobRequest chat = service("chat", 1, 8, constant(400, 8 * kHour));
    chat.queue = "online";
    JobRequest job = gang("job", 1, 3);
    job.queue = "batch";
    job.priority = priority;
    snapshot.running = {on_devices(chat, {{0, 0}, {0, 1}, {0, 2}, {0, 3}})};
    queue.quotas = *QuotaTree::create(std::move(queues));
    queue.jobs = {pending(job)};
  }

  // Devices of the service and of the job after the decision.
  std::pair<std::size_t, bool> outcome() const {
    const SchedulingDecision decision = decided(snapshot, queue);
    const SchedulingAction* const chat = find_action(decision, "chat");
    const SchedulingAction* const job = find_action(decision, "job");
    return {chat == nullptr ? 4U : chat->replicas.size(), job != nullptr};
  }
};

TEST(DecideServices, LeaveFreeDevicesToAPendingJobOfHigherPriorityThatFits) {
  const std::vector<QuotaQueue> queues = {{.name = "online"}, {.name = "batch"}};
  EXPECT_EQ(ServiceAndPendingJob(6, queues).outcome(), std::pair(5UL, true));
  EXPECT_EQ(ServiceAndPendingJob(5, queues).outcome(), std::pair(8UL, false));
  ServiceAndPendingJob large(6, queues);
  large.queue.jobs[0].request.roles[0].devices = 5;
  EXPECT_EQ(large.outcome(), std::pair(8UL, false)) << "it does not fit, and the service stays";
}

TEST(DecideServices, GrowBeforeAJobOfHigherPriorityThatItsQueueMayNotStart) {
  QuotaQueue limited{.name = "batch"};
  limited.limit[0] = 2 * kDeviceMilli;
  EXPECT_EQ(ServiceAndPendingJob(6, {{.name = "online"}, limited}).outcome(),
            std::pair(8UL, false));
  QuotaQueue guaranteed{.name = "online"};
  guaranteed.guaranteed[Resource::kCompute] = 8 * kDeviceMilli;
  EXPECT_EQ(ServiceAndPendingJob(6, {guaranteed, {.name = "batch"}}).outcome(),
            std::pair(8UL, false));
  guaranteed.guaranteed[Resource::kCompute] = 4 * kDeviceMilli;
  EXPECT_EQ(ServiceAndPendingJob(6, {guaranteed, {.name = "batch"}}).outcome(),
            std::pair(5UL, true));
}

TEST(DecideServices, EvictForTheirForecastWhenTheyStart) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.running = {on_devices(gang("batch", 4, 1), {{0, 0}, {0, 1}, {0, 2}, {0, 3}})};
  JobQueue queue;
  queue.jobs = {pending(service("chat", 2, 8, constant(300, 8 * kHour)))};
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].job, "batch");
  EXPECT_EQ(decision.actions[1].kind, ActionKind::kStart);
  EXPECT_EQ(decision.actions[1].replicas.size(), 6U);
}

TEST(DecideServices, GiveReplicasUpForAHigherPriorityOnly) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.running = {on_devices(service("chat", 1, 8, constant(400, 8 * kHour)),
                                 {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}})};
  JobQueue queue;
  JobRequest other = gang("other", 2, 1);
  other.priority = 5;
  queue.jobs = {pending(other)};
  EXPECT_TRUE(decided(snapshot, queue).actions.empty());
  queue.jobs[0].request.priority = 6;
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kShrink);
  EXPECT_EQ(decision.actions[0].replicas.size(), 6U);
}

TEST(DecideServices, GrowFromWhatOthersGiveBackInTheSameDecision) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.running = {
      on_devices(service("rising", 1, 6, constant(300, 8 * kHour)), {{0, 0}, {0, 1}}),
      on_devices(service("ebbing", 1, 6, constant(100, 8 * kHour)),
                 {{0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}})};
  const SchedulingDecision decision = decided(snapshot, {});
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].job, "ebbing");
  EXPECT_EQ(find_action(decision, "rising")->replicas.size(), 6U);
}

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
    job.request.demand =
        ServiceDemand{.history = random.below(2) == 0 ? constant(now, random_int(random, 0, 400))
                                                      : falling(random_int(random, 0, 9), now,
                                                                random_int(random, 1, 40))};
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
