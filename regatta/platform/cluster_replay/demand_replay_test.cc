// Replays of jobs with a demand over time, and of devices that jobs share.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/cluster_replay/trace_tables.h"

namespace regatta::cluster_replay {
namespace {

using sched::ActionKind;
using sched::SchedulingDecision;

constexpr Seconds kMinute{60};

TracedJob job_of(const std::string& name, sched::JobClass job_class, double run_time, int devices) {
  TracedJob job;
  job.request.name = name;
  job.request.job_class = job_class;
  job.request.roles = {whole_device_role(devices, 8)};
  job.run_time = {run_time};
  return job;
}

// A pod of one device.
TracedJob pod_of(const std::string& name, sched::JobClass job_class, std::vector<float> demand) {
  TracedJob job = job_of(name, job_class, 60 * static_cast<double>(demand.size()), 1);
  job.demand = {.interval = kMinute, .amounts = std::move(demand)};
  return job;
}

// Gives job i the first `devices[i]` devices of node 0, all shared in one mode.
ReplayResult replay_on(ReplayInput input, const std::vector<std::uint32_t>& devices,
                       mixing::MixMode mode, double interference) {
  ReplayOptions options;
  options.interference = interference;
  options.measured_until = {1e9};
  const auto result = replay_cluster(
      input,
      [&](const sched::ClusterSnapshot&, const sched::JobQueue& queue) {
        SchedulingDecision decision;
        for (const sched::PendingJob& job : queue.jobs)
          for (std::size_t i = 0; i < input.jobs.size(); ++i) {
            if (input.jobs[i].request.name != job.request.name) continue;
            decision.actions.push_back(
                {ActionKind::kStart, job.request.name, {{0, 0, devices[i]}}, ""});
          }
        if (!decision.actions.empty())
          for (int device = 0; device < input.nodes.front().devices; ++device)
            decision.mixes.push_back(
                {.mix = {0, device, mode}, .daemon_flags = {}, .settings = {}, .reason = {}});
        return Result<SchedulingDecision>(decision);
      },
      options);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? *result : ReplayResult{};
}

ReplayInput input_of(int devices, std::vector<TracedJob> jobs) {
  ReplayInput input;
  add_servers(input.nodes, {"T", 1, devices, 1});
  input.jobs = std::move(jobs);
  return input;
}

TEST(DemandReplay, AGangIsAsFastAsTheSlowestOfItsDevicesBelowAService) {
  // The service takes 60 % of one of the two devices of the gang for ten minutes.
  std::vector<float> demand(10, 0.6F);
  demand.resize(20, 0);
  const ReplayInput input = input_of(2, {job_of("gang", sched::JobClass::kBatch, 1200, 2),
                                         pod_of("service", sched::JobClass::kOnline, demand)});
  const ReplayResult result = replay_on(input, {3, 1}, mixing::MixMode::kPreemptive, 0);
  // 10 minutes at 0.4, the rest at full speed: 6 minutes later.
  EXPECT_NEAR(result.jobs[0].ended.value, 1200 + 360, 1);
  EXPECT_EQ(result.jobs[1].ended, Seconds{1200});
  EXPECT_EQ(result.missed.all(), 0);
  EXPECT_EQ(result.service_intervals, 10);
  EXPECT_NEAR(result.work_device_time.value, 2400 + 1200, 1e-6);
}

TEST(DemandReplay, UtilisationCountsWorkAndNeitherInterferenceNorIdleTime) {
  const ReplayInput input =
      input_of(1, {job_of("training", sched::JobClass::kBatch, 480, 1),
                   pod_of("service", sched::JobClass::kOnline, std::vector<float>(20, 0.4F))});
  const ReplayResult result = replay_on(input, {1, 1}, mixing::MixMode::kPreemptive, 0.5);
  // The service needs 0.4 (1 + 0.5 * 0.6) = 0.52: the training works at 0.48 / (1 + 0.5 * 0).
  EXPECT_NEAR(result.jobs[0].ended.value, 1000, 61);
  const CurvePoint& first = result.curves.front();
  EXPECT_NEAR(first.used_share, 0.4 + 0.48, 1e-6);
  EXPECT_NEAR(first.online_share, 0.4, 1e-6);
  EXPECT_NEAR(first.allocated_share, 1, 1e-9);
  EXPECT_NEAR(result.curves.back().used_share, 0.4, 1e-6);
}

TEST(DemandReplay, AServiceMissesWhereADeviceGivesItTooLittle) {
  const ReplayInput input =
      input_of(1, {pod_of("a", sched::JobClass::kOnline, {0.2F, 0.7F, 0.7F, 0.2F}),
                   pod_of("b", sched::JobClass::kOnline, {0.2F, 0.2F, 0.7F, 0.7F})});
  const ReplayResult result = replay_on(input, {1, 1}, mixing::MixMode::kShared, 0);
  EXPECT_EQ(result.jobs[0].missed.devices, 1);
  EXPECT_EQ(result.jobs[1].missed.devices, 1);
  EXPECT_EQ(result.jobs[0].missed.all(), 1);
}

TEST(DemandReplay, WorkWithoutATargetIsDelayedAndNotMissed) {
  const ReplayInput input = input_of(1, {pod_of("a", sched::JobClass::kOnline, {0.5F, 0.5F}),
                                         pod_of("b", sched::JobClass::kIntermittent, {1, 0})});
  const ReplayResult result = replay_on(input, {1, 1}, mixing::MixMode::kPreemptive, 0);
  EXPECT_EQ(result.missed.all(), 0);
  EXPECT_NEAR(result.delayed_share, 0.5, 1e-6);
}

// Gives the service `sizes[minute]` replicas of a device each.
ReplayResult replay_service(const std::vector<float>& demand, const std::vector<int>& sizes) {
  TracedJob service =
      job_of("service", sched::JobClass::kTidal, 60 * static_cast<double>(demand.size()), 1);
  service.request.roles.front().replicas_max = 8;
  service.request.checkpointing.restart = {90};
  service.request.demand.emplace();
  service.demand = {.interval = kMinute, .amounts = demand, .per_replica = 10, .full_share = 0.5};
  std::vector<std::size_t> histories;
  const auto result = replay_cluster(
      input_of(8, {service}),
      [&](const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue) {
        SchedulingDecision decision;
        const auto minute = static_cast<std::size_t>(snapshot.now / kMinute);
        if (minute >= sizes.size()) return Result<SchedulingDecision>(decision);
        std::vector<sched::ReplicaPlacement> replicas;
        for (int i = 0; i < sizes[minute]; ++i)
          replicas.push_back({0, 0, 1U << static_cast<unsigned>(i)});
        if (!queue.jobs.empty()) {
          decision.actions.push_back({ActionKind::kStart, "service", replicas, ""});
        } else if (replicas.size() != snapshot.running.front().replicas.size()) {
          const bool grows = replicas.size() > snapshot.running.front().replicas.size();
          decision.actions.push_back(
              {grows ? ActionKind::kGrow : ActionKind::kShrink, "service", replicas, ""});
        }
        if (!snapshot.running.empty())
          histories.push_back(snapshot.running.front().request.demand->history.size());
        return Result<SchedulingDecision>(decision);
      },
      {});
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  for (std::size_t i = 0; i < histories.size(); ++i)
    EXPECT_EQ(histories[i], i + 1);
  return result ? *result : ReplayResult{};
}

TEST(DemandReplay, NewReplicasOfAServiceServeAfterTheirRestartAndTheOthersGoOn) {
  // It grows in minute 1 and has its replicas in the middle of minute 2.
  const ReplayResult late = replay_service({10, 20, 20, 20}, {1, 2, 2, 2});
  EXPECT_EQ(late.missed.replicas, 2);
  EXPECT_EQ(late.missed.all(), 2);
  const ReplayResult early = replay_service({10, 10, 10, 20, 10}, {1, 2, 2, 2, 1});
  EXPECT_EQ(early.missed.all(), 0);
  EXPECT_EQ(early.service_intervals, 4);  // the last ends with the service
  EXPECT_NEAR(early.curves[0].used_share, 0.5 / 8, 1e-6);
  EXPECT_NEAR(early.curves[3].used_share, 1.0 / 8, 1e-6);
}

TEST(DemandReplay, AnEvictedJobKeepsTheCheckpointThatItMadeAtAnotherSpeed) {
  TracedJob batch = job_of("batch", sched::JobClass::kBatch, 1200, 1);
  batch.request.checkpointing = {{300}, {0}, {0}};
  std::vector<float> demand(5, 0.5F);
  demand.resize(60, 0.25F);
  TracedJob nudge = job_of("nudge", sched::JobClass::kBatch, 60, 1);
  nudge.request.submitted = {720};
  const ReplayInput input =
      input_of(2, {batch, pod_of("service", sched::JobClass::kOnline, demand), nudge});
  bool was_evicted = false;
  const auto result = replay_cluster(
      input,
      [&](const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue) {
        SchedulingDecision decision;
        const bool evicts = !was_evicted && snapshot.now.value >= 720;
        for (const sched::PendingJob& job : queue.jobs) {
          const bool is_second = evicts || was_evicted;
          decision.actions.push_back(
              {ActionKind::kStart, job.request.name, {{0, 0, is_second ? 2U : 1U}}, ""});
        }
        if (snapshot.running.empty())
          decision.mixes.push_back({.mix = {0, 0, mixing::MixMode::kPreemptive},
                                    .daemon_flags = {},
                                    .settings = {},
                                    .reason = {}});
        if (evicts) decision.actions.push_back({ActionKind::kEvict, "batch", {}, ""});
        was_evicted |= evicts;
        return Result<SchedulingDecision>(decision);
      },
      {.interference = 0});
  ASSERT_TRUE(result) << result.error().message;
  // The checkpoint of 600 s holds 300 s at half and 300 s at three quarters of its speed.
  EXPECT_NEAR(result->jobs[0].lost.value, 120 * 0.75, 1e-6);
  EXPECT_NEAR(result->jobs[0].ended.value, 780 + 1200 - 375, 1e-6);
}

}  // namespace
}  // namespace regatta::cluster_replay
