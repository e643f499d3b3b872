#include "regatta/platform/sched/internal/job_progress.h"

#include <gtest/gtest.h>

#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

// Two nodes below each leaf, two leaves in each group.
ClusterSnapshot two_groups() {
  ClusterSnapshot snapshot = cluster_of(8, 2);
  for (ClusterNode& node : snapshot.nodes)
    node.group = node.leaf / 2;
  return snapshot;
}

JobRequest gang_without_checkpoints(int replicas) {
  JobRequest job = gang("a", replicas, 8);
  job.checkpointing = {};
  return job;
}

TEST(SpannedLevel, IsTheLowestWithAllReplicasInOneDomain) {
  const ClusterSnapshot snapshot = two_groups();
  const auto level = [&](const std::vector<int>& nodes) {
    return spanned_level(snapshot.nodes, running(gang("a", 1, 8), nodes).replicas);
  };
  EXPECT_EQ(level({}), TopologyLevel::kServer);
  EXPECT_EQ(level({3, 3}), TopologyLevel::kServer);
  EXPECT_EQ(level({2, 3}), TopologyLevel::kLeaf);
  EXPECT_EQ(level({0, 3, 1}), TopologyLevel::kGroup);
  EXPECT_EQ(level({0, 1, 4}), TopologyLevel::kCluster);
}

TEST(WorkRate, FollowsThroughputSlowdownAndCheckpoints) {
  const ClusterSnapshot snapshot = two_groups();
  JobRequest job = gang_without_checkpoints(1);
  job.roles[0].replicas_max = 2;
  job.throughput = {{8, 10}, {16, 15}};
  job.slowdown = {1, 1.25, 1.5, 2};
  const auto rate = [&](const std::vector<int>& nodes) {
    return work_rate(snapshot.nodes, job, running(job, nodes).replicas);
  };
  EXPECT_DOUBLE_EQ(rate({0}), 1);
  EXPECT_DOUBLE_EQ(rate({0, 1}), 1.5 / 1.25);
  EXPECT_DOUBLE_EQ(rate({0, 2}), 1.5 / 1.5);
  EXPECT_DOUBLE_EQ(rate({0, 7}), 1.5 / 2);
  job.checkpointing = {.interval = {90}, .write = {10}, .restart = {}};
  EXPECT_DOUBLE_EQ(rate({0}), 0.9);
}

TEST(WorkDone, IsSlowerAcrossGroupsAndSoIsTheEnd) {
  const ClusterSnapshot snapshot = two_groups();
  JobRequest job = gang_without_checkpoints(2);
  job.slowdown = {1, 1, 1, 2};
  job.run_time.median = {7200};
  const RunningJob near = running(job, {0, 1});
  const RunningJob far = running(job, {0, 7});
  EXPECT_EQ(work_done(snapshot, near), Seconds{3600});
  EXPECT_EQ(end_time(snapshot, near, 0.5), snapshot.now + Seconds{3600});
  EXPECT_EQ(work_done(snapshot, far), Seconds{1800});
  EXPECT_EQ(end_time(snapshot, far, 0.5), snapshot.now + Seconds{2 * 5400});
}

TEST(KeptWork, EndsAtTheLastCheckpoint) {
  const ClusterSnapshot snapshot = two_groups();
  JobRequest job = gang_without_checkpoints(2);
  EXPECT_EQ(kept_work(snapshot, running(job, {0, 1})), Seconds{});
  job.checkpointing = {.interval = {90}, .write = {10}, .restart = {}};
  EXPECT_DOUBLE_EQ(kept_work(snapshot, running(job, {0, 1})).value, 0.9 * 3500);
}

}  // namespace
}  // namespace regatta::sched
