// Decisions about nodes that fail: histories, nodes that are avoided, spares, draining.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

constexpr Seconds kDay{86400};

SchedulingPolicy regatta_with_spares(int nodes) {
  SchedulingPolicy policy = *find_scheduling_policy("regatta");
  policy.spares = {.nodes = nodes, .share = 0, .gang_devices = 32};
  return policy;
}

SchedulingDecision decided(const ClusterSnapshot& snapshot, const std::vector<PendingJob>& jobs,
                           const SchedulingPolicy& policy) {
  JobQueue queue;
  queue.jobs = jobs;
  const auto decision = decide(snapshot, queue, policy);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision ? *decision : SchedulingDecision{};
}

// A cluster that has been watched for 30 days; `node` failed in each of the last `times` days.
ClusterSnapshot watched_cluster(int count, int node, int times) {
  ClusterSnapshot snapshot = cluster_of(count);
  snapshot.now = 30 * kDay;
  for (ClusterNode& each : snapshot.nodes)
    each.failures = {};
  for (int i = times; i >= 1; --i)
    at(snapshot.nodes, node).failures.push_back(snapshot.now - i * kDay);
  return snapshot;
}

PendingJob waiting(const char* name, int replicas, int devices) {
  JobRequest job = gang(name, replicas, devices);
  job.submitted = 30 * kDay;
  return pending(job);
}

TEST(DecideWithHistories, AvoidsANodeThatFailsAgainWhileOthersSuffice) {
  const ClusterSnapshot snapshot = watched_cluster(8, 0, 12);
  const SchedulingPolicy policy = *find_scheduling_policy("regatta");
  const auto seven = decided(snapshot, {waiting("a", 7, 8)}, policy);
  ASSERT_EQ(seven.actions.size(), 1U);
  const std::vector<int> nodes = nodes_of(seven.actions[0]);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), 0), 0);
  const auto all = decided(snapshot, {waiting("a", 4, 8), waiting("b", 4, 8)}, policy);
  ASSERT_EQ(all.actions.size(), 2U) << "the avoided node is taken where the others do not do";
  EXPECT_EQ(all.actions[0].reason.find("failed"), std::string::npos);
  EXPECT_NE(all.actions[1].reason.find("; node n0 failed 12 times in 90 d, and no other has room"),
            std::string::npos)
      << all.actions[1].reason;
}

TEST(DecideWithHistories, TakesAnyNodeWithoutAvoidFailing) {
  ClusterSnapshot snapshot = watched_cluster(8, 0, 12);
  SchedulingPolicy policy = *find_scheduling_policy("fifo");
  policy.risk_weight = 0;
  for (int i = 1; i < 8; ++i)
    at(snapshot.nodes, i).health = NodeHealth::kCordoned;
  const auto decision = decided(snapshot, {waiting("a", 1, 8)}, policy);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].reason.find("failed"), std::string::npos);
}

TEST(DecideWithHistories, MovesAGangOffANodeThatFailsAgainOnceTheCheckpointIsFresh) {
  ClusterSnapshot snapshot = watched_cluster(8, 0, 12);
  JobRequest job = gang("a", 4, 8);
  job.run_time = {.median = 20 * kDay, .log_spread = 0};
  snapshot.running = {running(job, {0, 1, 2, 3})};
  snapshot.running[0].started = snapshot.now - Seconds{7200};
  snapshot.running[0].checkpointed = snapshot.now;
  const SchedulingPolicy policy = *find_scheduling_policy("regatta");
  const auto decision = decided(snapshot, {}, policy);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kMove);
  const std::vector<int> nodes = nodes_of(decision.actions[0]);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), 0), 0);
  snapshot.running[0].checkpointed = snapshot.now - Seconds{300};
  EXPECT_TRUE(decided(snapshot, {}, policy).actions.empty()) << "the next checkpoint comes soon";
}

RunningJob at_risk_on(const ClusterSnapshot& snapshot, int node) {
  JobRequest job = gang("a", 1, 8);
  job.run_time = {.median = 20 * kDay, .log_spread = 0};
  RunningJob made = running(job, {node});
  made.started = snapshot.now - Seconds{7200};
  made.checkpointed = snapshot.now;
  return made;
}

TEST(DecideWithHistories, MovesAJobOffANodeThatFailsAgainHoweverFewOthersThereAre) {
  const SchedulingPolicy policy = *find_scheduling_policy("regatta");
  for (const int count : {2, 3, 4, 5, 8, 40}) {
    for (const int failures : {3, 12}) {
      ClusterSnapshot snapshot = watched_cluster(count, 0, failures);
      snapshot.running = {at_risk_on(snapshot, 0)};
      const auto decision = decided(snapshot, {}, policy);
      ASSERT_EQ(decision.actions.size(), 1U) << count << " nodes, " << failures << " failures";
      EXPECT_EQ(decision.actions[0].kind, ActionKind::kMove);
      EXPECT_NE(nodes_of(decision.actions[0]).front(), 0);
    }
  }
}

TEST(DecideWithHistories, StartsAJobOnTheSaferNodeHoweverFewThereAre) {
  for (const int count : {2, 3, 4}) {
    const auto decision = decided(watched_cluster(count, 0, 12), {waiting("a", 1, 8)},
                                  *find_scheduling_policy("regatta"));
    ASSERT_EQ(decision.actions.size(), 1U);
    EXPECT_NE(nodes_of(decision.actions[0]).front(), 0) << count << " nodes";
  }
}

TEST(DecideWithHistories, LeavesAJobWhereAllNodesFailAlike) {
  for (const int count : {2, 3, 8}) {
    ClusterSnapshot snapshot = watched_cluster(count, 0, 12);
    for (ClusterNode& node : snapshot.nodes)
      node.failures = snapshot.nodes[0].failures;
    snapshot.running = {at_risk_on(snapshot, 0)};
    EXPECT_TRUE(decided(snapshot, {}, *find_scheduling_policy("regatta")).actions.empty());
  }
}

TEST(DecideWithHistories, MovesAJobPastAnotherNodeThatFailsAgain) {
  // The gang that runs keeps leaf 0 in use: a place there breaks no free leaf.
  ClusterSnapshot snapshot = watched_cluster(8, 0, 12);
  snapshot.nodes[1].failures = snapshot.nodes[0].failures;
  snapshot.running = {at_risk_on(snapshot, 0), running(gang("b", 2, 8), {2, 3})};
  SchedulingPolicy policy = *find_scheduling_policy("regatta");
  policy.risk_weight = 0;
  const auto decision = decided(snapshot, {}, policy);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_GE(nodes_of(decision.actions[0]).front(), 4);
}

TEST(DecideWithHistories, LeavesTheWorstNodesWhereTheOthersDoNotHoldAllThatWouldGo) {
  ClusterSnapshot snapshot = watched_cluster(6, 1, 20);
  for (const int node : {0, 2, 3})
    snapshot.nodes[as_index(node)].failures = {23 * kDay, 25 * kDay, 27 * kDay, 29 * kDay};
  RunningJob job = at_risk_on(snapshot, 0);
  job.request.roles[0].replicas_min = job.request.roles[0].replicas_max = 4;
  for (const int node : {1, 2, 3})
    job.replicas.push_back({.role = 0, .node = node, .devices = 0xff});
  snapshot.running = {job, running(gang("b", 1, 8), {4})};
  const auto decision = decided(snapshot, {}, *find_scheduling_policy("regatta"));
  ASSERT_EQ(decision.actions.size(), 1U);
  std::vector<int> nodes = nodes_of(decision.actions[0]);
  std::sort(nodes.begin(), nodes.end());
  EXPECT_EQ(nodes, (std::vector<int>{0, 2, 3, 5}));
}

// A gang of 4 nodes runs on 0 to 3; the leaf has 4 nodes, the cluster 8.
ClusterSnapshot large_gang(bool has_failed) {
  ClusterSnapshot snapshot = cluster_of(8);
  snapshot.running = {running(gang("large", 4, 8), {0, 1, 2, 3})};
  if (has_failed) snapshot.nodes[1].health = NodeHealth::kFailed;
  return snapshot;
}

TEST(DecideWithSpares, KeepsNodesFreeOfOtherJobsAndSaysSo) {
  std::vector<PendingJob> jobs;
  for (const char* name : {"a", "b", "c", "d"})
    jobs.push_back(pending(gang(name, 1, 8)));
  const auto decision = decided(large_gang(false), jobs, regatta_with_spares(1));
  EXPECT_EQ(decision.actions.size(), 3U);
  ASSERT_EQ(decision.waiting.size(), 1U);
  EXPECT_EQ(decision.waiting[0].cause, WaitCause::kSpares);
}

TEST(DecideWithSpares, KeepsAShareOfTheHealthyNodes) {
  SchedulingPolicy policy = regatta_with_spares(0);
  policy.spares.share = 0.25;
  std::vector<PendingJob> jobs;
  for (const char* name : {"a", "b", "c", "d"})
    jobs.push_back(pending(gang(name, 1, 8)));
  EXPECT_EQ(decided(large_gang(false), jobs, policy).actions.size(), 2U);
}

TEST(DecideWithSpares, KeepsNoneWithoutALargeGang) {
  ClusterSnapshot snapshot = cluster_of(4);
  const auto decision = decided(snapshot, {pending(gang("a", 4, 8))}, regatta_with_spares(1));
  EXPECT_EQ(decision.actions.size(), 1U);
  snapshot.running = {running(gang("small", 2, 8), {0, 1})};
  const auto beside = decided(snapshot, {pending(gang("a", 2, 8))}, regatta_with_spares(1));
  EXPECT_EQ(beside.actions.size(), 1U);
}

TEST(DecideWithSpares, HealsALargeGangByASpareFirst) {
  ClusterSnapshot snapshot = large_gang(true);
  const auto decision = decided(snapshot, {pending(gang("a", 3, 8))}, regatta_with_spares(1));
  ASSERT_EQ(decision.actions.size(), 1U) << "one node is the spare that healed, one is kept again";
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kReplace);
  EXPECT_NE(decision.actions[0].reason.find("with spare 8 devices on node n"), std::string::npos)
      << decision.actions[0].reason;
}

TEST(DecideWithSpares, HealsASmallGangWithoutThem) {
  ClusterSnapshot snapshot = large_gang(false);
  snapshot.running.push_back(running(gang("small", 3, 8), {4, 5, 6}));
  snapshot.nodes[5].health = NodeHealth::kFailed;
  const auto kept = decided(snapshot, {}, regatta_with_spares(1));
  EXPECT_TRUE(kept.actions.empty()) << "node 7 is the spare of the large gang";
  const auto healed = decided(snapshot, {}, *find_scheduling_policy("regatta"));
  EXPECT_EQ(healed.actions.size(), 1U);
}

TEST(DecideWithSpares, NeverKeepsAFailingNodeAsASpare) {
  ClusterSnapshot snapshot = watched_cluster(8, 7, 12);
  snapshot.running = {running(gang("large", 4, 8), {0, 1, 2, 3})};
  snapshot.nodes[1].health = NodeHealth::kFailed;
  const auto decision = decided(snapshot, {}, regatta_with_spares(4));
  ASSERT_EQ(decision.actions.size(), 1U);
  const std::vector<int> nodes = nodes_of(decision.actions[0]);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), 7), 0);
}

TEST(CheckSnapshot, RefusesAHistoryThatTurnsWrong) {
  ClusterSnapshot snapshot = watched_cluster(2, 0, 3);
  ASSERT_TRUE(check_snapshot(snapshot));
  const auto message = [&] {
    const Status status = check_snapshot(snapshot);
    return status ? std::string() : status.error().message;
  };
  ClusterNode& node = snapshot.nodes[0];
  snapshot.now = 28 * kDay;
  EXPECT_EQ(message(),
            "node n0: a failure is not between the time since when it is watched and now; correct "
            "one of them");
  snapshot.now = 30 * kDay;
  node.watched_since = 28 * kDay;
  EXPECT_NE(message().find("a failure is not between"), std::string::npos);
  node.watched_since = {};
  std::swap(node.failures[0], node.failures[1]);
  EXPECT_EQ(message(), "node n0: its failures are not in order; sort them by their time");
  node.failures.assign(kNodeFailuresMax + 1, kDay);
  EXPECT_EQ(message(), "node n0: 257 failures; give the latest 256");
}

}  // namespace
}  // namespace regatta::sched
