// Quotas of devices of one type, through whole decisions.
#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

// Two nodes of type h100, then two of type a100.
ClusterSnapshot cluster_of_two_types() {
  ClusterSnapshot snapshot = cluster_of(4, 2);
  at(snapshot.nodes, 2).device_type = at(snapshot.nodes, 3).device_type = "a100";
  return snapshot;
}

QuotaQueue queue_of(const std::string& name, std::vector<DeviceTypeQuota> device_types) {
  QuotaQueue queue;
  queue.name = name;
  queue.device_types = std::move(device_types);
  return queue;
}

JobRequest job_in(const std::string& queue, const std::string& name, int replicas,
                  std::vector<std::string> types) {
  JobRequest job = gang(name, replicas, 8);
  job.queue = queue;
  job.device_types = std::move(types);
  return job;
}

SchedulingDecision decision_of(const ClusterSnapshot& snapshot, const JobQueue& queue) {
  const auto decision = decide(snapshot, queue, *find_scheduling_policy("regatta"));
  EXPECT_TRUE(decision) << decision.error().message;
  return decision ? *decision : SchedulingDecision{};
}

TEST(DeviceTypeQuotas, AGuaranteeTakesBackDevicesOfItsTypeAlone) {
  ClusterSnapshot snapshot = cluster_of_two_types();
  JobQueue queue;
  queue.quotas = *QuotaTree::create(
      {queue_of("a", {{.type = "h100", .guaranteed = 8000}}), queue_of("b", {})});
  snapshot.running = {
      running(job_in("b", "b0", 1, {"h100"}), {0}), running(job_in("b", "b1", 1, {"h100"}), {1}),
      running(job_in("b", "b2", 1, {"a100"}), {2}), running(job_in("b", "b3", 1, {"a100"}), {3})};
  queue.jobs = {pending(job_in("a", "wants_a100", 1, {"a100"})),
                pending(job_in("a", "wants_two", 2, {"h100"})),
                pending(job_in("a", "wants_h100", 1, {"h100"}))};
  const SchedulingDecision decision = decision_of(snapshot, queue);
  EXPECT_EQ(find_action(decision, "wants_a100"), nullptr);
  EXPECT_EQ(find_action(decision, "wants_two"), nullptr);
  ASSERT_NE(find_action(decision, "wants_h100"), nullptr);
  EXPECT_EQ(decision.actions.size(), 2U);  // and one job makes room
  EXPECT_LT(nodes_of(*find_action(decision, "wants_h100")).front(), 2);
}

TEST(DeviceTypeQuotas, AGuaranteeKeepsItsDevicesAndNotThoseOfOtherTypes) {
  ClusterSnapshot snapshot = cluster_of_two_types();
  JobQueue queue;
  QuotaQueue any = queue_of("any", {});
  any.guaranteed[Resource::kCompute] = 16 * kDeviceMilli;
  queue.quotas = *QuotaTree::create({queue_of("a", {{.type = "h100", .guaranteed = 16'000}}), any});
  snapshot.running = {
      running(job_in("a", "h0", 1, {"h100"}), {0}), running(job_in("a", "h1", 1, {"h100"}), {1}),
      running(job_in("a", "a0", 1, {"a100"}), {2}), running(job_in("a", "a1", 1, {"a100"}), {3})};
  queue.jobs = {pending(job_in("any", "p", 1, {"h100"})),
                pending(job_in("any", "q", 1, {"a100", "h100"}))};
  const SchedulingDecision decision = decision_of(snapshot, queue);
  EXPECT_EQ(find_action(decision, "p"), nullptr);
  EXPECT_EQ(find_action(decision, "h0"), nullptr);
  EXPECT_EQ(find_action(decision, "h1"), nullptr);
  ASSERT_NE(find_action(decision, "q"), nullptr);
  EXPECT_GE(nodes_of(*find_action(decision, "q")).front(), 2);
}

TEST(DeviceTypeQuotas, ALimitHoldsForItsTypeAndAJobOfTwoTypesGetsTheOther) {
  ClusterSnapshot snapshot = cluster_of_two_types();
  JobQueue queue;
  queue.quotas = *QuotaTree::create({queue_of("a", {{.type = "h100", .limit = 8000}})});
  queue.jobs = {
      pending(job_in("a", "first", 1, {"h100"})), pending(job_in("a", "second", 1, {"h100"})),
      pending(job_in("a", "either", 1, {"h100", "a100"})), pending(job_in("a", "any", 1, {}))};
  const SchedulingDecision decision = decision_of(snapshot, queue);
  ASSERT_NE(find_action(decision, "first"), nullptr);
  ASSERT_NE(find_action(decision, "either"), nullptr);
  ASSERT_NE(find_action(decision, "any"), nullptr);
  EXPECT_GE(nodes_of(*find_action(decision, "either")).front(), 2);
  EXPECT_GE(nodes_of(*find_action(decision, "any")).front(), 2);
  ASSERT_EQ(decision.waiting.size(), 1U);
  EXPECT_EQ(decision.waiting[0].job, "second");
  EXPECT_EQ(decision.waiting[0].cause, WaitCause::kQuota);
  EXPECT_EQ(decision.waiting[0].detail, "queue a is at its limit of 8 devices of type h100");
}

TEST(DeviceTypeQuotas, NobodyMakesRoomOnATypeWhereAnotherIsFree) {
  ClusterSnapshot snapshot = cluster_of_two_types();
  JobQueue queue;
  queue.quotas = *QuotaTree::create({queue_of("a", {{.type = "h100", .guaranteed = 8000}})});
  JobRequest low = job_in("a", "low", 2, {"h100"});
  snapshot.running = {running(low, {0, 1})};
  JobRequest high = job_in("a", "high", 1, {"h100", "a100"});
  high.priority = 5;
  queue.jobs = {pending(high)};
  const SchedulingDecision decision = decision_of(snapshot, queue);
  EXPECT_EQ(decision.actions.size(), 1U);
  ASSERT_NE(find_action(decision, "high"), nullptr);
}

}  // namespace
}  // namespace regatta::sched
