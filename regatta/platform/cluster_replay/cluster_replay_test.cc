#include "regatta/platform/cluster_replay/cluster_replay.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/trace_tables.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::cluster_replay {
namespace {

using sched::ActionKind;
using sched::SchedulingDecision;

TracedJob job_of(const std::string& name, double submitted, double run_time, int devices) {
  TracedJob job;
  job.request.name = name;
  job.request.roles = {whole_device_role(devices, 8)};
  job.request.submitted = {submitted};
  job.run_time = {run_time};
  return job;
}

ReplayInput input_of(int servers, std::vector<TracedJob> jobs) {
  ReplayInput input;
  add_servers(input.nodes, {"T", servers, 8, 2});
  input.jobs = std::move(jobs);
  return input;
}

// Devices of the node that no running job has.
std::uint32_t free_devices(const sched::ClusterSnapshot& snapshot, int node) {
  std::uint32_t free = (1U << at(snapshot.nodes, node).devices) - 1;
  for (const sched::RunningJob& job : snapshot.running)
    for (const sched::ReplicaPlacement& replica : job.replicas)
      if (replica.node == node) free &= ~replica.devices;
  return free;
}

// The first `count` devices of a set; nothing where it has fewer.
std::uint32_t first_devices(std::uint32_t free, int count) {
  std::uint32_t chosen = 0;
  for (int device = 0; device < 32 && count > 0; ++device)
    if ((free >> device & 1U) != 0) {
      chosen |= 1U << device;
      --count;
    }
  return count > 0 ? 0 : chosen;
}

// Starts one job of one replica in each decision, in the order of the queue's submission.
SchedulingDecision start_first(const sched::ClusterSnapshot& snapshot,
                               const sched::JobQueue& queue) {
  std::vector<const sched::PendingJob*> order;
  for (const sched::PendingJob& job : queue.jobs)
    order.push_back(&job);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->request.submitted != b->request.submitted
               ? a->request.submitted < b->request.submitted
               : a->request.name < b->request.name;
  });
  SchedulingDecision decision;
  std::vector<std::uint32_t> free;
  for (int node = 0; node < static_cast<int>(snapshot.nodes.size()); ++node)
    free.push_back(at(snapshot.nodes, node).health == sched::NodeHealth::kReady
                       ? free_devices(snapshot, node)
                       : 0);
  for (const sched::PendingJob* job : order) {
    bool starts = false;
    for (int node = 0; node < static_cast<int>(free.size()) && !starts; ++node) {
      const std::uint32_t devices = first_devices(at(free, node), job->request.roles[0].devices);
      if (devices == 0) continue;
      decision.actions.push_back({ActionKind::kStart, job->request.name, {{0, node, devices}}, ""});
      at(free, node) &= ~devices;
      starts = true;
    }
    if (!starts) break;
  }
  return decision;
}

ReplayResult replayed(const ReplayInput& input, const DecisionFunction& decide = start_first,
                      const ReplayOptions& options = {}) {
  auto result = replay_cluster(input, decide, options);
  EXPECT_TRUE(result) << result.error().message;
  return result ? std::move(*result) : ReplayResult{};
}

TEST(ClusterReplay, AJobWaitsUntilTheDevicesOfAnotherAreFree) {
  const ReplayResult result =
      replayed(input_of(1, {job_of("a", 0, 100, 8), job_of("b", 10, 50, 4)}));
  EXPECT_EQ(result.unfinished, 0);
  EXPECT_EQ(result.jobs[0].ended, Seconds{100});
  EXPECT_EQ(result.jobs[1].first_start, Seconds{100});
  EXPECT_EQ(result.jobs[1].pending, Seconds{90});
  EXPECT_EQ(result.jobs[1].delay, Seconds{90});
  EXPECT_EQ(result.last_end, Seconds{150});
  EXPECT_EQ(result.all.pending.mean, Seconds{45});
  EXPECT_EQ(result.by_devices.at(4).pending.mean, Seconds{90});
}

TEST(ClusterReplay, UtilisationIsTheTimeThatDevicesAreHeld) {
  ReplayOptions options;
  options.measured_until = {240};
  const ReplayResult result =
      replayed(input_of(1, {job_of("a", 0, 120, 8), job_of("b", 0, 120, 4)}), start_first, options);
  EXPECT_NEAR(result.allocated_share, (1 + 0.5) / 2, 1e-9);
  EXPECT_NEAR(result.busy_share, result.allocated_share, 1e-9);
}

TEST(ClusterReplay, DecisionsAreAtLeastTheIntervalApart) {
  ReplayOptions options;
  options.decision_interval = {60};
  std::vector<double> times;
  const DecisionFunction decide = [&](const auto& snapshot, const auto& queue) {
    times.push_back(snapshot.now.value);
    return start_first(snapshot, queue);
  };
  replayed(input_of(1, {job_of("a", 0, 5, 1), job_of("b", 10, 5, 1), job_of("c", 20, 5, 1)}),
           decide, options);
  EXPECT_EQ(times, (std::vector<double>{0, 60, 120}));
}

TEST(ClusterReplay, AnEvictionLosesTheWorkSinceTheCheckpointAndPaysTheRestart) {
  TracedJob job = job_of("a", 0, 100, 8);
  job.request.checkpointing = {{20}, {0}, {7}};
  ReplayInput input = input_of(1, {job, job_of("b", 50, 30, 8)});
  const DecisionFunction decide = [](const sched::ClusterSnapshot& snapshot,
                                     const sched::JobQueue& queue) {
    SchedulingDecision decision;
    for (const sched::RunningJob& running : snapshot.running)
      if (running.request.name == "a" && snapshot.now == Seconds{50}) {
        EXPECT_EQ(running.checkpointed, Seconds{40});
        decision.actions = {{ActionKind::kEvict, "a", {}, ""},
                            {ActionKind::kStart, "b", {{0, 0, 0xff}}, ""}};
        return decision;
      }
    return start_first(snapshot, queue);
  };
  const ReplayResult result = replayed(input, decide);
  EXPECT_EQ(result.evictions, 1);
  EXPECT_EQ(result.jobs[0].lost, Seconds{10});
  EXPECT_EQ(result.lost_device_time, Seconds{80});
  EXPECT_EQ(result.jobs[0].pending, Seconds{30});
  // It ran 50 s, waited 30 s, restarted in 7 s, and had 60 s of work left.
  EXPECT_EQ(result.jobs[0].ended, Seconds{50 + 30 + 7 + 60});
  EXPECT_EQ(result.jobs[0].delay, Seconds{47});
}

TEST(ClusterReplay, AFailedNodeStopsItsJobAndTheRepairRestartsIt) {
  TracedJob job = job_of("a", 0, 100, 8);
  job.request.checkpointing = {{30}, {0}, {5}};
  ReplayInput input = input_of(1, {job});
  input.node_events = {{{40}, 0, sched::NodeHealth::kFailed}, {{90}, 0, sched::NodeHealth::kReady}};
  const ReplayResult result = replayed(input);
  EXPECT_EQ(result.jobs[0].lost, Seconds{10});
  EXPECT_EQ(result.jobs[0].ended, Seconds{90 + 5 + 70});
  EXPECT_EQ(result.evictions, 0);
}

TEST(ClusterReplay, AMoveContinuesFromTheCheckpointOnOtherDevices) {
  TracedJob job = job_of("a", 0, 100, 8);
  job.request.checkpointing = {{30}, {0}, {5}};
  ReplayInput input = input_of(2, {job});
  input.node_events = {{{40}, 0, sched::NodeHealth::kDraining}};
  const DecisionFunction decide = [](const sched::ClusterSnapshot& snapshot,
                                     const sched::JobQueue& queue) {
    if (snapshot.now != Seconds{40}) return start_first(snapshot, queue);
    SchedulingDecision decision;
    decision.actions = {{ActionKind::kMove, "a", {{0, 1, 0xff}}, ""}};
    return decision;
  };
  const ReplayResult result = replayed(input, decide);
  EXPECT_EQ(result.moves, 1);
  EXPECT_EQ(result.jobs[0].ended, Seconds{40 + 5 + 70});
}

TEST(ClusterReplay, AnElasticJobWorksAtTheThroughputOfItsSize) {
  TracedJob job = job_of("a", 0, 100, 8);
  job.request.roles[0].replicas_max = 2;
  job.request.throughput = {{8, 1}, {16, 1.5}};
  ReplayInput input = input_of(2, {job, job_of("b", 40, 10, 1)});
  const DecisionFunction decide = [](const sched::ClusterSnapshot& snapshot,
                                     const sched::JobQueue& queue) {
    if (snapshot.now != Seconds{40}) return start_first(snapshot, queue);
    SchedulingDecision decision;
    decision.actions = {{ActionKind::kGrow, "a", {{0, 0, 0xff}, {0, 1, 0xff}}, ""}};
    return decision;
  };
  const ReplayResult result = replayed(input, decide);
  EXPECT_EQ(result.resizes, 1);
  EXPECT_EQ(result.jobs[0].ended, Seconds{40 + 60 / 1.5});
}

TEST(ClusterReplay, AGangBelowTwoLeavesIsAsSlowAsItsRequestSays) {
  TracedJob job = job_of("a", 0, 100, 16);
  job.request.slowdown = {1, 1, 1.25, 2};
  ReplayInput input = input_of(3, {job});
  const DecisionFunction decide = [](const sched::ClusterSnapshot&, const sched::JobQueue& queue) {
    SchedulingDecision decision;
    if (!queue.jobs.empty())
      decision.actions = {{ActionKind::kStart, "a", {{0, 1, 0xff}, {0, 2, 0xff}}, ""}};
    return decision;
  };
  EXPECT_EQ(replayed(input, decide).jobs[0].ended, Seconds{125});
}

TEST(ClusterReplay, AJobEndsWhenItsWorkRateSays) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    packing::RandomSequence random(seed);
    const auto between = [&](double low, double high) {
      return low + random.uniform() * (high - low);
    };
    TracedJob job = job_of("a", 0, between(10, 1000), 16);
    job.request.roles[0].replicas_max = 3;
    job.request.throughput = {{16, 1}, {24, between(1, 2)}};
    job.request.slowdown = {1, 1, between(1, 1.5), between(1.5, 2)};
    job.request.checkpointing = {{between(5, 50)}, {between(0, 1)}, {0}};
    const ReplayInput input = input_of(4, {job});
    std::vector<sched::ReplicaPlacement> replicas;
    for (unsigned i = 0; i < 2 + seed % 2; ++i)
      replicas.push_back({0, static_cast<int>((i + seed / 2) % 4), 0xff});
    const DecisionFunction decide = [&](const sched::ClusterSnapshot&,
                                        const sched::JobQueue& queue) {
      SchedulingDecision decision;
      if (!queue.jobs.empty()) decision.actions = {{ActionKind::kStart, "a", replicas, ""}};
      return decision;
    };
    const double rate = sched::work_rate(input.nodes, job.request, replicas);
    EXPECT_NEAR(replayed(input, decide).jobs[0].ended.value, job.run_time.value / rate, 1e-9)
        << "seed " << seed;
  }
}

TEST(ClusterReplay, WritingCheckpointsTakesItsShareOfTheTime) {
  TracedJob job = job_of("a", 0, 90, 8);
  job.request.checkpointing = {{9}, {1}, {0}};
  EXPECT_NEAR(replayed(input_of(1, {job})).jobs[0].ended.value, 100, 1e-9);
}

TEST(ClusterReplay, ADecisionThatTakesADeviceTwiceIsRefused) {
  ReplayInput input = input_of(1, {job_of("a", 0, 10, 1), job_of("b", 0, 10, 1)});
  const DecisionFunction decide = [](const sched::ClusterSnapshot&, const sched::JobQueue&) {
    SchedulingDecision decision;
    decision.actions = {{ActionKind::kStart, "a", {{0, 0, 1}}, ""},
                        {ActionKind::kStart, "b", {{0, 0, 1}}, ""}};
    return decision;
  };
  const auto result = replay_cluster(input, decide, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "job b: its replica on node 0 takes a device that is not free; the decision cannot be "
            "carried out");
}

TEST(ClusterReplay, JobsThatComeTwiceOrInTheWrongOrderAreRefused) {
  const auto twice =
      replay_cluster(input_of(1, {job_of("a", 0, 10, 1), job_of("a", 0, 10, 1)}), start_first, {});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "job a: two jobs have this name; rename one");
  EXPECT_FALSE(
      replay_cluster(input_of(1, {job_of("a", 5, 10, 1), job_of("b", 0, 10, 1)}), start_first, {}));
}

std::vector<TracedJob> random_jobs(std::uint64_t seed, int count) {
  packing::RandomSequence random(seed);
  std::vector<TracedJob> jobs;
  double now = 0;
  for (int i = 0; i < count; ++i) {
    now += static_cast<double>(random.below(40));
    jobs.push_back(job_of("job-" + std::to_string(i), now,
                          1 + static_cast<double>(random.below(400)),
                          1 + static_cast<int>(random.below(8))));
  }
  return jobs;
}

TEST(ClusterReplay, EveryJobOfARandomTraceRunsItsTimeOnce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const ReplayInput input = input_of(2, random_jobs(seed, 200));
    const ReplayResult result = replayed(input);
    EXPECT_EQ(result.unfinished, 0);
    double work = 0;
    for (std::size_t i = 0; i < input.jobs.size(); ++i) {
      const JobOutcome& job = result.jobs[i];
      EXPECT_NEAR((job.ended - job.first_start).value, input.jobs[i].run_time.value, 1e-6);
      EXPECT_NEAR(job.pending.value, (job.first_start - job.submitted).value, 1e-6);
      work += input.jobs[i].run_time.value * job.devices;
    }
    EXPECT_NEAR(result.work_device_time.value, work, 1e-6 * work);
    double held = 0;  // the curve holds the same device time
    for (std::size_t i = 0; i < result.curves.size(); ++i) {
      const double end =
          i + 1 < result.curves.size() ? result.curves[i + 1].from.value : result.last_end.value;
      held += result.curves[i].allocated_share * 16 * (end - result.curves[i].from.value);
    }
    EXPECT_NEAR(held, work, 1e-6 * work);
  }
}

TEST(ClusterReplay, TwoReplaysWriteTheSameLog) {
  std::vector<std::string> first;
  std::vector<std::string> second;
  ReplayOptions options;
  options.log = [&](std::string_view line) { first.emplace_back(line); };
  const ReplayResult a = replayed(input_of(2, random_jobs(7, 100)), start_first, options);
  options.log = [&](std::string_view line) { second.emplace_back(line); };
  const ReplayResult b = replayed(input_of(2, random_jobs(7, 100)), start_first, options);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.size(), 300U);
  EXPECT_EQ(a.log_hash, b.log_hash);
  EXPECT_NE(a.log_hash, replayed(input_of(2, random_jobs(8, 100))).log_hash);
  EXPECT_TRUE(first.front().starts_with("0.000 submit job-0") || first.front().ends_with("job-0"))
      << first.front();
}

TEST(ClusterReplay, CurvesHaveABoundedNumberOfPoints) {
  std::vector<TracedJob> jobs;
  for (int i = 0; i < 3000; ++i)
    jobs.push_back(job_of("job-" + std::to_string(i), 100.0 * i, 50, 8));
  const ReplayResult result = replayed(input_of(1, std::move(jobs)));
  EXPECT_LE(result.curves.size(), static_cast<std::size_t>(kCurvePointsMax));
  EXPECT_GE(result.curves.size(), static_cast<std::size_t>(kCurvePointsMax) / 2);
  for (std::size_t i = 0; i + 1 < result.curves.size(); ++i)
    EXPECT_NEAR(result.curves[i].allocated_share, 0.5, 0.13);
}

}  // namespace
}  // namespace regatta::cluster_replay
