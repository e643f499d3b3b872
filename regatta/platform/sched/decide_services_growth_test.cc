// Services that grow: the quotas of their queues, and the pending jobs that go first.
#include <cstddef>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/test_services.h"

namespace regatta::sched {
namespace {

TEST(DecideServiceGrowth, KeepTheLimitOfTheTypeOnWhichTheyStartWhereAnotherTypeHasNone) {
  ClusterSnapshot snapshot = cluster_of(2);
  snapshot.nodes[1].device_type = "a100";
  snapshot.nodes[1].failed_devices = 0xff;
  QuotaQueue online;
  online.name = "online";
  online.device_types = {{.type = "h100", .limit = 4 * kDeviceMilli}};
  JobQueue queue;
  queue.quotas = *QuotaTree::create({online});
  JobRequest chat = service("chat", 2, 8, steady_history(300, 8 * kHour));
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
    JobRequest chat = service("chat", 1, 8, steady_history(400, 8 * kHour));
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

TEST(DecideServiceGrowth, LeaveFreeDevicesToAPendingJobOfHigherPriorityThatFits) {
  const std::vector<QuotaQueue> queues = {{.name = "online"}, {.name = "batch"}};
  EXPECT_EQ(ServiceAndPendingJob(6, queues).outcome(), std::pair(5UL, true));
  EXPECT_EQ(ServiceAndPendingJob(5, queues).outcome(), std::pair(8UL, false));
  ServiceAndPendingJob large(6, queues);
  large.queue.jobs[0].request.roles[0].devices = 5;
  EXPECT_EQ(large.outcome(), std::pair(8UL, false)) << "it does not fit, and the service stays";
}

TEST(DecideServiceGrowth, GrowBeforeAJobOfHigherPriorityThatItsQueueMayNotStart) {
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

// It accepts two types, and its queue is guaranteed devices of one of them.
TEST(DecideServiceGrowth, IsGuaranteedOnTheTypeThatTheServiceHas) {
  const auto outcome_of = [](const char* guaranteed_type) {
    QuotaQueue online{.name = "online"};
    online.guaranteed[Resource::kCompute] = 8 * kDeviceMilli;
    online.device_types = {{.type = guaranteed_type, .guaranteed = 8 * kDeviceMilli}};
    ServiceAndPendingJob state(6, {online, {.name = "batch"}});
    state.snapshot.running[0].request.device_types = {"h100", "a100"};
    return state.outcome();
  };
  EXPECT_EQ(outcome_of("h100"), std::pair(8UL, false));
  EXPECT_EQ(outcome_of("a100"), std::pair(5UL, true));
}

}  // namespace
}  // namespace regatta::sched
