#include "regatta/network/diag/internal/job_groups.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include <gmock/gmock.h>

#include "regatta/network/diag/test_job_traffic.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;

constexpr double kInterval = 0.01;

double off_by(const StepTiming& steps, const TestTruth& truth) {
  const double from = steps.marks.front().value;
  const double to = steps.marks.back().value;
  const double exact =
      truth.step_time(from - truth.step_time(0, to) / 2, to + truth.step_time(0, to) / 2);
  return std::abs(steps.mean.value / exact - 1);
}

std::vector<std::uint32_t> range(std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = from; i < to; ++i)
    out.push_back(i);
  return out;
}

TEST(FindJobs, FindsNoneWhereNothingIsSent) {
  EXPECT_TRUE(find_jobs({}).empty());
  const TrafficSeries silent{
      {}, {kInterval}, {{NodeId{0}, NodeId{1}, std::vector<double>(500, 0.0)}}};
  EXPECT_TRUE(find_jobs(silent).empty());
}

TEST(FindJobs, SeparatesServersThatExchangeNothing) {
  TestJobTraffic test(10, kInterval, 1);
  test.add({.stages = {{0, 1, 2}}});
  test.add({.stages = {{3, 4}}});
  const auto jobs = find_jobs(test.traffic);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_THAT(jobs[0].servers, ElementsAre(NodeId{0}, NodeId{1}, NodeId{2}));
  EXPECT_THAT(jobs[1].servers, ElementsAre(NodeId{3}, NodeId{4}));
}

// Two jobs on the same servers; beside each ring a little that keeps no time, to the same
// processes.
TEST(FindJobs, KeepsTheFlowsOfAProcessTogether) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    TestJobTraffic test(8, kInterval, seed);
    test.add({.stages = {{0, 1, 2}}, .step_s = 0.11});
    const std::size_t first = test.traffic.flows.size();
    test.add({.stages = {{0, 1, 2}}, .step_s = 0.28});
    const std::size_t all = test.traffic.flows.size();
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> bytes(1e-3);
    std::vector<std::uint32_t> of_second;
    for (std::uint32_t flow = 0; flow < all; ++flow) {
      const std::uint32_t job = flow < first ? 0 : 1;
      FlowSeries& series = test.traffic.flows[flow];
      series.process = 10 * job + static_cast<std::uint32_t>(series.to.value) + 1;
      FlowSeries restless = series;
      for (double& one : restless.bytes)
        one = bytes(random);
      test.traffic.flows.push_back(restless);
    }
    for (std::uint32_t flow = 0; flow < test.traffic.flows.size(); ++flow)
      if (test.traffic.flows[flow].process > 10) of_second.push_back(flow);
    const auto jobs = find_jobs(test.traffic);
    ASSERT_EQ(jobs.size(), 2u) << "seed " << seed;
    const bool is_first = jobs[0].flows.front() == of_second.front();
    EXPECT_EQ(jobs[is_first ? 0 : 1].flows, of_second) << "seed " << seed;
  }
}

// Each process repeats too little for a clear step of its own; another one with the same step
// confirms it.
TEST(FindJobs, SeparatesTwoJobsThatDisturbEachOther) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    TestJobTraffic test(8, kInterval, seed);
    test.add({.stages = {{0, 1, 2}}, .step_s = 0.11, .step_jitter = 0.03});
    const auto first = static_cast<std::uint32_t>(test.traffic.flows.size());
    test.add({.stages = {{0, 1, 2}}, .step_s = 0.16, .step_jitter = 0.03});
    const auto all = static_cast<std::uint32_t>(test.traffic.flows.size());
    std::mt19937_64 random(seed);
    for (std::uint32_t flow = 0; flow < all; ++flow) {
      FlowSeries& series = test.traffic.flows[flow];
      series.process = flow + 1;
      const double most = *std::ranges::max_element(series.bytes);
      std::normal_distribution<double> noise(0, 0.6 * most);
      for (double& one : series.bytes)
        one = std::max(0.0, one + noise(random));
      const auto steps = find_steps({series.bytes}, {kInterval});
      EXPECT_FALSE(steps && steps->is_clear());
    }
    const auto jobs = find_jobs(test.traffic);
    ASSERT_EQ(jobs.size(), 2u);
    const bool is_swapped = jobs[0].flows.front() != 0;
    EXPECT_EQ(jobs[is_swapped ? 1 : 0].flows, range(0, first));
    EXPECT_EQ(jobs[is_swapped ? 0 : 1].flows, range(first, all));
  }
}

TEST(FindJobs, FindsNoStepsInNoise) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> bytes(1e-5);
  TrafficSeries traffic{{}, {kInterval}, {{NodeId{0}, NodeId{1}, {}}}};
  for (int i = 0; i < 2000; ++i)
    traffic.flows[0].bytes.push_back(bytes(random));
  const auto jobs = find_jobs(traffic);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_FALSE(jobs[0].steps);
}

TEST(FindJobs, FindsNoStepsInASteadyFlow) {
  const TrafficSeries traffic{
      {}, {kInterval}, {{NodeId{0}, NodeId{1}, std::vector<double>(900, 1e6)}}};
  const auto jobs = find_jobs(traffic);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_FALSE(jobs[0].steps);
}

TEST(FindJobs, AddsAFlowWithoutAPeriodToTheJobWhoseServersItJoins) {
  TestJobTraffic test(15, kInterval, 3);
  test.add({.stages = {{0, 1, 2}}});
  test.add_copy(0, 2, 50);
  test.add_copy(2, 7, 50);  // leads out of the job
  const auto jobs = find_jobs(test.traffic);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_THAT(jobs[0].flows, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(jobs[1].flows, ElementsAre(4));
}

TEST(FindSteps, FindsTheStepOfAJobThatStartsInTheRecord) {
  TestJobTraffic test(20, kInterval, 5);
  const TestTruth truth = test.add({.stages = {{0, 1}}, .step_s = 0.5});
  for (auto& flow : test.traffic.flows)
    std::fill(flow.bytes.begin(), flow.bytes.begin() + 800, 0.0);
  const auto steps = find_steps({test.traffic.flows[0].bytes}, {kInterval});
  ASSERT_TRUE(steps);
  EXPECT_GT(steps->marks.front().value, 7.4);
  EXPECT_LT(off_by(*steps, truth), 0.003);
}

struct Outcome {
  int trials = 0;
  int grouped = 0;
  std::vector<double> errors;  // of step times

  void print(const char* what) {
    std::ranges::sort(errors);
    if (errors.empty()) return;
    std::printf(
        "%s: %d of %d trials grouped right; step time off by %.3f %% in the middle, "
        "%.3f %% at the 99th percentile, %.3f %% at most, of %zu\n",
        what, grouped, trials, 100 * errors[errors.size() / 2],
        100 * errors[errors.size() * 99 / 100], 100 * errors.back(), errors.size());
  }
};

TEST(FindJobs, MeasuresTheStepOfOneJobWithin03Percent) {
  Outcome outcome;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const double step_s = std::exp(std::uniform_real_distribution<double>(-2.5, 0.4)(random));
    TestJobTraffic test(20, kInterval, seed);
    TestJob job{.stages = {{0, 1}, {2, 3}}, .step_s = step_s};
    if (seed % 3 == 0) job.stages = {{0, 1, 2, 3}};
    job.micro_batches = 1 + static_cast<int>(seed % 4) * 2;
    const TestTruth truth = test.add(job);
    const auto jobs = find_jobs(test.traffic);
    ++outcome.trials;
    outcome.grouped += jobs.size() == 1 ? 1 : 0;
    EXPECT_EQ(jobs.size(), 1u) << "step " << step_s;
    ASSERT_FALSE(jobs.empty());
    ASSERT_TRUE(jobs[0].steps) << "step " << step_s;
    outcome.errors.push_back(off_by(*jobs[0].steps, truth));
    EXPECT_LE(outcome.errors.back(), 0.003)
        << "step " << step_s << ", found " << jobs[0].steps->mean.value;
  }
  outcome.print("one job");
  EXPECT_EQ(outcome.grouped, outcome.trials);
}

TEST(FindJobs, SeparatesTwoJobsOnTheSameServersByTheirSteps) {
  Outcome outcome;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const double step_s = std::uniform_real_distribution<double>(0.15, 0.8)(random);
    const double ratio = std::uniform_real_distribution<double>(1.07, 1.9)(random);
    TestJobTraffic test(30, kInterval, seed);
    const TestTruth first = test.add({.stages = {{0, 1}, {2, 3}}, .step_s = step_s});
    const auto border = static_cast<std::uint32_t>(test.traffic.flows.size());
    const TestTruth second =
        test.add({.stages = {{2, 3, 4, 5}}, .step_s = step_s * ratio, .step_jitter = 0.01});
    const auto end = static_cast<std::uint32_t>(test.traffic.flows.size());
    const auto jobs = find_jobs(test.traffic);
    ++outcome.trials;
    const bool is_right = jobs.size() == 2 && jobs[0].flows == range(0, border) &&
                          jobs[1].flows == range(border, end);
    EXPECT_TRUE(is_right) << jobs.size() << " groups; steps " << step_s << ", ratio " << ratio;
    if (!is_right) continue;
    ++outcome.grouped;
    ASSERT_TRUE(jobs[0].steps && jobs[1].steps);
    outcome.errors.push_back(off_by(*jobs[0].steps, first));
    outcome.errors.push_back(off_by(*jobs[1].steps, second));
    EXPECT_LE(std::max(outcome.errors.back(), outcome.errors.end()[-2]), 0.003)
        << "steps " << step_s << " and " << step_s * ratio << ", found "
        << jobs[0].steps->mean.value << " and " << jobs[1].steps->mean.value;
  }
  outcome.print("two jobs on shared servers");
}

}  // namespace
}  // namespace regatta::diag
