#include "regatta/platform/sched/decide.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

SchedulingPolicy policy(const char* name) {
  return *find_scheduling_policy(name);
}

SchedulingDecision decided(const ClusterSnapshot& snapshot, const JobQueue& queue,
                           const SchedulingPolicy& how) {
  auto decision = decide(snapshot, queue, how);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision ? *decision : SchedulingDecision{};
}

TEST(Decide, StartsAWholeGangBelowOneLeaf) {
  const ClusterSnapshot snapshot = cluster_of(8);
  JobQueue queue;
  queue.jobs = {pending(gang("a", 3, 8))};
  const SchedulingDecision decision = decided(snapshot, queue, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kStart);
  EXPECT_EQ(nodes_of(decision.actions[0]).size(), 3U);
  EXPECT_EQ(decision.actions[0].reason,
            "starts on 24 devices on 3 nodes below leaf 0 after 16.7 min");
  EXPECT_TRUE(decision.waiting.empty());
}

TEST(Decide, StartsNothingOfAGangThatDoesNotFit) {
  ClusterSnapshot snapshot = cluster_of(3);
  snapshot.nodes[1].health = NodeHealth::kFailed;
  JobQueue queue;
  queue.jobs = {pending(gang("a", 3, 8))};
  const SchedulingDecision decision = decided(snapshot, queue, policy("regatta"));
  EXPECT_TRUE(decision.actions.empty());
  ASSERT_EQ(decision.waiting.size(), 1U);
  EXPECT_EQ(decision.waiting[0].cause, WaitCause::kNoRoom);
}

TEST(Decide, LetsNothingPassInAFifoAndShortJobsPassInABackfill) {
  ClusterSnapshot snapshot = cluster_of(2);
  JobRequest busy = gang("busy", 1, 8);
  busy.run_time.median = {7200};  // an hour of it is over
  snapshot.running = {running(busy, {0})};
  JobQueue queue;
  JobRequest wide = gang("wide", 2, 8);
  JobRequest short_job = gang("short", 1, 8);
  short_job.run_time.median = {1800};
  short_job.submitted = {99'500};
  JobRequest long_job = gang("long", 1, 8);
  long_job.run_time.median = {7200};
  long_job.submitted = {99'400};
  queue.jobs = {pending(wide), pending(long_job), pending(short_job)};
  EXPECT_TRUE(decided(snapshot, queue, policy("fifo")).actions.empty());
  const SchedulingDecision backfill = decided(snapshot, queue, policy("backfill"));
  ASSERT_EQ(backfill.actions.size(), 1U);
  EXPECT_EQ(backfill.actions[0].job, "short");
  ASSERT_EQ(backfill.waiting.size(), 2U);
  EXPECT_EQ(backfill.waiting[0].cause, WaitCause::kNoRoom);
  EXPECT_EQ(backfill.waiting[1].cause, WaitCause::kReservation);
}

TEST(Decide, KeepsAJobWithinTheLimitOfItsQueue) {
  const ClusterSnapshot snapshot = cluster_of(4);
  JobQueue queue;
  QuotaQueue small{.name = "small", .parent = ""};
  small.limit[0] = 8 * kDeviceMilli;
  queue.quotas = *QuotaTree::create({small, {.name = "large", .parent = ""}});
  JobRequest a = gang("a", 2, 8);
  a.queue = "small";
  JobRequest b = gang("b", 1, 8);
  b.queue = "small";
  queue.jobs = {pending(a), pending(b)};
  const SchedulingDecision decision = decided(snapshot, queue, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].job, "b");
  EXPECT_EQ(decision.waiting[0].cause, WaitCause::kQuota);
}

TEST(Decide, RefusesAJobOfAQueueThatDoesNotExist) {
  JobQueue queue;
  queue.quotas = *QuotaTree::create({{.name = "large", .parent = ""}});
  JobRequest job = gang("a", 1, 8);
  job.queue = "lagre";
  queue.jobs = {pending(job)};
  const auto decision = decide(cluster_of(1), queue, policy("regatta"));
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().code, Code::kInvalidInput);
  EXPECT_NE(decision.error().message.find("job a: "), std::string::npos);
}

// The case of Kueue's issue 5243: four nodes of eight devices, each with low jobs; what is freed
// has to be a whole node.
TEST(Decide, EvictsOnOneNodeForAJobThatNeedsAWholeNode) {
  ClusterSnapshot snapshot = cluster_of(4);
  for (int node = 0; node < 4; ++node) {
    for (int half = 0; half < 2; ++half) {
      RunningJob job = running(gang("low" + std::to_string(2 * node + half), 1, 4), {node});
      job.replicas[0].devices = half == 0 ? 0x0FU : 0xF0U;
      snapshot.running.push_back(job);
    }
  }
  JobQueue queue;
  JobRequest high = gang("high", 1, 8);
  high.priority = 1;
  queue.jobs = {pending(high)};
  SchedulingPolicy how = policy("regatta");
  how.moves = 0;
  const SchedulingDecision decision = decided(snapshot, queue, how);
  ASSERT_EQ(decision.actions.size(), 3U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kEvict);
  EXPECT_EQ(decision.actions[1].kind, ActionKind::kEvict);
  EXPECT_EQ(decision.actions[2].kind, ActionKind::kStart);
  const int node = decision.actions[2].replicas[0].node;
  for (int i = 0; i < 2; ++i) {
    const int victim = std::stoi(decision.actions[static_cast<std::size_t>(i)].job.substr(3));
    EXPECT_EQ(victim / 2, node);
  }
}

TEST(Decide, EvictsNobodyWhereTheGangWouldNotFitEither) {
  ClusterSnapshot snapshot = cluster_of(2);
  RunningJob keeps = running(gang("keeps", 1, 8), {0});
  keeps.request.is_preemptible = false;
  snapshot.running = {keeps, running(gang("low", 1, 8), {1})};
  JobQueue queue;
  JobRequest high = gang("high", 2, 8);
  high.priority = 9;
  queue.jobs = {pending(high)};
  EXPECT_TRUE(decided(snapshot, queue, policy("regatta")).actions.empty());
}

// The case of Volcano's issue 5805: a gang that lost nodes keeps its places, however many jobs
// wait, and runs whole again when they return.
TEST(Decide, KeepsThePlacesOfADegradedGangUntilItsNodesReturn) {
  ClusterSnapshot snapshot = cluster_of(4);
  snapshot.running = {running(gang("gang", 4, 8), {0, 1, 2, 3})};
  snapshot.nodes[1].health = snapshot.nodes[2].health = NodeHealth::kFailed;
  SchedulingPolicy how = policy("regatta");
  JobQueue queue;
  for (int i = 0; i < 1000; ++i)
    queue.jobs.push_back(pending(gang("pod" + std::to_string(i), 1, 1)));
  SchedulingDecision decision = decided(snapshot, queue, how);
  EXPECT_TRUE(decision.actions.empty())
      << decision.actions[0].job << ": " << decision.actions[0].reason;
  EXPECT_EQ(decision.waiting.front().job, "gang");
  EXPECT_EQ(decision.waiting.front().cause, WaitCause::kDegraded);
  snapshot.nodes[1].health = NodeHealth::kReady;
  EXPECT_TRUE(decided(snapshot, queue, how).actions.empty());
  snapshot.nodes[2].health = NodeHealth::kReady;
  decision = decided(snapshot, queue, how);
  EXPECT_TRUE(decision.actions.empty());
  EXPECT_NE(decision.waiting.front().job, "gang");
}

TEST(Decide, ReplacesSeveralFailedNodesOfAGangAtOnce) {
  ClusterSnapshot snapshot = cluster_of(8, 8);
  snapshot.running = {running(gang("gang", 4, 8), {0, 1, 2, 3})};
  snapshot.nodes[1].health = snapshot.nodes[2].health = NodeHealth::kFailed;
  JobQueue queue;
  queue.jobs.push_back(pending(gang("other", 4, 8)));
  const SchedulingDecision decision = decided(snapshot, queue, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kReplace);
  const std::vector<int> nodes = nodes_of(decision.actions[0]);
  EXPECT_EQ(std::set<int>(nodes.begin(), nodes.end()), (std::set<int>{0, 3, 4, 5}));
}

TEST(Decide, GrowsAnElasticJobIntoIdleDevicesAndShrinksItForAnotherJob) {
  ClusterSnapshot snapshot = cluster_of(4);
  JobQueue queue;
  JobRequest elastic = gang("elastic", 1, 8);
  elastic.roles[0].replicas_max = 4;
  queue.jobs = {pending(elastic)};
  SchedulingDecision decision = decided(snapshot, queue, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].replicas.size(), 4U);
  apply_decision(decision, snapshot, queue);
  snapshot.now += Seconds{1000};
  queue.jobs = {pending(gang("other", 2, 8))};
  decision = decided(snapshot, queue, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kShrink);
  EXPECT_EQ(decision.actions[0].replicas.size(), 2U);
  EXPECT_EQ(decision.actions[1].job, "other");
}

TEST(Decide, ShrinksAnElasticJobThatJustSavedACheckpointInsteadOfEvictingIt) {
  ClusterSnapshot snapshot = cluster_of(4);
  JobRequest elastic = gang("elastic", 1, 8);
  elastic.roles[0].replicas_max = 4;
  elastic.checkpointing = {.interval = {1800}, .write = {}, .restart = {120}};
  RunningJob job = running(elastic, {0, 1, 2, 3});
  job.checkpointed = snapshot.now - Seconds{10};
  snapshot.running = {job};
  JobQueue queue;
  queue.jobs = {pending(gang("other", 3, 8))};
  queue.jobs[0].request.priority = 5;
  const SchedulingDecision decision = decided(snapshot, queue, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kShrink);
  EXPECT_EQ(decision.actions[0].replicas.size(), 1U);
}

TEST(Decide, MovesASmallJobWhereAGangThenFits) {
  ClusterSnapshot snapshot = cluster_of(3, 3);
  RunningJob small = running(gang("small", 1, 2), {0});
  RunningJob other = running(gang("other", 1, 2), {1});
  small.request.run_time.median = other.request.run_time.median = {36'000};
  snapshot.running = {small, other};
  JobQueue queue;
  queue.jobs = {pending(gang("wide", 2, 8))};
  const SchedulingDecision decision = decided(snapshot, queue, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kMove);
  EXPECT_EQ(decision.actions[1].job, "wide");
}

TEST(Decide, TakesBackWhatAQueueIsGuaranteed) {
  ClusterSnapshot snapshot = cluster_of(2);
  JobQueue queue;
  QuotaQueue mine{.name = "mine", .parent = ""};
  mine.guaranteed[Resource::kCompute] = 8 * kDeviceMilli;
  queue.quotas = *QuotaTree::create({mine, {.name = "theirs", .parent = ""}});
  JobRequest borrowed = gang("borrowed", 1, 8);
  borrowed.queue = "theirs";
  JobRequest second = borrowed;
  second.name = "second";
  snapshot.running = {running(borrowed, {0}), running(second, {1})};
  snapshot.running[1].checkpointed = {99'990};
  JobRequest job = gang("job", 1, 8);
  job.queue = "mine";
  queue.jobs = {pending(job)};
  SchedulingPolicy how = policy("regatta");
  const SchedulingDecision decision = decided(snapshot, queue, how);
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].job, "second");  // it loses less
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kEvict);
  EXPECT_EQ(decision.actions[1].job, "job");
}

TEST(Decide, LetsNewJobsEvictServedOnesByAttainedServiceAlone) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.running = {running(gang("served", 1, 8), {0})};  // for an hour: 8 device-hours
  JobQueue queue;
  queue.jobs = {pending(gang("new", 1, 8))};
  EXPECT_TRUE(decided(snapshot, queue, policy("regatta")).actions.empty());
  const SchedulingDecision decision = decided(snapshot, queue, policy("attained_service"));
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kEvict);
  EXPECT_EQ(decision.actions[1].job, "new");
}

TEST(Decide, PutsSlicesOfDifferentJobsOnOneDevice) {
  const ClusterSnapshot snapshot = cluster_of(2);
  JobQueue queue;
  for (int i = 0; i < 4; ++i) {
    JobRequest slice = gang("slice" + std::to_string(i), 1, 1);
    slice.roles[0].device_milli = 250;
    slice.roles[0].device_memory_mib = 20 << 10;
    queue.jobs.push_back(pending(slice));
  }
  const SchedulingDecision decision = decided(snapshot, queue, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 4U);
  for (const SchedulingAction& action : decision.actions)
    EXPECT_EQ(action.replicas[0], decision.actions[0].replicas[0]);
}

TEST(Decide, LeavesADrainingNodeOnceACheckpointIsFresh) {
  ClusterSnapshot snapshot = cluster_of(2);
  snapshot.running = {running(gang("job", 1, 8), {0})};
  snapshot.nodes[0].health = NodeHealth::kDraining;
  EXPECT_TRUE(decided(snapshot, {}, policy("regatta")).actions.empty());
  snapshot.running[0].checkpointed = {99'995};
  const SchedulingDecision decision = decided(snapshot, {}, policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kMove);
  EXPECT_EQ(nodes_of(decision.actions[0]), std::vector<int>{1});
}

TEST(Decide, EvictsTheLastStartedOfTheLowestPriorityToTheSecond) {
  ClusterSnapshot snapshot = cluster_of(3);
  for (int i = 0; i < 3; ++i) {
    JobRequest job = gang("r" + std::to_string(i), 1, 8);
    job.priority = i == 0 ? -1 : 1'000'000;  // far above the lowest, which is not to be evicted
    job.is_preemptible = i > 0;
    snapshot.running.push_back(running(job, {i}));
  }
  snapshot.running[1].started = {96'399};
  JobQueue queue;
  queue.jobs = {pending(gang("new", 1, 8))};
  queue.jobs[0].request.priority = 2'000'000;
  SchedulingPolicy how = policy("regatta");
  how.victims = VictimRule::kLowestPriority;
  how.moves = 0;
  for (const char* const last : {"r2", "r1"}) {
    const SchedulingDecision decision = decided(snapshot, queue, how);
    ASSERT_EQ(decision.actions.size(), 2U);
    EXPECT_EQ(decision.actions[0].job, last);
    std::swap(snapshot.running[1].started, snapshot.running[2].started);
  }
}

TEST(ApplyDecision, KeepsTheOrderOfThoseThatStayAndAddsOthersAtTheEnd) {
  ClusterSnapshot snapshot = cluster_of(8);
  for (int i = 0; i < 4; ++i)
    snapshot.running.push_back(running(gang("r" + std::to_string(i), 1, 8), {i}));
  JobQueue queue;
  for (int i = 0; i < 4; ++i)
    queue.jobs.push_back(pending(gang("p" + std::to_string(i), 1, 8)));
  SchedulingDecision decision;
  decision.actions = {{.kind = ActionKind::kEvict, .job = "r1"},
                      {.kind = ActionKind::kStart, .job = "p2", .replicas = {{0, 5, 0xff}}},
                      {.kind = ActionKind::kStart, .job = "p0", .replicas = {{0, 6, 0xff}}},
                      {.kind = ActionKind::kStart, .job = "r1", .replicas = {{0, 7, 0xff}}},
                      {.kind = ActionKind::kEvict, .job = "p2"},
                      {.kind = ActionKind::kEvict, .job = "unknown"},
                      {.kind = ActionKind::kMove, .job = "r3", .replicas = {{0, 1, 0xff}}}};
  apply_decision(decision, snapshot, queue);
  std::vector<std::string> names;
  for (const RunningJob& job : snapshot.running)
    names.push_back(job.request.name);
  EXPECT_EQ(names, (std::vector<std::string>{"r0", "r2", "r3", "p0", "r1"}));
  EXPECT_EQ(snapshot.running[2].replicas[0].node, 1);
  EXPECT_EQ(snapshot.running[4].replicas[0].node, 7);
  names.clear();
  for (const PendingJob& job : queue.jobs)
    names.push_back(job.request.name);
  EXPECT_EQ(names, (std::vector<std::string>{"p1", "p3", "p2"}));
  EXPECT_EQ(queue.jobs[2].evictions, 1);
}

}  // namespace
}  // namespace regatta::sched
