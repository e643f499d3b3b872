#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/app/report/internal/sample_run.h"
#include "regatta/app/report/run_result.h"

namespace regatta::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TextReport, PutsPredictedBesideMeasured) {
  RunResult result = sample_run_result();
  result.main.plan.prediction.phases = {};
  result.main.measured.phases = {};
  result.main.plan.prediction.phases[workload::Phase::kForward] = {1.5};
  result.main.measured.phases[workload::Phase::kForward] = {2};
  result.main.plan.prediction.step_time = {1.5};
  result.main.measured.step_time = {2};
  EXPECT_THAT(text_report(result), HasSubstr("phase    predicted  measured  difference\n"
                                             "forward    1.500 s   2.000 s    +0.500 s\n"
                                             "step       1.500 s   2.000 s     +33.3 %\n"));
}

TEST(TextReport, EndsWithComparisonAndSweep) {
  const std::string text = text_report(sample_run_result());
  EXPECT_THAT(text, HasSubstr("pure data parallelism (tp1 pp1 dp8 mb4 recompute=none)"));
  EXPECT_THAT(text, HasSubstr("speedup "));
  EXPECT_THAT(text, HasSubstr("rank correlation (Spearman) "));
  EXPECT_EQ(text.back(), '\n');
}

TEST(TextReport, SaysNothingOfWhatTheRunDidNotDo) {
  RunResult result = sample_run_result();
  result.compare.reset();
  result.sweep.clear();
  EXPECT_THAT(text_report(result), Not(HasSubstr("speedup")));
  EXPECT_THAT(text_report(result), Not(HasSubstr("Spearman")));
}

}  // namespace
}  // namespace regatta::report
