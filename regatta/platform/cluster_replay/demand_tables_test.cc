#include "regatta/platform/cluster_replay/demand_tables.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"

namespace regatta::cluster_replay {
namespace {

const std::filesystem::path kGentd =
    std::filesystem::path(REGATTA_TESTDATA "/../../../../../shared/data/cluster/gentd")
        .lexically_normal();

constexpr const char* kDuty = "t_s,pod,duty_pct\n";

// Pod a all the time, 10 % in the past and 90 % later; pod b in the past; pod c later.
std::string three_pods() {
  std::string text = kDuty;
  for (int minute = 0; minute < 40; ++minute) {
    text += fmt::format("{},a,{}\n", 60 * minute, minute < 20 ? 10 : 90);
    if (minute < 10) text += fmt::format("{},b,30\n", 60 * minute);
    if (minute >= 30) text += fmt::format("{},c,50\n", 60 * minute);
  }
  return text;
}

TEST(ReadDutyJobs, KnowsOfAPodWhatItsPastShowsAndNoMore) {
  const auto jobs = read_duty_jobs(three_pods(), "duty.csv", {.past = {1200}});
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2U);
  const TracedJob& first = jobs->front();
  EXPECT_EQ(first.request.name, "pod-a");
  EXPECT_EQ(first.request.submitted, Seconds{0});
  EXPECT_EQ(first.run_time, Seconds{1200});
  EXPECT_NEAR(mixing::mean_share(first.request.roles.front().duty), 0.1, 1e-6);
  EXPECT_EQ(first.demand.past, 20);
  EXPECT_FLOAT_EQ(first.demand.amounts[20], 0.9F);
  const TracedJob& later = jobs->back();
  EXPECT_EQ(later.request.submitted, Seconds{600});
  EXPECT_EQ(later.demand.past, 0);
  // All that was seen of any pod: 20 minutes of 10 %, 10 of 30 %.
  EXPECT_NEAR(mixing::mean_share(later.request.roles.front().duty), 0.5 / 3, 1e-6);
}

TEST(ReadDutyJobs, NamesFileAndRemedyWhereNothingIsLeft) {
  const auto jobs = read_duty_jobs(three_pods(), "duty.csv", {.past = {7200}});
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().message,
            "duty.csv: every pod is in the first 2 h, which is taken as known; give a longer "
            "trace, or a shorter past");
  const auto wrong = read_duty_jobs(std::string(kDuty) + "0,a,101\n", "duty.csv", {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "duty.csv:2: duty_pct: '101' is not a number from 0 to 100; correct it");
}

TEST(ReadServiceJobs, MakesAServiceOfEachTypeWithItsHistory) {
  const auto jobs = read_service_jobs("t_s,type,qps\n0,API,2\n60,Gen,9\n120,API,4\n180,Gen,3\n",
                                      "qps.csv", {.past = {120}, .service_replicas = 8});
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2U);
  const TracedJob& api = jobs->front();
  EXPECT_EQ(api.request.name, "service-API");
  EXPECT_EQ(api.request.roles.front().replicas_max, 8);
  ASSERT_TRUE(api.request.demand);
  EXPECT_EQ(api.request.demand->history, (std::vector<double>{2, 0}));
  EXPECT_DOUBLE_EQ(api.demand.per_replica, 0.5);  // 4 after the past
  EXPECT_EQ(api.run_time, Seconds{120});
}

TEST(ReadServiceJobs, NamesTheColumnThatIsZeroAtAllTimes) {
  const auto error_of = [](Seconds past) {
    const auto jobs = read_service_jobs("t_s,qps\n0,9\n60,0\n120,0\n", "qps.csv", {.past = past});
    return jobs ? "" : jobs.error().message;
  };
  EXPECT_EQ(error_of({60}),
            "qps.csv: qps: it is 0 at all times after the first 1 min; give a trace with requests");
  EXPECT_EQ(error_of({180}),
            "qps.csv: every request is in the first 3 min, which is taken as known; give a longer "
            "trace, or a shorter past");
  EXPECT_EQ(error_of({0}), "");
}

TEST(ReadDutyJobs, ReadsTheTraceOfGentd) {
  if (!std::filesystem::exists(kGentd)) GTEST_SKIP() << kGentd << " is not there";
  const std::string text = read_test_file(kGentd / "gpu_duty_cycle.csv");
  const auto jobs = read_duty_jobs(text, "gpu_duty_cycle.csv", {});
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_GT(jobs->size(), 100U);
  EXPECT_LE(jobs->size(), 143U);
}

}  // namespace
}  // namespace regatta::cluster_replay
