#include "regatta/platform/mixing/duty_tables.h"

#include <gtest/gtest.h>

namespace regatta::mixing {
namespace {

constexpr const char* kPairs =
    "gpu,job,scale,other_job,other_scale,steps_per_s,other_steps_per_s\n";

std::string error_of_trace(const std::string& text) {
  const auto trace = read_duty_trace(text, "duty.csv");
  return trace ? "" : trace.error().message;
}

TEST(DutyTables, SeriesOfAllPodsHaveOneClock) {
  const auto trace =
      read_duty_trace("t_s,pod,duty_pct\n57,b,100\n0,a,50\n114,a,25.5\n", "duty.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->interval, Seconds{57});
  ASSERT_EQ(trace->workloads.size(), 2U);
  EXPECT_EQ(trace->workloads[0].name, "b");
  EXPECT_EQ(trace->workloads[0].demand, (std::vector<float>{kAbsent, 1, kAbsent}));
  EXPECT_EQ(trace->workloads[1].demand, (std::vector<float>{0.5F, kAbsent, 0.255F}));
}

TEST(DutyTables, SamplesOfOneIntervalAreAveraged) {
  const auto trace =
      read_duty_trace("t_s,pod,duty_pct\n0,a,10\n0,a,20\n0,a,60\n60,a,0\n", "duty.csv");
  ASSERT_TRUE(trace);
  EXPECT_NEAR(trace->workloads[0].demand[0], 0.3, 1e-6);
}

TEST(DutyTables, AWrongValueIsNamedWithLineColumnAndRemedy) {
  EXPECT_EQ(error_of_trace("t_s,pod\n0,a\n"),
            "duty.csv:1: no column 'duty_pct'; name the columns t_s, pod, duty_pct in the first "
            "line");
  EXPECT_EQ(error_of_trace("t_s,pod,duty_pct\n0,a,101\n"),
            "duty.csv:2: duty_pct: '101' is not a number from 0 to 100; correct it");
  EXPECT_EQ(error_of_trace("t_s,pod,duty_pct\n0,a,nan\n"),
            "duty.csv:2: duty_pct: 'nan' is not a number from 0 to 100; correct it");
  EXPECT_EQ(error_of_trace("t_s,pod,duty_pct\n5,a,1\n"),
            "duty.csv: all samples have one time; give a trace of several intervals");
  EXPECT_EQ(error_of_trace("t_s,pod,duty_pct\n0,a,1\n1,a,1\n900000,a,1\n"),
            "duty.csv: 900001 intervals of 1 s; give at most 100000, and fewer for many pods");
}

TEST(DutyTables, RequestsOfAllTypesAreAddedUpByMinute) {
  const auto requests =
      read_requests("t_s,type,qps\n420,API,0.5\n420,Gen,1\n540,API,2\n", "qps.csv");
  ASSERT_TRUE(requests);
  EXPECT_EQ(*requests, (std::vector<double>{1.5, 0, 2}));
  EXPECT_FALSE(read_requests("t_s,qps\n", "qps.csv"));
}

TEST(DutyTables, SpeedsOfPairsAreOverThoseAlone) {
  const auto pairs = read_job_pairs(std::string(kPairs) +
                                        "v100,a,1,,,10,\nv100,b,1,,,4,\nv100,a,1,b,1,5,3\n"
                                        "v100,a,2,b,2,5,3\nv100,a,1,c,1,5,3\n",
                                    "pairs.csv");
  ASSERT_TRUE(pairs) << pairs.error().message;
  ASSERT_EQ(pairs->size(), 1U);
  EXPECT_EQ(pairs->front().speed, 0.5);
  EXPECT_EQ(pairs->front().other_speed, 0.75);
}

}  // namespace
}  // namespace regatta::mixing
