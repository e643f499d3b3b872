#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/device_mixes.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One node of `devices`.
ClusterSnapshot node_of(int devices) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.nodes[0].devices = devices;
  return snapshot;
}

// A job of one device with a steady duty.
JobRequest mixable(const std::string& name, JobClass job_class, float duty,
                   int memory_mib = 16 << 10) {
  JobRequest job = gang(name, 1, 1);
  job.job_class = job_class;
  job.is_preemptible = job_class != JobClass::kOnline;
  job.roles[0].device_memory_mib = memory_mib;
  job.roles[0].duty.shares = {duty};
  return job;
}

RunningJob running_on(const JobRequest& job, std::vector<int> devices) {
  RunningJob made = running(job, {});
  for (const int device : devices)
    made.replicas.push_back({.role = 0, .node = 0, .devices = 1U << device});
  return made;
}

SchedulingPolicy mixing_policy() {
  SchedulingPolicy policy = *find_scheduling_policy("regatta");
  policy.mixes = true;
  return policy;
}

SchedulingDecision decided(const ClusterSnapshot& snapshot, const JobQueue& queue,
                           const SchedulingPolicy& policy = mixing_policy()) {
  const auto decision = decide(snapshot, queue, policy);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision ? *decision : SchedulingDecision{};
}

TEST(DecideMix, JobsThatNeedLittleShareOneDevice) {
  JobQueue queue;
  for (const char* name : {"a", "b", "c"})
    queue.jobs.push_back(pending(mixable(name, JobClass::kOnline, 0.2F)));
  ClusterSnapshot snapshot = node_of(4);
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 3U);
  for (const SchedulingAction& action : decision.actions)
    EXPECT_EQ(action.replicas, decision.actions[0].replicas);
  EXPECT_THAT(decision.actions[2].reason, HasSubstr("; shares it with jobs a, b"));
  ASSERT_EQ(decision.mixes.size(), 1U);
  const MixAction& mix = decision.mixes[0];
  EXPECT_EQ(mix.mix.mode, mixing::MixMode::kShared);
  ASSERT_EQ(mix.settings.size(), 3U);
  EXPECT_EQ(mix.settings[0].job, "a");
  EXPECT_THAT(mix.settings[0].run_flags, Contains("16384MiB"));
  EXPECT_THAT(mix.daemon_flags, Contains("81920MiB"));
  apply_decision(decision, snapshot, queue);
  ASSERT_TRUE(check_snapshot(snapshot));
  EXPECT_THAT(snapshot.mixes, ElementsAre(mix.mix));
  // Nothing changes after that.
  const SchedulingDecision next = decided(snapshot, queue);
  EXPECT_TRUE(next.actions.empty());
  EXPECT_TRUE(next.mixes.empty());
}

TEST(DecideMix, AsManyJobsWithALatencyTargetShareADeviceAsThePolicyAllows) {
  JobQueue queue;
  for (const char* name : {"a", "b", "c"})
    queue.jobs.push_back(pending(mixable(name, JobClass::kOnline, 0.2F)));
  queue.jobs.push_back(pending(mixable("notebook", JobClass::kIntermittent, 0.2F)));
  SchedulingPolicy policy = mixing_policy();
  policy.targets_per_device = 1;
  const SchedulingDecision decision = decided(node_of(4), queue, policy);
  ASSERT_EQ(decision.actions.size(), 4U);
  std::set<std::uint32_t> devices;
  for (int i = 0; i < 3; ++i)
    devices.insert(decision.actions[static_cast<std::size_t>(i)].replicas[0].devices);
  EXPECT_EQ(devices.size(), 3U);
  EXPECT_TRUE(devices.count(decision.actions[3].replicas[0].devices) > 0);
}

TEST(DecideMix, OnlineWorkGoesOverBatchWorkInsteadOfEvictingIt) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("batch", JobClass::kBatch, 1), {0}));
  JobRequest chat = mixable("chat", JobClass::kOnline, 0.3F);
  chat.priority = 10;
  const JobQueue queue{.quotas = {}, .jobs = {pending(chat)}};
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kStart);
  ASSERT_EQ(decision.mixes.size(), 1U);
  EXPECT_EQ(decision.mixes[0].mix.mode, mixing::MixMode::kPreemptive);
  EXPECT_THAT(decision.mixes[0].settings[1].run_flags, Contains("high"));
  EXPECT_NEAR(decision.mixes[0].settings[0].expected_share, 0.6685, 0.005);
  SchedulingPolicy without = mixing_policy();
  without.mixes = false;
  EXPECT_EQ(decided(snapshot, queue, without).actions[0].kind, ActionKind::kEvict);
}

TEST(DecideMix, BatchWorkGetsWhatAServiceLeavesOnlyWhereThatIsEnough) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("chat", JobClass::kOnline, 0.6F), {0}));
  const JobQueue queue{.quotas = {}, .jobs = {pending(mixable("batch", JobClass::kBatch, 1))}};
  EXPECT_EQ(decided(snapshot, queue).actions.size(), 1U);
  SchedulingPolicy policy = mixing_policy();
  policy.least_share = 0.5;
  const SchedulingDecision decision = decided(snapshot, queue, policy);
  EXPECT_TRUE(decision.actions.empty());
  ASSERT_EQ(decision.waiting.size(), 1U);
  EXPECT_EQ(decision.waiting[0].cause, WaitCause::kNoRoom);
}

TEST(DecideMix, TwoJobsThatFillADeviceDoNotShareIt) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("a", JobClass::kBatch, 1), {0}));
  const JobQueue queue{.quotas = {}, .jobs = {pending(mixable("b", JobClass::kBatch, 1))}};
  EXPECT_TRUE(decided(snapshot, queue).actions.empty());
}

TEST(DecideMix, MemoryThatDoesNotFitTakesTimeSlicesOrAnotherDevice) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(
      running_on(mixable("a", JobClass::kIntermittent, 0.2F, 60 << 10), {0}));
  JobQueue queue{.quotas = {},
                 .jobs = {pending(mixable("b", JobClass::kIntermittent, 0.2F, 60 << 10))}};
  EXPECT_TRUE(decided(snapshot, queue).actions.empty());
  SchedulingPolicy policy = mixing_policy();
  policy.host_memory_mib = 200 << 10;
  const SchedulingDecision decision = decided(snapshot, queue, policy);
  ASSERT_EQ(decision.mixes.size(), 1U);
  EXPECT_EQ(decision.mixes[0].mix.mode, mixing::MixMode::kTimeSlice);
  apply_decision(decision, snapshot, queue);
  EXPECT_TRUE(check_snapshot(snapshot));
  snapshot.mixes[0].mode = mixing::MixMode::kShared;
  EXPECT_THAT(check_snapshot(snapshot).error().message, HasSubstr("more than its memory"));
}

TEST(DecideMix, AGangSharesTheDevicesOfAnother) {
  ClusterSnapshot snapshot = cluster_of(2);
  JobRequest training = gang("training", 2, 8);
  training.job_class = JobClass::kIntermittent;
  training.roles[0].device_memory_mib = 30 << 10;
  training.roles[0].duty.shares = {0.3F};
  snapshot.running.push_back(running(training, {0, 1}));
  JobRequest service = gang("service", 4, 4);
  service.job_class = JobClass::kOnline;
  service.roles[0].device_memory_mib = 30 << 10;
  service.roles[0].duty.shares = {0.2F};
  JobQueue queue{.quotas = {}, .jobs = {pending(service)}};
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].replicas.size(), 4U);
  EXPECT_EQ(decision.mixes.size(), 16U);
  apply_decision(decision, snapshot, queue);
  EXPECT_TRUE(check_snapshot(snapshot));
}

TEST(DecideMix, TheRestOfADeviceIsDecidedAnewWhenAJobHasLeft) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("chat", JobClass::kOnline, 0.2F), {0}));
  snapshot.mixes = {{.node = 0, .device = 0, .mode = mixing::MixMode::kPreemptive}};
  JobQueue queue;
  const SchedulingDecision decision = decided(snapshot, queue);
  EXPECT_TRUE(decision.actions.empty());
  ASSERT_EQ(decision.mixes.size(), 1U);
  EXPECT_EQ(decision.mixes[0].reason, "job chat has the device alone again");
  apply_decision(decision, snapshot, queue);
  EXPECT_TRUE(snapshot.mixes.empty());
}

TEST(DecideMix, WhereTheBudgetIsKeptNoMoreTheCheapestJobThatMayWaitLeaves) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("chat", JobClass::kOnline, 0.8F), {0}));
  snapshot.running.push_back(running_on(mixable("batch", JobClass::kBatch, 1), {0}));
  snapshot.mixes = {{.node = 0, .device = 0, .mode = mixing::MixMode::kPreemptive}};
  JobQueue queue;
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kEvict);
  EXPECT_EQ(decision.actions[0].job, "batch");
  EXPECT_EQ(
      decision.actions[0].reason,
      "leaves: the jobs on device 0 of node n0 keep their budget no more, and it loses least");
  ASSERT_EQ(decision.mixes.size(), 1U);
  snapshot.nodes[0].devices = 2;
  EXPECT_EQ(decided(snapshot, queue).actions[0].kind, ActionKind::kMove);
}

// Two services whose needs no longer go together on device 0 of the node.
ClusterSnapshot two_services(int devices) {
  ClusterSnapshot snapshot = node_of(devices);
  snapshot.running.push_back(running_on(mixable("chat", JobClass::kOnline, 0.7F), {0}));
  snapshot.running.push_back(running_on(mixable("search", JobClass::kOnline, 0.6F), {0}));
  for (RunningJob& job : snapshot.running)
    job.request.run_time = {};
  snapshot.running[1].request.checkpointing = {.interval = {}, .write = {}, .restart = {30}};
  snapshot.mixes = {{.node = 0, .device = 0, .mode = mixing::MixMode::kShared}};
  return snapshot;
}

TEST(DecideMix, OfTwoServicesThatBreakTheBudgetTheOneWithTheShorterRestartMoves) {
  ClusterSnapshot snapshot = two_services(2);
  JobQueue queue;
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kMove);
  EXPECT_EQ(decision.actions[0].job, "search");
  EXPECT_EQ(decision.actions[0].replicas[0].devices, 2U);
  EXPECT_EQ(decision.actions[0].reason,
            "continues on 1 device on node n0: the jobs on device 0 of node n0 keep their budget "
            "no more, none without a latency target can leave, and of the others its restart of "
            "30 s loses least");
  apply_decision(decision, snapshot, queue);
  EXPECT_TRUE(snapshot.mixes.empty());
  EXPECT_TRUE(decided(snapshot, queue).actions.empty());
}

TEST(DecideMix, ServicesThatBreakTheBudgetStayWhereNothingIsFreeOrTheRestartLosesMore) {
  EXPECT_TRUE(decided(two_services(1), {}).actions.empty());
  SchedulingPolicy policy = mixing_policy();
  policy.moves = 0;
  EXPECT_TRUE(decided(two_services(2), {}, policy).actions.empty());
  ClusterSnapshot snapshot = two_services(2);
  for (RunningJob& job : snapshot.running)
    job.request.checkpointing.restart = {1'000'000};
  EXPECT_TRUE(decided(snapshot, {}).actions.empty());
}

TEST(DecideMix, AJobThatMayWaitLeavesBeforeAServiceMoves) {
  ClusterSnapshot snapshot = two_services(2);
  snapshot.running[1].request.roles[0].duty.shares = {0.1F};
  snapshot.running.push_back(running_on(mixable("batch", JobClass::kBatch, 1), {0}));
  const SchedulingDecision decision = decided(snapshot, {});
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].job, "batch");
}

TEST(DecideMix, OnlyTheReplicaOnTheDeviceMoves) {
  ClusterSnapshot snapshot = two_services(4);
  JobRequest& search = snapshot.running[1].request;
  search.roles[0].replicas_min = search.roles[0].replicas_max = 2;
  search.checkpointing.restart = {10};
  snapshot.running[1].replicas.push_back({.role = 0, .node = 0, .devices = 4});
  const SchedulingDecision decision = decided(snapshot, {});
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].job, "search");
  std::set<std::uint32_t> devices;
  for (const ReplicaPlacement& replica : decision.actions[0].replicas)
    devices.insert(replica.devices);
  EXPECT_TRUE(devices == (std::set<std::uint32_t>{2, 4}) ||
              devices == (std::set<std::uint32_t>{4, 8}));
}

TEST(DecideMix, AWholeDeviceIsMadeFreeByTheEvictionOfAllJobsOnItOrOfNone) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("a", JobClass::kIntermittent, 0.2F), {0}));
  snapshot.running.push_back(running_on(mixable("b", JobClass::kIntermittent, 0.2F), {0}));
  snapshot.mixes = {{.node = 0, .device = 0, .mode = mixing::MixMode::kShared}};
  JobRequest whole = gang("whole", 1, 1);
  whole.priority = 5;
  JobQueue queue{.quotas = {}, .jobs = {pending(whole)}};
  const SchedulingDecision decision = decided(snapshot, queue);
  ASSERT_EQ(decision.actions.size(), 3U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kEvict);
  EXPECT_EQ(decision.actions[1].kind, ActionKind::kEvict);
  EXPECT_EQ(decision.actions[2].kind, ActionKind::kStart);
  EXPECT_TRUE(decision.mixes.empty());
  snapshot.running[1].request.priority = 9;
  EXPECT_TRUE(decided(snapshot, queue).actions.empty());
}

TEST(DecideMix, AQuotaCountsTheSharesThatJobsAskFor) {
  QuotaQueue limited;
  limited.name = "team";
  limited.limit[0] = 2 * kDeviceMilli;
  ClusterSnapshot snapshot = node_of(4);
  JobQueue queue{.quotas = *QuotaTree::create({limited}), .jobs = {}};
  for (const char* name : {"a", "b", "c"}) {
    JobRequest job = mixable(name, JobClass::kOnline, 0.1F);
    job.queue = "team";
    queue.jobs.push_back(pending(job));
  }
  const SchedulingDecision decision = decided(snapshot, queue);
  EXPECT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.mixes.size(), 1U);
  ASSERT_EQ(decision.waiting.size(), 1U);
  EXPECT_EQ(decision.waiting[0].cause, WaitCause::kQuota);
}

TEST(DecideMix, AJobSharesNoDeviceOfAnotherTypeAndNoneOfANodeThatDrains) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("a", JobClass::kOnline, 0.1F), {0}));
  JobRequest job = mixable("b", JobClass::kOnline, 0.1F);
  job.device_types = {"a100"};
  EXPECT_TRUE(decided(snapshot, {.quotas = {}, .jobs = {pending(job)}}).actions.empty());
  job.device_types = {"a100", "h100"};
  EXPECT_EQ(decided(snapshot, {.quotas = {}, .jobs = {pending(job)}}).actions.size(), 1U);
  snapshot.nodes[0].health = NodeHealth::kCordoned;
  EXPECT_TRUE(decided(snapshot, {.quotas = {}, .jobs = {pending(job)}}).actions.empty());
}

TEST(DecideMix, AJobThatNeedsMuchTakesAFreeDeviceFirst) {
  ClusterSnapshot snapshot = node_of(2);
  snapshot.running.push_back(running_on(mixable("a", JobClass::kIntermittent, 0.2F), {0}));
  const auto device_for = [&](float duty) {
    const JobRequest job = mixable("b", JobClass::kOnline, duty);
    const SchedulingDecision decision = decided(snapshot, {.quotas = {}, .jobs = {pending(job)}});
    return decision.actions.empty() ? 0U : decision.actions[0].replicas[0].devices;
  };
  EXPECT_EQ(device_for(0.4F), 1U);
  EXPECT_EQ(device_for(0.6F), 2U);
}

TEST(DecideMix, AReservedDeviceIsNotSharedWithAJobThatStaysLonger) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("first", JobClass::kIntermittent, 0.1F), {0}));
  JobRequest large = gang("large", 1, 1);
  JobRequest late = mixable("late", JobClass::kIntermittent, 0.1F);
  late.run_time.median = {100'000};
  late.submitted = {99'500};
  SchedulingPolicy policy = mixing_policy();
  policy.order = JobOrder::kSubmitted;
  const JobQueue queue{.quotas = {}, .jobs = {pending(large), pending(late)}};
  EXPECT_TRUE(decided(snapshot, queue, policy).actions.empty());
  const JobQueue alone{.quotas = {}, .jobs = {pending(late)}};
  EXPECT_EQ(decided(snapshot, alone, policy).actions.size(), 1U);
}

// Requests on one device type live for a moment, one after another at one address.
TEST(DeviceMixes, AJobWhereAnotherWasHasItsOwnKindsOfDuty) {
  const ClusterSnapshot snapshot = node_of(1);
  const SchedulingPolicy policy = mixing_policy();
  DeviceMixes mixes(snapshot, policy, nullptr);
  JobRequest job = mixable("a", JobClass::kOnline, 0.1F);
  const std::string kinds = mixes.kinds_text(job);
  job = mixable("b", JobClass::kOnline, 0.9F);
  EXPECT_NE(mixes.kinds_text(job), kinds);
  job = gang("c", 1, 1);
  EXPECT_EQ(mixes.kinds_text(job), ",-1");
}

TEST(CheckSnapshot, DevicesAreSharedBeyondTheirWholeByMixableJobsWithAMixAlone) {
  ClusterSnapshot snapshot = node_of(1);
  snapshot.running.push_back(running_on(mixable("a", JobClass::kOnline, 0.1F), {0}));
  snapshot.running.push_back(running_on(mixable("b", JobClass::kOnline, 0.1F), {0}));
  EXPECT_THAT(check_snapshot(snapshot).error().message, HasSubstr("device 0 is taken twice"));
  snapshot.mixes = {{.node = 0, .device = 0}};
  EXPECT_TRUE(check_snapshot(snapshot));
  snapshot.running[0].request.roles[0].duty = {};
  EXPECT_THAT(check_snapshot(snapshot).error().message, HasSubstr("job a cannot be mixed"));
  snapshot.mixes = {{.node = 0, .device = 3}};
  EXPECT_THAT(check_snapshot(snapshot).error().message, HasSubstr("there is no such device"));
  snapshot.mixes = {{.node = 0, .device = 0}, {.node = 0, .device = 0}};
  EXPECT_THAT(check_snapshot(snapshot).error().message, HasSubstr("comes twice"));
}

}  // namespace
}  // namespace regatta::sched
