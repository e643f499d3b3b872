// Services that follow their demand: decide() on one state each.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/test_services.h"

namespace regatta::sched {
namespace {

TEST(DecideServices, GrowIntoFreeDevicesAheadOfTheirDemand) {
  ClusterSnapshot snapshot = cluster_of(2);
  snapshot.running = {on_devices(service("chat", 1, 12, steady_history(420, 8 * kHour)),
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
    snapshot.running = {
        on_devices(service("chat", 1, 8, steady_history(demand, 8 * kHour)), devices)};
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
  JobRequest chat = service("chat", 1, 12, steady_history(420, 8 * kHour));
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
  snapshot.running = {on_devices(service("chat", 1, 9, falling_history(420, 130, 12)), nine)};
  EXPECT_TRUE(decided(snapshot, {}).actions.empty());
  snapshot.running[0].request.demand->history = falling_history(420, 130, 8 * kHour);
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
  snapshot.running = {on_devices(service("chat", 1, 4, steady_history(10, 5)), {{0, 0}})};
  const SchedulingDecision decision = decided(snapshot, {});
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].reason,
            "its demand is known for 5 min alone, which gives no forecast: it needs all of its 4 "
            "replicas; 3 more on 3 devices on node n0");
}

TEST(DecideServices, StartWithTheSizeOfTheirForecastOrTheSmallestThatFits) {
  ClusterSnapshot snapshot = cluster_of(1);
  JobQueue queue;
  queue.jobs = {pending(service("chat", 2, 8, steady_history(300, 8 * kHour)))};
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
  JobRequest chat = service("chat", 2, 8, steady_history(300, 8 * kHour));
  chat.queue = "online";
  queue.jobs = {pending(chat)};
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].replicas.size(), 4U);
}

TEST(DecideServices, EvictForTheirForecastWhenTheyStart) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.running = {on_devices(gang("batch", 4, 1), {{0, 0}, {0, 1}, {0, 2}, {0, 3}})};
  JobQueue queue;
  queue.jobs = {pending(service("chat", 2, 8, steady_history(300, 8 * kHour)))};
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].job, "batch");
  EXPECT_EQ(decision.actions[1].kind, ActionKind::kStart);
  EXPECT_EQ(decision.actions[1].replicas.size(), 6U);
}

TEST(DecideServices, GiveReplicasUpForAHigherPriorityOnly) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.running = {on_devices(service("chat", 1, 8, steady_history(400, 8 * kHour)),
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
      on_devices(service("rising", 1, 6, steady_history(300, 8 * kHour)), {{0, 0}, {0, 1}}),
      on_devices(service("ebbing", 1, 6, steady_history(100, 8 * kHour)),
                 {{0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}})};
  const SchedulingDecision decision = decided(snapshot, {});
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].job, "ebbing");
  EXPECT_EQ(find_action(decision, "rising")->replicas.size(), 6U);
}

}  // namespace
}  // namespace regatta::sched
