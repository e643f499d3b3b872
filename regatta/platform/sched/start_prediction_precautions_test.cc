// Predicted starts beside limits by device type, and beside nodes that are kept as spares.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/start_prediction.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

// Seconds from now on until the only pending job starts.
double predicted_wait(const ClusterSnapshot& snapshot, const JobQueue& queue,
                      const SchedulingPolicy& policy) {
  const auto predictions = predict_starts(snapshot, queue, policy, {}, {});
  EXPECT_TRUE(predictions) << predictions.error().message;
  return predictions ? (predictions->front().start - snapshot.now).value : -1;
}

// Two nodes of type h100 and one of type a100; queue a may have 8 devices of type h100, and has
// them for another 1,000 s.
ClusterSnapshot cluster_of_two_types() {
  ClusterSnapshot snapshot = cluster_of(3);
  snapshot.nodes[2].device_type = "a100";
  JobRequest holder = gang("holder", 1, 8);
  holder.queue = "a";
  holder.checkpointing = {};
  holder.run_time.median = {4600};
  snapshot.running = {running(holder, {0})};
  return snapshot;
}

JobQueue queue_with_limit_of_type(std::vector<std::string> types) {
  JobQueue queue;
  queue.quotas = *QuotaTree::create(
      {{.name = "a", .parent = "", .device_types = {{.type = "h100", .limit = 8000}}}});
  JobRequest job = gang("waits", 1, 8);
  job.queue = "a";
  job.device_types = std::move(types);
  queue.jobs = {pending(job)};
  return queue;
}

TEST(StartPrediction, AJobAtTheLimitOfADeviceTypeWaitsUntilItsQueueHoldsLessOfIt) {
  const ClusterSnapshot snapshot = cluster_of_two_types();
  const SchedulingPolicy policy = *find_scheduling_policy("backfill");
  EXPECT_DOUBLE_EQ(predicted_wait(snapshot, queue_with_limit_of_type({"h100"}), policy), 1000);
  EXPECT_DOUBLE_EQ(predicted_wait(snapshot, queue_with_limit_of_type({"a100"}), policy), 0);
}

TEST(StartPrediction, AJobAtTheLimitOfOneTypeStartsOnAnotherThatItAccepts) {
  ClusterSnapshot snapshot = cluster_of_two_types();
  const SchedulingPolicy policy = *find_scheduling_policy("backfill");
  EXPECT_DOUBLE_EQ(predicted_wait(snapshot, queue_with_limit_of_type({"h100", "a100"}), policy), 0);
  snapshot.nodes[2].health = NodeHealth::kCordoned;
  EXPECT_DOUBLE_EQ(predicted_wait(snapshot, queue_with_limit_of_type({"h100", "a100"}), policy),
                   1000);
}

TEST(StartPrediction, AJobBeyondTheLimitOfADeviceTypeHasNoStart) {
  JobQueue queue = queue_with_limit_of_type({"h100"});
  queue.jobs[0].request.roles[0].replicas_min = queue.jobs[0].request.roles[0].replicas_max = 2;
  EXPECT_FALSE(std::isfinite(
      predicted_wait(cluster_of_two_types(), queue, *find_scheduling_policy("backfill"))));
}

TEST(StartPrediction, AJobThatNeverFitsHoldsNobodyUp) {
  ClusterSnapshot snapshot = cluster_of(2);
  JobQueue queue;
  queue.jobs = {pending(gang("huge", 3, 8)), pending(gang("small", 1, 8))};
  queue.jobs[0].request.submitted = {1};
  const auto starts = predict_starts(snapshot, queue, *find_scheduling_policy("fifo"), {}, {});
  ASSERT_TRUE(starts);
  EXPECT_FALSE(std::isfinite((*starts)[0].start.value));
  EXPECT_EQ((*starts)[1].start, snapshot.now);
}

// A large gang on nodes 0 to 3 ends in 5,000 s, another job on node 4 in 1,000 s; node 5 is free.
ClusterSnapshot cluster_with_large_gang() {
  ClusterSnapshot snapshot = cluster_of(6);
  JobRequest large = gang("large", 4, 8);
  JobRequest small = gang("small", 1, 8);
  large.checkpointing = small.checkpointing = {};
  large.run_time.median = {8600};
  small.run_time.median = {4600};
  snapshot.running = {running(large, {0, 1, 2, 3}), running(small, {4})};
  return snapshot;
}

TEST(StartPrediction, AJobLeavesSparesFree) {
  JobQueue queue;
  queue.jobs = {pending(gang("waits", 1, 8))};
  SchedulingPolicy policy = *find_scheduling_policy("backfill");
  const ClusterSnapshot snapshot = cluster_with_large_gang();
  EXPECT_DOUBLE_EQ(predicted_wait(snapshot, queue, policy), 0);
  policy.spares = {.nodes = 1, .share = 0, .gang_devices = 32};
  EXPECT_DOUBLE_EQ(predicted_wait(snapshot, queue, policy), 1000) << "node 4 or 5 is left free";
  policy.spares.nodes = 2;
  EXPECT_DOUBLE_EQ(predicted_wait(snapshot, queue, policy), 5000) << "then no large gang runs";
  policy.spares.gang_devices = 33;
  EXPECT_DOUBLE_EQ(predicted_wait(snapshot, queue, policy), 0) << "no gang is large enough";
}

// Six nodes of two types with jobs on whole nodes, limits by type, and perhaps spares.
struct RandomState {
  ClusterSnapshot snapshot;
  JobQueue queue;
  SchedulingPolicy policy = *find_scheduling_policy("backfill");

  explicit RandomState(packing::RandomSequence& random) : snapshot(cluster_of(6)) {
    const auto below = [&](std::uint64_t count) { return static_cast<int>(random.below(count)); };
    if (below(3) > 0) policy.spares = {.nodes = 1 + below(2), .share = 0, .gang_devices = 16};
    QuotaQueue a{.name = "a", .parent = ""};
    if (below(3) > 0) a.device_types = {{.type = "h100", .limit = 8000 * (2 + below(3))}};
    queue.quotas = *QuotaTree::create({a, {.name = "b", .parent = ""}});
    for (const int node : {4, 5})
      at(snapshot.nodes, node).device_type = "a100";
    const auto job_of = [&](const std::string& name, int nodes) {
      JobRequest job = gang(name, nodes, 8);
      job.queue = below(2) == 0 ? "a" : "b";
      job.checkpointing = {};
      job.run_time.median = {4000.0 + below(9000)};
      job.submitted = {90'000.0 + below(9'000)};
      if (below(2) == 0) job.device_types = {"h100"};
      return job;
    };
    for (int node = 0; node < 6; ++node) {
      const int nodes = node != 3 && node != 5 && below(2) == 0 ? 2 : 1;
      if (below(4) == 0) continue;
      std::vector<int> places{node};
      if (nodes == 2) places.push_back(++node);
      snapshot.running.push_back(running(job_of("r" + std::to_string(node), nodes), places));
    }
    for (int i = 0; i < 4; ++i)
      queue.jobs.push_back(pending(job_of("p" + std::to_string(i), 1 + below(2))));
  }
};

// When the job starts if decisions are made whenever a job ends; infinite: never.
double decided_start(RandomState state, const std::string& name) {
  for (int decisions = 0; decisions < 50; ++decisions) {
    const auto decision = decide(state.snapshot, state.queue, state.policy);
    EXPECT_TRUE(decision) << decision.error().message;
    if (find_action(*decision, name) != nullptr) return state.snapshot.now.value;
    apply_decision(*decision, state.snapshot, state.queue);
    double next = std::numeric_limits<double>::infinity();
    const auto end_of = [](const RunningJob& job) {
      return (job.started + job.request.run_time.median).value;
    };
    for (const RunningJob& job : state.snapshot.running)
      next = std::min(next, end_of(job));
    if (!std::isfinite(next)) break;
    state.snapshot.now = {next};
    std::erase_if(state.snapshot.running,
                  [&](const RunningJob& job) { return end_of(job) <= next; });
  }
  return std::numeric_limits<double>::infinity();
}

TEST(StartPrediction, IsWhatDecisionsDoOnRandomStatesOfWholeNodes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    const RandomState state(random);
    const auto predicted = predict_starts(state.snapshot, state.queue, state.policy, {}, {});
    ASSERT_TRUE(predicted);
    for (const StartPrediction& each : *predicted)
      EXPECT_DOUBLE_EQ(each.start.value, decided_start(state, each.job)) << each.job;
  }
}

}  // namespace
}  // namespace regatta::sched
