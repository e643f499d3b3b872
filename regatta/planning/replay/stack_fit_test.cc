#include "regatta/planning/replay/stack_fit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/planning/replay/embedded_sets.h"
#include "regatta/planning/replay/internal/test_tables.h"
#include "regatta/planning/replay/replay.h"

namespace regatta::replay {
namespace {

using cost::StackScalar;
using testing::Contains;
using testing::HasSubstr;

const cost::SoftwareStack& stack_named(const char* name) {
  return *cost::find_software_stack(name);
}

std::vector<PublishedRun> embedded(const std::string& name) {
  for (const EmbeddedSet& set : embedded_sets()) {
    if (name != set.name) continue;
    const auto runs = read_published(set.name, set.text);
    EXPECT_TRUE(runs) << runs.error().message;
    if (runs) return *runs;
  }
  return {};
}

// Runs as they would be measured where `truth` is what a stack reaches.
std::vector<PublishedRun> made_by(const cost::SoftwareStack& truth,
                                  std::vector<PublishedRun> runs) {
  const auto made = predict_runs(runs, &truth);
  EXPECT_TRUE(made) << made.error().message;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].measured = made->at(i).predicted;
    runs[i].is_calibration = true;
  }
  return runs;
}

// Runs that a known calibration made: the fit must find predictions as good.
TEST(FitToPublished, FindsACalibrationThatExplainsWhatOneMade) {
  cost::SoftwareStack truth = stack_named("megatron-lm-2022");
  truth.calibration.matrix_efficiency = 0.7;
  truth.calibration.tile_depth = 250;
  truth.calibration.memory_efficiency = 0.6;
  const std::vector<PublishedRun> runs = made_by(truth, embedded("korthikanti_table5"));
  const auto fitted = fit_to_published(stack_named("megatron-lm-2022"), {runs});
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_LT(score(*predict_runs(runs, &fitted->stack)).mape, 0.01);
}

TEST(FitToPublished, RefusesWhatHasNoCalibrationRow) {
  const auto fitted =
      fit_to_published(stack_named("megatron-lm-2022"), {embedded("korthikanti_table5")});
  ASSERT_FALSE(fitted);
  EXPECT_THAT(fitted.error().message, HasSubstr("none of the runs is a calibration row"));
}

std::optional<std::vector<std::vector<PublishedRun>>> published(
    const std::vector<std::string>& names) {
  std::vector<std::vector<PublishedRun>> sets;
  for (const std::string& name : names) {
    const auto text = published_table_text(REGATTA_TESTDATA, name);
    if (!text) return std::nullopt;
    const auto runs = read_published(name, *text);
    EXPECT_TRUE(runs) << runs.error().message;
    if (runs) sets.push_back(*runs);
  }
  return sets;
}

// The scalars are those that the fit found when software_stack.cc was written.
TEST(FitToPublished, FindsTheScalarsOfTheShippedStacks) {
  const auto sets = published({"vtrain_single_a100", "vtrain_multi_a100_part", "bloom_176b_part"});
  if (!sets) GTEST_SKIP() << "the published tables are not beside the project";
  const auto fp16 = fit_to_published(stack_named("megatron-deepspeed-fp16"), *sets);
  ASSERT_TRUE(fp16) << fp16.error().message;
  const cost::Calibration& half = fp16->stack.calibration;
  EXPECT_NEAR(half.matrix_efficiency, 0.8835, 1e-4);
  EXPECT_NEAR(half.tile_depth, 422.0, 0.1);
  EXPECT_NEAR(half.misalignment, 0.086, 1e-3);
  EXPECT_NEAR(half.memory_efficiency, 0.8365, 1e-4);
  EXPECT_NEAR(half.launch.value, 49.55e-6, 1e-8);
  EXPECT_NEAR(half.link_efficiency, 0.8, 1e-4);
  EXPECT_NEAR(half.network_efficiency, 0.9545, 1e-4);
  EXPECT_NEAR(half.collective_latency.value, 141.1e-6, 1e-7);
  const auto bf16 = fit_to_published(stack_named("megatron-deepspeed-bf16"), *sets);
  ASSERT_TRUE(bf16) << bf16.error().message;
  const cost::Calibration& brain = bf16->stack.calibration;
  EXPECT_NEAR(brain.matrix_efficiency, 0.7166, 1e-4);
  EXPECT_NEAR(brain.memory_efficiency, 0.6001, 1e-4);
  EXPECT_NEAR(brain.launch.value, 0.45e-6, 1e-8);
  EXPECT_NEAR(brain.network_efficiency, 0.7909, 1e-4);
}

// Six runs of two models on 8 to 64 devices.
std::vector<PublishedRun> six_runs() {
  const char* const kRuns =
      "model,server,gpus,tp,pp,mbs,gbs,precision,stack,step_s\n"
      "llama3-8b,dgx-h100,8,1,1,1,128,bf16,megatron-core,1\n"
      "llama3-8b,dgx-h100,16,2,1,1,128,bf16,megatron-core,1\n"
      "llama3-8b,dgx-h100,32,4,1,2,256,bf16,megatron-core,1\n"
      "llama3-70b,dgx-h100,64,4,4,1,128,bf16,megatron-core,1\n"
      "llama3-70b,dgx-h100,64,8,2,1,128,bf16,megatron-core,1\n"
      "llama3-70b,dgx-h100,64,8,4,1,256,bf16,megatron-core,1\n";
  const auto runs = read_published("six", kRuns);
  EXPECT_TRUE(runs) << runs.error().message;
  return runs ? *runs : std::vector<PublishedRun>{};
}

TEST(CalibrateStack, ExplainsRunsOfASlowerClusterAndRunsThatItDidNotSee) {
  cost::SoftwareStack truth = stack_named("megatron-core");
  truth.calibration.matrix_efficiency *= 0.85;
  const std::vector<PublishedRun> runs = made_by(truth, six_runs());
  const auto own = calibrate_stack(stack_named("megatron-core"), runs);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_GT(own->before.mape, 0.08);
  EXPECT_LT(own->after.mape, 0.02);
  EXPECT_LT(own->left_out.mape, 0.03);
  EXPECT_THAT(own->calibration.fitted, Contains(StackScalar::kMatrixEfficiency));
  EXPECT_EQ(own->calibration.dense.count, 6);
  EXPECT_EQ(own->calibration.experts.count, 0);
  EXPECT_EQ(own->calibration.device, "h100-sxm");
}

TEST(CalibrateStack, LeavesWhatTheRunsDoNotDetermineAsItWas) {
  const cost::SoftwareStack& stack = stack_named("megatron-core");
  cost::SoftwareStack truth = stack;
  truth.calibration.matrix_efficiency *= 0.85;
  const auto own = calibrate_stack(stack, made_by(truth, six_runs()));
  ASSERT_TRUE(own) << own.error().message;
  // None has experts, and no stage of one server sends to its NICs in vain.
  EXPECT_THAT(own->undetermined, Contains(StackScalar::kExpertsSync));
  EXPECT_THAT(own->undetermined, Contains(StackScalar::kEpOverlap));
  EXPECT_EQ(own->undetermined.size() + own->calibration.fitted.size(), cost::kStackScalarCount);
  const cost::SoftwareStack fitted = cost::calibrated(stack, own->calibration);
  for (const StackScalar scalar : own->undetermined)
    EXPECT_EQ(cost::scalar_of(fitted, scalar), cost::scalar_of(stack, scalar))
        << cost::to_string(scalar);
}

TEST(CalibrateStack, MovesOneScalarAtMostForOneRun) {
  cost::SoftwareStack truth = stack_named("megatron-core");
  truth.calibration.matrix_efficiency *= 0.8;
  std::vector<PublishedRun> runs = made_by(truth, six_runs());
  runs.resize(1);
  const auto own = calibrate_stack(stack_named("megatron-core"), runs);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_LE(own->calibration.fitted.size(), 1U);
  EXPECT_LT(own->after.mape, own->before.mape);
  // Without it there is nothing to calibrate on.
  EXPECT_DOUBLE_EQ(own->left_out.mape, own->before.mape);
}

TEST(CalibrateStack, ChangesNothingWhereThePredictionsAreRight) {
  const cost::SoftwareStack& stack = stack_named("megatron-core");
  const auto own = calibrate_stack(stack, made_by(stack, six_runs()));
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_LT(own->after.mape, 1e-4);
  const cost::SoftwareStack fitted = cost::calibrated(stack, own->calibration);
  EXPECT_NEAR(fitted.calibration.matrix_efficiency, stack.calibration.matrix_efficiency, 1e-3);
  // The range narrows with runs that are as predicted.
  const cost::PredictionErrorRange& range = own->calibration.dense.range;
  EXPECT_LT(range.high / range.low, 0.95 * stack.high / stack.low);
}

// A server that had a fault in one of six runs.
TEST(CalibrateStack, FollowsTheRunsNotTheOneThatStrays) {
  const cost::SoftwareStack& stack = stack_named("megatron-core");
  std::vector<PublishedRun> runs = made_by(stack, six_runs());
  runs[4].measured *= 1.6;
  const auto own = calibrate_stack(stack, runs);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_LT(own->after.median, 0.02);
  EXPECT_GT(own->after.worst, 0.25);
}

// One run says that the cluster is slow, the other that it is fast.
TEST(CalibrateStack, MovesNothingWhereRunsContradictEachOther) {
  const cost::SoftwareStack& stack = stack_named("megatron-core");
  std::vector<PublishedRun> runs = made_by(stack, six_runs());
  runs.resize(2);
  runs[0].measured *= 1.3;
  runs[1].measured /= 1.3;
  const auto own = calibrate_stack(stack, runs);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_TRUE(own->contradicts);
  EXPECT_THAT(own->calibration.fitted, testing::IsEmpty());
  EXPECT_DOUBLE_EQ(own->after.mape, own->before.mape);
  // They show that the stack misses, though.
  EXPECT_GT(own->calibration.dense.range.high, stack.high);
}

TEST(CalibrateStack, RefusesNoRunAndNamesTheRunThatCannotBePredicted) {
  const cost::SoftwareStack& stack = stack_named("megatron-core");
  EXPECT_THAT(calibrate_stack(stack, {}).error().message, HasSubstr("no run to calibrate it on"));
  std::vector<PublishedRun> runs = six_runs();
  runs[2].strategy.tp = 7;
  EXPECT_THAT(calibrate_stack(stack, runs).error().message, HasSubstr("tp 7 does not divide"));
}

}  // namespace
}  // namespace regatta::replay
