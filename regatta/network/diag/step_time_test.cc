#include "regatta/network/diag/step_time.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/network/diag/internal/job_groups.h"
#include "regatta/network/diag/test_job_traffic.h"

namespace regatta::diag {
namespace {

constexpr Seconds kInterval{0.01};
constexpr double kDuration_s = 10;

struct Trial {
  TrafficSeries traffic;
  TestTruth truth;
  double step_s = 0;
};

// A random job with `steps` in the record: pipeline or rings, bubbles, 1 to 32 micro-batches of
// several messages, buckets of gradients, jitter of steps and bursts, and often missing samples.
Trial random_trial(std::uint64_t seed, double steps) {
  std::mt19937_64 random(seed);
  const auto real = [&](double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  };
  const auto whole = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  const std::vector<std::vector<std::vector<int>>> layouts = {
      {{0, 1, 2, 3}}, {{0, 1}, {2, 3}}, {{0}, {1}, {2}, {3}}, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}};
  TestJob job{.stages = at(layouts, whole(0, 3)),
              .step_s = kDuration_s / steps,
              .step_jitter = real(0, 0.1),
              .burst_jitter = real(0, 0.03),
              .micro_batches = 1 << whole(0, 5),
              .stage_mb = real(0.2, 8),
              .ring_mb = real(1, 100),
              .micro_batch_share = real(0.1, 0.8)};
  job.ring_share = real(0.05, 0.9 - job.micro_batch_share);
  job.messages = whole(1, 4);
  job.buckets = whole(1, 6);
  job.is_interleaved = whole(0, 1) == 1;
  TestJobTraffic test(kDuration_s, kInterval.value, seed);
  Trial trial{.truth = test.add(job), .step_s = job.step_s};
  if (whole(0, 1) == 1)
    for (FlowSeries& flow : test.traffic.flows)
      flow.process = static_cast<std::uint32_t>(flow.to.value + 1);
  if (whole(0, 2) == 0) test.lose_samples(real(0, 0.5));
  trial.traffic = std::move(test.traffic);
  return trial;
}

double error_of(const StepTiming& steps, const Trial& trial) {
  const double half = trial.step_s / 2;
  std::vector<double> begins;
  for (const double begin : trial.truth.begins)
    if (begin >= steps.marks.front().value - half && begin <= steps.marks.back().value + half)
      begins.push_back(begin);
  if (begins.size() < 2) return std::abs(steps.mean.value / trial.step_s - 1);
  const double exact = (begins.back() - begins.front()) / static_cast<double>(begins.size() - 1);
  return std::abs(steps.mean.value / exact - 1);
}

struct Outcome {
  int trials = 0;
  int stated = 0;
  int wrong = 0;   // by 10 % or more
  int groups = 0;  // beyond one a trial
};

Outcome run_trials(double steps_min, double steps_max, int count, std::uint64_t seed) {
  Outcome outcome{.trials = count};
  std::mt19937_64 random(seed);
  for (int i = 0; i < count; ++i) {
    const double steps = std::exp(
        std::uniform_real_distribution<double>(std::log(steps_min), std::log(steps_max))(random));
    const Trial trial = random_trial(seed + static_cast<std::uint64_t>(i), steps);
    const std::vector<JobGroup> jobs = find_jobs(trial.traffic);
    outcome.groups += static_cast<int>(jobs.size()) - 1;
    for (const JobGroup& job : jobs) {
      if (!job.steps || !job.steps->is_clear()) continue;
      ++outcome.stated;
      if (error_of(*job.steps, trial) >= 0.1) ++outcome.wrong;
    }
  }
  std::printf("%.1f to %.1f steps in the record: %d of %d stated, %d off by 10 %% or more\n",
              steps_min, steps_max, outcome.stated, count, outcome.wrong);
  return outcome;
}

TEST(StepTiming, IsNeverClearInARecordShorterThanTwoSteps) {
  const Outcome outcome = run_trials(0.3, 2, 300, 1000);
  EXPECT_EQ(outcome.stated, 0);
  EXPECT_EQ(outcome.groups, 0);
}

TEST(StepTiming, IsNeverClearInARecordOfAFewSteps) {
  EXPECT_EQ(run_trials(2, 9, 150, 2000).stated, 0);
}

TEST(StepTiming, IsRightWhereItIsClear) {
  const Outcome outcome = run_trials(12, 40, 150, 3000);
  EXPECT_EQ(outcome.wrong, 0);
  EXPECT_EQ(outcome.groups, 0);
  EXPECT_GE(outcome.stated, 100);
}

}  // namespace
}  // namespace regatta::diag
