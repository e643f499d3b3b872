#include "regatta/platform/sched/start_prediction.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"

namespace regatta::sched {
namespace {

ClusterNode node_of(const std::string& name, int leaf = 0) {
  ClusterNode node;
  node.name = name;
  node.device_type = "T";
  node.devices = 4;
  node.cpu_milli = 64000;
  node.memory_mib = 65536;
  node.leaf = leaf;
  return node;
}

JobRequest job_of(const std::string& name, int replicas, int devices,
                  RunTime run_time = {{600}, 0}) {
  JobRequest job;
  job.name = name;
  Role role;
  role.name = "worker";
  role.replicas_min = replicas;
  role.replicas_max = replicas;
  role.devices = devices;
  job.roles = {role};
  job.run_time = run_time;
  return job;
}

struct State {
  ClusterSnapshot snapshot;
  JobQueue queue;

  void run(const JobRequest& job, std::vector<ReplicaPlacement> replicas, double started = 0) {
    snapshot.running.push_back({job, std::move(replicas), {started}, {started}, {0}});
  }
  void wait(const JobRequest& job) { queue.jobs.push_back({job, {0}, 0}); }
  std::string why(const std::string& job) const {
    const auto set = blocking_set(snapshot, queue, SchedulingPolicy{}, job);
    return set ? set->sentence : set.error().message;
  }
};

State one_server() {
  State state;
  state.snapshot.nodes = {node_of("n0")};
  return state;
}

SchedulingPolicy policy_of(JobOrder order, BackfillRule backfill) {
  SchedulingPolicy policy;
  policy.order = order;
  policy.backfill = backfill;
  return policy;
}

std::vector<StartPrediction> predicted(const State& state, const SchedulingPolicy& policy,
                                       StartForecastOptions options = {}) {
  const auto predictions = predict_starts(state.snapshot, state.queue, policy, {}, options);
  EXPECT_TRUE(predictions) << predictions.error().message;
  return predictions ? *predictions : std::vector<StartPrediction>();
}

TEST(StartPrediction, IsExactWhereRunTimesAreExact) {
  State state = one_server();
  state.snapshot.now = {100};
  state.run(job_of("a", 1, 4), {{0, 0, 0xf}});
  state.wait(job_of("b", 1, 4, {{50}, 0}));
  state.wait(job_of("c", 1, 2));
  state.queue.jobs[1].request.submitted = {1};
  const auto starts = predicted(state, policy_of(JobOrder::kSubmitted, BackfillRule::kNone));
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[0].start, Seconds{600});
  EXPECT_EQ(starts[0].earliest, starts[0].latest);
  EXPECT_EQ(starts[1].start, Seconds{650});
}

TEST(StartPrediction, FollowsTheOrderOfThePolicy) {
  State state = one_server();
  state.run(job_of("a", 1, 4), {{0, 0, 0xf}});
  state.wait(job_of("long", 1, 4, {{1000}, 0}));
  state.wait(job_of("short", 1, 4, {{10}, 0}));
  const auto starts = predicted(state, policy_of(JobOrder::kShortest, BackfillRule::kGreedy));
  EXPECT_EQ(starts[1].start, Seconds{600});
  EXPECT_EQ(starts[0].start, Seconds{610});
}

TEST(StartPrediction, AJobPassesAReservationOnlyWhenItEndsBefore) {
  State state = one_server();
  state.run(job_of("a", 1, 2), {{0, 0, 0x3}});
  state.wait(job_of("whole", 1, 4));
  state.wait(job_of("fits", 1, 2, {{500}, 0}));
  state.wait(job_of("too-long", 1, 1, {{700}, 0}));
  for (std::size_t i = 0; i < 3; ++i)
    state.queue.jobs[i].request.submitted = {static_cast<double>(i)};
  const auto starts = predicted(state, policy_of(JobOrder::kSubmitted, BackfillRule::kReservation));
  EXPECT_EQ(starts[0].start, Seconds{600});
  EXPECT_EQ(starts[1].start, Seconds{0});
  EXPECT_EQ(starts[2].start, Seconds{1200});
}

TEST(StartPrediction, TheIntervalHoldsTheEndOfAJobOfUnknownLength) {
  State state = one_server();
  state.run(job_of("a", 1, 4, {{600}, 1}), {{0, 0, 0xf}});
  state.wait(job_of("b", 1, 4));
  StartForecastOptions options;
  options.samples = 2000;
  const auto starts =
      predicted(state, policy_of(JobOrder::kSubmitted, BackfillRule::kNone), options);
  EXPECT_NEAR(std::log(starts[0].start.value / 600), 0, 0.1);
  EXPECT_NEAR(std::log(starts[0].earliest.value / 600), -1.2816, 0.15);
  EXPECT_NEAR(std::log(starts[0].latest.value / 600), 1.2816, 0.15);
}

TEST(StartPrediction, ArrivalsLikeThoseOfThePastDelayALongJob) {
  State state = one_server();
  state.run(job_of("a", 1, 4, {{100}, 0}), {{0, 0, 0xf}});
  state.wait(job_of("long", 1, 4, {{5000}, 0}));
  const SchedulingPolicy policy = policy_of(JobOrder::kShortest, BackfillRule::kGreedy);
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{100});
  StartForecastOptions options;
  for (int i = 0; i < 20; ++i) {
    options.recent.push_back(job_of("r" + std::to_string(i), 1, 4, {{90}, 0}));
    options.recent.back().submitted = {60.0 * i};
  }
  EXPECT_GT(predicted(state, policy, options)[0].start.value, 86400) << "it is always passed";
}

TEST(StartPrediction, AJobThatFitsNowhereHasNoStart) {
  State state = one_server();
  state.wait(job_of("large", 2, 4));
  EXPECT_FALSE(std::isfinite(
      predicted(state, policy_of(JobOrder::kSubmitted, BackfillRule::kGreedy))[0].start.value));
  EXPECT_FALSE(predict_starts(state.snapshot, state.queue, {}, {"other"}, {}));
}

TEST(StartCalibration, BringsTheShareInTheIntervalToFourFifths) {
  for (const double bias : {0.3, 1.0, 4.0}) {
    for (const double spread : {0.3, 1.5}) {
      SCOPED_TRACE(bias);
      StartCalibration calibration;
      packing::RandomSequence random(5);
      int inside = 0;
      int counted = 0;
      for (int i = 0; i < 3000; ++i) {
        const double wait = std::exp(5 + 5 * random.uniform());
        const StartPrediction raw{"j" + std::to_string(i), {wait}, {0.8 * wait}, {1.25 * wait}};
        const double z = normal_quantile(0.001 + 0.998 * random.uniform());
        const Seconds started{bias * wait * std::exp(spread * z)};
        const StartPrediction made = calibration.calibrated(raw, {0});
        if (i >= 1000) {
          ++counted;
          inside += made.earliest <= started && started <= made.latest ? 1 : 0;
        }
        calibration.add(raw, made, {0});
        calibration.add_start(raw.job, started);
      }
      EXPECT_NEAR(static_cast<double>(inside) / counted, 0.8, 0.05);
    }
  }
}

TEST(StartCalibration, MovesStartsOnlyWhereThatHasMadeErrorsSmaller) {
  for (const double bias : {1.0, 3.0}) {
    SCOPED_TRACE(bias);
    StartCalibration calibration;
    packing::RandomSequence random(7);
    for (int i = 0; i < 200; ++i) {
      const StartPrediction raw{"j" + std::to_string(i), {1000}, {800}, {1250}};
      calibration.add(raw, calibration.calibrated(raw, {0}), {0});
      const double z = normal_quantile(0.001 + 0.998 * random.uniform());
      calibration.add_start(raw.job, {bias * 1000 * std::exp(0.2 * z)});
    }
    const StartPrediction next{"k", {1000}, {800}, {1250}};
    EXPECT_NEAR(calibration.calibrated(next, {0}).start.value, bias * 1000, bias > 1 ? 300 : 1e-9);
  }
}

TEST(StartCalibration, IsWideUntilItHasSeenEnough) {
  StartCalibration calibration;
  const StartPrediction raw{"j", {100}, {50}, {200}};
  calibration.add(raw, raw, {0});
  calibration.add_start("j", {1000});
  const StartPrediction made = calibration.calibrated(raw, {0});
  EXPECT_NEAR(made.start.value, 100, 1e-9);
  EXPECT_LT(made.earliest.value, 30);
  EXPECT_GT(made.latest.value, 400);
}

TEST(StartCalibration, JobsThatStillWaitCountAsLate) {
  StartCalibration calibration;
  for (int i = 0; i < 60; ++i) {
    const StartPrediction raw{"j" + std::to_string(i), {100}, {80}, {125}};
    calibration.add(raw, raw, {0});
    if (i % 2 == 0) calibration.add_start(raw.job, {100});
  }
  // Half of them have not started in ten times as long.
  const StartPrediction later{"k", {1100}, {1080}, {1125}};
  EXPECT_GE(calibration.calibrated(later, {1000}).start, Seconds{1099});
}

TEST(StartPrediction, AJobOfALowerLevelEvictsOneThatHasHadItsService) {
  State state = one_server();
  state.run(job_of("a", 1, 4, {{36000}, 0}), {{0, 0, 0xf}});
  state.wait(job_of("b", 1, 2, {{60}, 0}));
  StartForecastOptions options;
  for (int i = 0; i < 3; ++i) {
    options.recent.push_back(job_of("r" + std::to_string(i), 1, 4, {{60}, 0}));
    options.recent.back().submitted = {300.0 * i};
  }
  SchedulingPolicy policy = policy_of(JobOrder::kShortest, BackfillRule::kGreedy);
  policy.preempts = true;
  policy.service_levels = {{3600.0}};  // device-seconds: job a reaches it after 900 s
  EXPECT_EQ(predicted(state, policy, options)[0].start, Seconds{900});
  policy.preempts = false;
  EXPECT_EQ(predicted(state, policy, options)[0].start, Seconds{36000});
}

TEST(BlockingSet, NamesTheJobThatEndsFirstAndTheSizeThatWouldStartNow) {
  State state = one_server();
  state.run(job_of("a", 1, 2, {{1500}, 0}), {{0, 0, 0x3}});
  JobRequest job = job_of("j", 1, 4);
  job.device_types = {"T"};
  job.topology = {TopologyLevel::kLeaf, TopologyLevel::kLeaf};
  state.wait(job);
  EXPECT_EQ(state.why("j"),
            "waits for 2 of 4 devices of type T under one leaf; held by job a for about 25 min; "
            "would start now with 2 devices");
}

TEST(BlockingSet, HasTheFewestJobsThenThoseThatEndFirst) {
  State state = one_server();
  state.snapshot.nodes = {node_of("n0"), node_of("n1"), node_of("n2")};
  state.run(job_of("small-1", 1, 2, {{60}, 0}), {{0, 0, 0x3}});
  state.run(job_of("small-2", 1, 2, {{60}, 0}), {{0, 0, 0xc}});
  state.run(job_of("late", 1, 4, {{7200}, 0}), {{0, 1, 0xf}});
  state.run(job_of("early", 1, 4, {{3600}, 0}), {{0, 2, 0xf}});
  state.wait(job_of("j", 1, 4));
  const auto set = blocking_set(state.snapshot, state.queue, SchedulingPolicy{}, "j");
  ASSERT_TRUE(set);
  ASSERT_EQ(set->jobs.size(), 1U);
  EXPECT_EQ(set->jobs[0].job, "early");
  EXPECT_EQ(set->jobs[0].devices, 4);
  EXPECT_EQ(set->jobs[0].ends, Seconds{3600});
  EXPECT_EQ(set->sentence,
            "waits for 4 of 4 devices on one server; held by job early for about 1 h");
}

TEST(BlockingSet, OfAGangIsFoundUnderOneLeaf) {
  State state = one_server();
  state.snapshot.nodes = {node_of("n0", 0), node_of("n1", 0), node_of("n2", 1), node_of("n3", 1)};
  state.run(job_of("a", 1, 4, {{600}, 0}), {{0, 0, 0xf}});
  state.run(job_of("b", 1, 4, {{700}, 0}), {{0, 2, 0xf}});
  JobRequest gang = job_of("gang", 2, 4);
  gang.topology = {TopologyLevel::kLeaf, TopologyLevel::kLeaf};
  state.wait(gang);
  EXPECT_EQ(state.why("gang"),
            "waits for 4 of 8 devices under one leaf; held by job a for about 10 min; would start "
            "now with 4 devices");
}

TEST(BlockingSet, AJobWhoseDevicesAreFreeWaitsForItsTurn) {
  State state = one_server();
  state.wait(job_of("j", 1, 2));
  EXPECT_EQ(state.why("j"), "waits for its turn; its 2 devices on one server are free");
}

TEST(BlockingSet, AJobThatNeverFitsIsToldSo) {
  State state = one_server();
  JobRequest job = job_of("j", 1, 2);
  job.device_types = {"X"};
  state.wait(job);
  EXPECT_EQ(state.why("j"),
            "asks for 2 devices of type X on one server; the empty cluster does not hold them: ask "
            "for fewer, or for other types");
  EXPECT_EQ(state.why("other"), "job other: it is not pending");
}

State state_with_limit(const std::string& user = "") {
  State state = one_server();
  state.snapshot.nodes.push_back(node_of("n1"));
  QuotaQueue queue{.name = "a", .parent = ""};
  (user.empty() ? queue.limit : queue.user_limit)[0] = 4000;
  state.queue.quotas = *QuotaTree::create({queue, {.name = "b", .parent = ""}});
  for (const auto& [name, devices, mask] :
       {std::tuple("one", 1, 1U), std::tuple("two", 2, 6U), std::tuple("last", 1, 8U)}) {
    JobRequest job = job_of(name, 1, devices, {{600.0 * devices}, 0});
    job.queue = "a";
    job.user = user;
    state.run(job, {{0, 0, mask}});
  }
  JobRequest job = job_of("j", 1, 2);
  job.queue = "a";
  job.user = user;
  state.wait(job);
  return state;
}

TEST(BlockingSet, OfALimitHasTheFewestJobsOfTheQueue) {
  State state = state_with_limit();
  EXPECT_EQ(state.why("j"),
            "waits for 2 devices of the limit of queue a; held by job two for about 20 min");
  state.queue.jobs[0].request.roles[0].devices = 1;
  EXPECT_EQ(state.why("j"),
            "waits for 1 device of the limit of queue a; held by job one for about 10 min");
  state.queue.jobs[0].request.queue = "b";
  EXPECT_EQ(state.why("j"), "waits for its turn; its 1 device on one server is free");
}

TEST(BlockingSet, OfALimitOfTheUserNamesTheUser) {
  State state = state_with_limit("u");
  EXPECT_EQ(state.why("j"),
            "waits for 2 devices of the limit of user u in queue a; held by job two for about 20 "
            "min");
  state.queue.jobs[0].request.roles[0].devices = 3;
  EXPECT_EQ(state.why("j"),
            "waits for 3 devices of the limit of user u in queue a; held by job one for about 10 "
            "min, job two for about 20 min");
}

TEST(BlockingSet, OfALimitAndOfRoomNamesBoth) {
  State state = state_with_limit();
  JobRequest other = job_of("other", 1, 4, {{7200}, 0});
  other.queue = "b";
  state.run(other, {{0, 1, 0xf}});
  state.queue.jobs[0].request.roles[0].devices = 4;
  EXPECT_EQ(state.why("j"),
            "waits for 4 devices of the limit of queue a; held by job one for about 10 min, job "
            "last for about 10 min, job two for about 20 min");
  state.snapshot.running[0].request.queue = "b";
  EXPECT_EQ(state.why("j"),
            "waits for 3 devices of the limit of queue a; held by job last for about 10 min, job "
            "two for about 20 min; and for 1 of 4 devices on one server; held by job one for about "
            "10 min");
}

TEST(BlockingSet, AJobAboveItsLimitNeverStarts) {
  State state = state_with_limit();
  state.queue.jobs[0].request.roles[0].replicas_min = 3;
  state.queue.jobs[0].request.roles[0].replicas_max = 3;
  EXPECT_EQ(state.why("j"),
            "asks for 6 devices; the limit of queue a is 4 devices: ask for fewer, or raise the "
            "limit");
}

TEST(BlockingSet, SaysThatCpuOrMemoryIsMissing) {
  State state = one_server();
  JobRequest holder = job_of("a", 1, 1, {{1500}, 0});
  holder.roles[0].cpu_milli = 60000;
  state.run(holder, {{0, 0, 0x1}});
  JobRequest job = job_of("j", 1, 2);
  job.roles[0].cpu_milli = 16000;
  state.wait(job);
  EXPECT_EQ(state.why("j"),
            "waits for 12 of 16 cores on one server, where its 2 devices are free; held by job a "
            "for about 25 min");
  state.queue.jobs[0].request.roles[0].devices = 4;
  EXPECT_EQ(state.why("j"),
            "waits for 1 of 4 devices and 12 of 16 cores on one server; held by job a for about 25 "
            "min");
  JobRequest without_devices = job_of("k", 1, 0);
  without_devices.roles[0].cpu_milli = 8000;
  without_devices.roles[0].memory_mib = 1024;
  state.wait(without_devices);
  EXPECT_EQ(state.why("k"), "waits for 4 of 8 cores on one server; held by job a for about 25 min");
}

TEST(BlockingSet, EndsAResizedJobByTheWorkOfItsSize) {
  State state = one_server();
  JobRequest elastic = job_of("a", 2, 1, {{1000}, 0});
  elastic.roles[0].replicas_max = 4;
  state.run(elastic, {{0, 0, 0x1}, {0, 0, 0x2}, {0, 0, 0x4}, {0, 0, 0x8}});
  state.wait(job_of("j", 1, 1));
  const auto set = blocking_set(state.snapshot, state.queue, SchedulingPolicy{}, "j");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->jobs[0].ends, Seconds{500}) << "four replicas do the work of two in half the time";
}

TEST(StartPrediction, AJobAtItsLimitStartsWhenEnoughOfItsQueueHasEnded) {
  State state = state_with_limit();
  const SchedulingPolicy policy = policy_of(JobOrder::kSubmitted, BackfillRule::kReservation);
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{600}) << "two jobs of one device end";
  state.queue.jobs[0].request.roles[0].devices = 4;
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{1200});
  state.queue.jobs[0].request.queue = "b";
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{0});
}

TEST(StartPrediction, AJobWaitsForCpuThatIsInUse) {
  State state = one_server();
  JobRequest holder = job_of("a", 1, 1, {{700}, 0});
  holder.roles[0].cpu_milli = 60000;
  state.run(holder, {{0, 0, 0x1}});
  JobRequest job = job_of("j", 1, 1);
  job.roles[0].cpu_milli = 16000;
  state.wait(job);
  const SchedulingPolicy policy = policy_of(JobOrder::kSubmitted, BackfillRule::kGreedy);
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{700});
  state.queue.jobs[0].request.roles[0].cpu_milli = 4000;
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{0});
}

TEST(StartPrediction, FollowsTheFairSharesOfTheQueues) {
  State state = one_server();
  state.queue.quotas =
      *QuotaTree::create({{.name = "a", .parent = ""}, {.name = "b", .parent = ""}});
  JobRequest holder = job_of("h", 1, 2, {{1000}, 0});
  holder.queue = "a";
  state.run(holder, {{0, 0, 0x3}});
  JobRequest other = job_of("o", 1, 2, {{500}, 0});
  other.queue = "b";
  state.run(other, {{0, 0, 0xc}});
  for (const char* name : {"a", "b"}) {
    JobRequest job = job_of(std::string("wait-") + name, 1, 2, {{5000}, 0});
    job.queue = name;
    job.submitted = {std::string(name) == "a" ? -10.0 : 0.0};
    state.wait(job);
  }
  SchedulingPolicy policy = policy_of(JobOrder::kSubmitted, BackfillRule::kGreedy);
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{500});
  policy.is_fair = true;
  EXPECT_EQ(predicted(state, policy)[1].start, Seconds{500}) << "queue a still has two devices";
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{1000});
}

TEST(StartPrediction, AJobThatHasWaitedLongMovesUp) {
  State state = one_server();
  state.run(job_of("a", 1, 4, {{1000}, 0}), {{0, 0, 0xf}});
  state.wait(job_of("long", 1, 4, {{5000}, 0}));
  SchedulingPolicy policy = policy_of(JobOrder::kShortest, BackfillRule::kGreedy);
  policy.ageing = {3600};
  StartForecastOptions options;
  for (int i = 0; i < 20; ++i) {
    options.recent.push_back(job_of("r" + std::to_string(i), 1, 4, {{590}, 0}));
    options.recent.back().submitted = {600.0 * i};
  }
  const double start = predicted(state, policy, options)[0].start.value;
  EXPECT_GE(start, 3600);
  EXPECT_LE(start, 5000) << "then it goes before jobs that came later";
}

TEST(StartPrediction, AMoveMakesRoom) {
  State state = one_server();
  state.snapshot.nodes.push_back(node_of("n1"));
  for (int node = 0; node < 2; ++node) {
    JobRequest job = job_of("r" + std::to_string(node), 1, 2, {{50000}, 0});
    job.checkpointing = {{600}, {0}, {60}};
    state.run(job, {{0, node, 0x3}}, -100);
  }
  state.wait(job_of("whole", 1, 4));
  SchedulingPolicy policy = policy_of(JobOrder::kSubmitted, BackfillRule::kReservation);
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{49900});
  policy.moves = 1;
  EXPECT_EQ(predicted(state, policy)[0].start, Seconds{0});
}

TEST(BlockingSet, NoJobOfItIsNeedlessOnRandomClusters) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    State state;
    for (int node = 0; node < 5; ++node) {
      state.snapshot.nodes.push_back(node_of("n" + std::to_string(node), node / 2));
      std::uint32_t free = 0xf;
      while (free != 0 && random.below(5) != 0) {
        const std::uint32_t devices = random.below(2) == 0 ? free & (~free + 1) : free;
        free &= ~devices;
        state.run(
            job_of("r" + std::to_string(state.snapshot.running.size()), 1, std::popcount(devices),
                   {{100.0 + static_cast<double>(random.below(900))}, 0}),
            {{0, node, devices}});
      }
    }
    state.wait(
        job_of("j", 1 + static_cast<int>(random.below(3)), 1 + static_cast<int>(random.below(4))));
    const auto set = blocking_set(state.snapshot, state.queue, SchedulingPolicy{}, "j");
    ASSERT_TRUE(set);
    ASSERT_FALSE(set->never_fits);
    // Without the whole set it fits; while one of them stays it does not.
    for (std::size_t kept = 0; kept <= set->jobs.size(); ++kept) {
      State other = state;
      std::erase_if(other.snapshot.running, [&](const RunningJob& running) {
        for (std::size_t i = 0; i < set->jobs.size(); ++i)
          if (i != kept && set->jobs[i].job == running.request.name) return true;
        return false;
      });
      const auto rest = blocking_set(other.snapshot, other.queue, SchedulingPolicy{}, "j");
      EXPECT_EQ(rest->jobs.empty(), kept == set->jobs.size());
    }
  }
}

}  // namespace
}  // namespace regatta::sched
