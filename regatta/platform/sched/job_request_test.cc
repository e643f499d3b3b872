#include "regatta/platform/sched/job_request.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace regatta::sched {
namespace {

// Source: the tables of Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.1.
TEST(NormalQuantile, HasTheValuesOfTheTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-12);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile(0.025), -1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile(0.9), 1.2815515655446004, 1e-9);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 1e-9);
}

TEST(NormalQuantile, InvertsTheDistributionFromTailToTail) {
  for (double x = -8; x <= 8; x += 0.125)
    EXPECT_NEAR(normal_quantile(0.5 * std::erfc(-x / std::sqrt(2.0))), x, x < 5 ? 1e-9 : 0.02) << x;
}

TEST(RemainingTime, OfAJobThatHasNotBegunIsItsQuantile) {
  const RunTime run_time{.median = {3600}, .log_spread = 1};
  EXPECT_NEAR(remaining_time(run_time, {0}, 0.5).value, 3600, 1e-3);
  EXPECT_NEAR(remaining_time(run_time, {0}, 0.9).value, 3600 * std::exp(1.2815515655), 1e-2);
}

TEST(RemainingTime, FallsWithoutSpreadAndGrowsWithMuch) {
  EXPECT_EQ(remaining_time({.median = {100}}, {30}, 0.5), Seconds{70});
  EXPECT_EQ(remaining_time({.median = {100}}, {130}, 0.5), Seconds{0});
  const RunTime wide{.median = {100}, .log_spread = 2};
  EXPECT_GT(remaining_time(wide, {1000}, 0.5), remaining_time(wide, {100}, 0.5));
}

TEST(RemainingTime, StaysFiniteFarBeyondTheEstimate) {
  const RunTime narrow{.median = {1}, .log_spread = 0.01};
  EXPECT_EQ(remaining_time(narrow, {1e6}, 0.5), Seconds{1e6});
}

TEST(RemainingTime, IsInfiniteWhereNothingIsKnown) {
  EXPECT_EQ(remaining_time({}, {5}, 0.5).value, std::numeric_limits<double>::infinity());
}

JobRequest service_job() {
  JobRequest job;
  job.name = "chat";
  job.job_class = JobClass::kTidal;
  job.roles = {{.name = "server", .replicas_min = 1, .replicas_max = 4, .devices = 1}};
  job.demand = ServiceDemand{.history = {0, 3.5, 2}, .per_replica = 1};
  return job;
}

TEST(CheckJob, AcceptsTheDemandOfAServiceAlsoBeforeItWasSeen) {
  JobRequest job = service_job();
  EXPECT_TRUE(check_job(job));
  job.job_class = JobClass::kOnline;
  job.demand->history.clear();
  EXPECT_TRUE(check_job(job));
}

TEST(CheckJob, RefusesADemandThatNoServiceCanHave) {
  const auto message = [](auto change) {
    JobRequest job = service_job();
    change(job);
    const Status status = check_job(job);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(message([](JobRequest& job) { job.job_class = JobClass::kBatch; }),
            "job chat: it has a demand; only online and tidal jobs follow one");
  EXPECT_EQ(message([](JobRequest& job) {
              job.roles.push_back(job.roles[0]);
              job.roles[1].name = "other";
            }),
            "job chat: a service that follows its demand has one role without subgroups");
  EXPECT_EQ(message([](JobRequest& job) { job.roles[0].subgroup_replicas = 2; }),
            "job chat: a service that follows its demand has one role without subgroups");
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double interval : {0.0, -60.0, infinite, std::nan("")})
    EXPECT_EQ(message([&](JobRequest& job) { job.demand->interval = {interval}; }),
              "job chat: the interval of its demand is not above 0; give 60 s for minutes");
  for (const double served : {0.0, -1.0, infinite, std::nan("")})
    EXPECT_EQ(message([&](JobRequest& job) { job.demand->per_replica = served; }),
              "job chat: the demand that a replica serves is not above 0; give a number");
  EXPECT_EQ(message([](JobRequest& job) { job.demand->history[1] = -1; }),
            "job chat: value 2 of its demand is -1; give numbers of 0 to 1e+15");
  for (const double value : {infinite, std::nan(""), 1e16})
    EXPECT_FALSE(message([&](JobRequest& job) { job.demand->history[2] = value; }).empty());
}

}  // namespace
}  // namespace regatta::sched
