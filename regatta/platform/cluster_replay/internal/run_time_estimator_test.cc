#include "regatta/platform/cluster_replay/internal/run_time_estimator.h"

#include <cmath>

#include <gtest/gtest.h>

#include "regatta/platform/cluster_replay/traced_job.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::cluster_replay {
namespace {

sched::JobRequest job_of(const std::string& queue, int devices) {
  sched::JobRequest job;
  job.queue = queue;
  job.roles = {whole_device_role(devices, 8)};
  return job;
}

TEST(RunTimeEstimator, KnowsThePriorAloneBeforeAJobEnds) {
  const RunTimeEstimator estimator({{500}, 1.5});
  EXPECT_NEAR(estimator.estimate(job_of("a", 1)).median.value, 500, 1e-9);
  EXPECT_NEAR(estimator.estimate(job_of("a", 1)).log_spread, 1.5, 1e-9);
}

TEST(RunTimeEstimator, FindsTheDistributionOfAGroup) {
  RunTimeEstimator estimator;
  packing::RandomSequence random(1);
  for (int i = 0; i < 2000; ++i) {
    const double deviation = sched::normal_quantile(0.0005 + 0.999 * random.uniform());
    estimator.add(job_of("a", 4), {7200 * std::exp(0.5 * deviation)});
  }
  const sched::RunTime estimate = estimator.estimate(job_of("a", 4));
  EXPECT_NEAR(std::log(estimate.median.value / 7200), 0, 0.2);
  EXPECT_NEAR(estimate.log_spread, 0.5, 0.15);
}

TEST(RunTimeEstimator, AQueueWithoutEndedJobsTakesThoseOfAsManyDevices) {
  RunTimeEstimator estimator;
  for (int i = 0; i < 200; ++i) {
    estimator.add(job_of("a", 1), {60});
    estimator.add(job_of("a", 8), {86400});
  }
  EXPECT_LT(estimator.estimate(job_of("new", 1)).median.value, 200);
  EXPECT_GT(estimator.estimate(job_of("new", 8)).median.value, 40000);
}

TEST(RunTimeEstimator, FollowsAQueueWhoseJobsBecomeLonger) {
  RunTimeEstimator estimator;
  for (int i = 0; i < 500; ++i)
    estimator.add(job_of("a", 1), {100});
  for (int i = 0; i < 100; ++i)
    estimator.add(job_of("a", 1), {10000});
  EXPECT_GT(estimator.estimate(job_of("a", 1)).median.value, 5000);
}

TEST(RunTimeEstimator, OneEndedJobMovesTheEstimateAndKeepsItUncertain) {
  RunTimeEstimator estimator({{1000}, 2});
  estimator.add(job_of("a", 1), {10});
  const sched::RunTime estimate = estimator.estimate(job_of("a", 1));
  EXPECT_GT(estimate.median.value, 10);
  EXPECT_LT(estimate.median.value, 1000);
  EXPECT_GT(estimate.log_spread, 1);
}

}  // namespace
}  // namespace regatta::cluster_replay
