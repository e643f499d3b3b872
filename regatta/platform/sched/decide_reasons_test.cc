// The reasons of actions are true: what failed, what is lost, how a job goes on, why it shares.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string reason_for(const ClusterSnapshot& snapshot, const std::vector<PendingJob>& jobs,
                       const SchedulingPolicy& policy, const std::string& job) {
  JobQueue queue;
  queue.jobs = jobs;
  const auto decision = decide(snapshot, queue, policy);
  EXPECT_TRUE(decision) << decision.error().message;
  const SchedulingAction* const action = decision ? find_action(*decision, job) : nullptr;
  EXPECT_NE(action, nullptr) << "no action on job " << job;
  return action == nullptr ? "" : action->reason;
}

SchedulingPolicy regatta_policy() {
  return *find_scheduling_policy("regatta");
}

TEST(DecideReasons, NameTheDeviceWhereTheNodeWorks) {
  ClusterSnapshot snapshot = cluster_of(4);
  snapshot.running = {running(gang("a", 2, 8), {0, 1})};
  snapshot.nodes[1].failed_devices = 1U << 2;
  EXPECT_EQ(reason_for(snapshot, {}, regatta_policy(), "a"),
            "device 2 of node n1 failed; the gang continues from its checkpoint with 8 devices on "
            "node n2");
  snapshot.nodes[1].failed_devices = 1U << 2 | 1U << 5;
  snapshot.nodes[0].health = NodeHealth::kFailed;
  EXPECT_THAT(reason_for(snapshot, {}, regatta_policy(), "a"),
              HasSubstr("node n0 and devices 2 and 5 of node n1 failed; "));
}

TEST(DecideReasons, AGangWithoutACheckpointStartsAgain) {
  ClusterSnapshot snapshot = cluster_of(4);
  JobRequest job = gang("a", 2, 8);
  job.checkpointing = {};
  snapshot.running = {running(job, {0, 1})};
  snapshot.nodes[1].health = NodeHealth::kFailed;
  EXPECT_EQ(reason_for(snapshot, {}, regatta_policy(), "a"),
            "node n1 failed; the gang starts again with 8 devices on node n2");
  snapshot.running[0].request.checkpointing.interval = {600};
  snapshot.running[0].checkpointed = snapshot.running[0].started;
  EXPECT_THAT(reason_for(snapshot, {}, regatta_policy(), "a"), HasSubstr("the gang starts again"))
      << "it has made none yet";
}

TEST(DecideReasons, AnEvictionSaysWhatIsLost) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.running = {running(gang("victim", 1, 8), {0})};
  JobRequest urgent = gang("urgent", 1, 8);
  urgent.priority = 5;
  const auto reason = [&] {
    return reason_for(snapshot, {pending(urgent)}, regatta_policy(), "victim");
  };
  EXPECT_THAT(reason(), HasSubstr("; it loses 1.67 min since its checkpoint"));
  snapshot.running[0].checkpointed = snapshot.now;
  EXPECT_THAT(reason(), HasSubstr("; it loses no work"));
  snapshot.running[0].checkpointed = snapshot.running[0].started;
  EXPECT_THAT(reason(), HasSubstr("; it loses all its work, for it has made no checkpoint yet"));
  snapshot.running[0].completed = {500};
  EXPECT_THAT(reason(), HasSubstr("; it loses 1 h since it started"));
}

TEST(DecideReasons, AJobThatSharesBesideFreeDevicesSaysWhy) {
  ClusterSnapshot snapshot = cluster_of(1);
  snapshot.nodes[0].devices = 2;
  const auto mixable = [](const std::string& name, float duty) {
    JobRequest job = gang(name, 1, 1);
    job.job_class = JobClass::kIntermittent;
    job.roles[0].device_memory_mib = 16 << 10;
    job.roles[0].duty.shares = {duty};
    return job;
  };
  snapshot.running = {running(mixable("first", 0.2F), {0})};
  SchedulingPolicy policy = regatta_policy();
  policy.mixes = true;
  const std::vector<PendingJob> jobs = {pending(mixable("second", 0.25F))};
  EXPECT_THAT(
      reason_for(snapshot, jobs, policy, "second"),
      HasSubstr("; shares it with job first though a free device would do, as it needs 25 % "
                "of one, less than the 50 % of mix_first_below"));
  snapshot.nodes[0].devices = 1;
  EXPECT_THAT(reason_for(snapshot, jobs, policy, "second"), Not(HasSubstr("mix_first_below")));
}

}  // namespace
}  // namespace regatta::sched
