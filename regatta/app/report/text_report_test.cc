#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/app/report/internal/sample_run.h"
#include "regatta/app/report/run_result.h"

namespace regatta::report {
namespace {

using ::testing::EndsWith;
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

TEST(TextReport, SaysWhatChoosingByPredictionCosts) {
  RunResult result = sample_run_result();
  for (PlanRun& run : result.sweep)
    run.measured.step_time = {1.5};
  EXPECT_THAT(text_report(result), EndsWith("the plan ranked first is the fastest one measured\n"));
  result.sweep.back().measured.step_time = {1.2};
  EXPECT_THAT(text_report(result),
              EndsWith("the plan ranked first is 25.0 % slower than the fastest one measured\n"));
  result.sweep.resize(1);
  EXPECT_THAT(text_report(result), Not(HasSubstr("ranked first")));
}

TEST(ProgressText, CountsStepsFromOneAndTheTimeLeft) {
  const TrainingProgress run{.title = "main", .steps = 50, .tokens = 8192, .mean_step = {0.5}};
  EXPECT_EQ(progress_text(run, {.step = 9, .loss = 3.25, .time = {0.4}}),
            "main: step 10/50  loss 3.2500  20480 tokens/s  400 ms a step  20 s left");
  EXPECT_EQ(resumed_text("main", 30, "ckpt"),
            "main: resumed after step 30 from the checkpoint in ckpt\n");
}

TEST(TrainedPlanText, HasTheStepThePredictionAndThePorts) {
  PlanRun run;
  run.measured.step_time = {0.4};
  run.plan.prediction.step_time = {0.2};
  run.ports = {.method = "hashed", .why = "asked for"};
  EXPECT_EQ(trained_plan_text("main", run),
            "main: 400 ms a step, predicted 200 ms\nmain: ports hashed (asked for)\n");
  run.ports.method = "planned";
  EXPECT_THAT(trained_plan_text("main", run),
              EndsWith("ports planned: no connections cross switches that have a choice\n"));
  run.ports.sets = {{"rings", 16, 1}, {"none", 0, 0}, {"pipeline", 8, 2}};
  run.ports.avoided = {"leaf0-spine1"};
  EXPECT_THAT(trained_plan_text("main", run),
              EndsWith("ports planned: rings: 16 connections across switches, 1 at most on a link; "
                       "pipeline: 8 connections across switches, 2 at most on a link; around "
                       "leaf0-spine1\n"));
}

}  // namespace
}  // namespace regatta::report
