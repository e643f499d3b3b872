#include "regatta/runtime/train/internal/trainer.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/train/test_run.h"

namespace regatta::train {
namespace {

using test::losses_of;
using test::run_job;
using test::tiny_job;
using workload::Recompute;
using workload::Strategy;

const std::vector<double>& reference_losses(bool tied) {
  static const std::vector<double> untied_losses = losses_of(run_job(tiny_job(), {}));
  static const std::vector<double> tied_losses = [] {
    workload::Job job = tiny_job();
    job.model.tied_embeddings = true;
    return losses_of(run_job(job, {}));
  }();
  return tied ? tied_losses : untied_losses;
}

struct Form {
  Strategy strategy;
  bool tied = false;
};

std::string name_of(const testing::TestParamInfo<Form>& info) {
  const Strategy& s = info.param.strategy;
  std::string name = "tp" + std::to_string(s.tp) + "pp" + std::to_string(s.pp) + "dp" +
                     std::to_string(s.dp) + "mb" + std::to_string(s.micro_batch);
  if (s.recompute == Recompute::kFull) name += "Recompute";
  if (!s.overlap) name += "NoOverlap";
  if (!s.stage_layers.empty()) name += "Layers";
  for (const int layers : s.stage_layers)
    name += std::to_string(layers);
  return name + (info.param.tied ? "Tied" : "");
}

class ParallelForm : public testing::TestWithParam<Form> {};

TEST_P(ParallelForm, TrainsLikeOneProcess) {
  const Form& form = GetParam();
  workload::Job job = tiny_job();
  job.model.tied_embeddings = form.tied;
  const std::vector<double> losses = losses_of(run_job(job, form.strategy));
  const std::vector<double>& reference = reference_losses(form.tied);
  ASSERT_EQ(losses.size(), reference.size());
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step], reference[step], 1e-4 * reference[step]) << "step " << step;
  EXPECT_LT(losses.back(), 0.7 * losses.front());
}

constexpr auto kFull = Recompute::kFull;
INSTANTIATE_TEST_SUITE_P(
    All, ParallelForm,
    testing::Values(
        Form{{.micro_batch = 2}}, Form{{.micro_batch = 8}}, Form{{.tp = 2}}, Form{{.tp = 4}},
        Form{{.tp = 2, .micro_batch = 2, .recompute = kFull}}, Form{{.pp = 2}},
        Form{{.pp = 2, .micro_batch = 4}}, Form{{.pp = 4}}, Form{{.pp = 4, .micro_batch = 2}},
        Form{{.pp = 4, .recompute = kFull}}, Form{{.dp = 2}}, Form{{.dp = 4, .micro_batch = 2}},
        Form{{.dp = 2, .overlap = false}}, Form{{.tp = 2, .pp = 2}},
        Form{{.tp = 2, .dp = 2, .micro_batch = 2}}, Form{{.pp = 2, .dp = 2}},
        Form{{.tp = 2, .pp = 2, .dp = 2}},
        Form{{.tp = 2, .pp = 2, .dp = 2, .micro_batch = 2, .recompute = kFull}},
        Form{{.tp = 2}, true}, Form{{.pp = 2}, true}, Form{{.pp = 4, .micro_batch = 2}, true},
        Form{{.tp = 2, .pp = 2, .dp = 2}, true}, Form{{.pp = 2, .stage_layers = {1, 3}}},
        Form{{.pp = 3, .dp = 2, .stage_layers = {1, 2, 1}}},
        Form{{.tp = 2, .pp = 2, .recompute = kFull, .stage_layers = {3, 1}}, true}),
    name_of);

TEST(Trainer, GivesTheSameBitsWithRecomputation) {
  Strategy strategy;
  const auto without = losses_of(run_job(tiny_job(), strategy));
  strategy.recompute = Recompute::kFull;
  EXPECT_EQ(losses_of(run_job(tiny_job(), strategy)), without);
}

TEST(Trainer, GivesTheSameBitsWhenRunAgain) {
  const Strategy strategy{.tp = 2, .pp = 2};
  const auto once = losses_of(run_job(tiny_job(), strategy));
  EXPECT_EQ(losses_of(run_job(tiny_job(), strategy)), once);
}

TEST(Trainer, LearnsInBf16CloseToFp32) {
  workload::Job job = tiny_job();
  job.precision = workload::Precision::kBf16;
  for (const Strategy& strategy : {Strategy{}, Strategy{.tp = 2, .pp = 2}, Strategy{.dp = 2}}) {
    const auto losses = losses_of(run_job(job, strategy));
    ASSERT_EQ(losses.size(), reference_losses(false).size());
    EXPECT_LT(losses.back(), 0.7 * losses.front());
    EXPECT_NEAR(losses.back(), reference_losses(false).back(), 0.05 * losses.back());
  }
}

TEST(Trainer, ClipsTheGradientByItsGlobalNorm) {
  workload::Job job = tiny_job();
  job.steps = 3;
  job.optimizer.clip_norm = 1e-3;
  const auto alone = run_job(job, {});
  const auto spread = run_job(job, {.tp = 2, .pp = 2, .dp = 2});
  losses_of(alone);
  losses_of(spread);
  for (std::size_t step = 0; step < 3; ++step) {
    const double norm = alone[0].steps[step].gradient_norm;
    EXPECT_GT(norm, 1e-3);
    for (const auto& rank : spread)
      EXPECT_NEAR(rank.steps[step].gradient_norm, norm, 1e-4 * norm);
  }
  job.optimizer.clip_norm = 0;
  EXPECT_EQ(run_job(job, {})[0].steps[0].gradient_norm, 0);
}

TEST(Trainer, CutsEveryStepIntoPhasesWithoutRest) {
  workload::Job job = tiny_job();
  job.steps = 3;
  const auto outcomes = run_job(job, {.tp = 2, .pp = 2, .recompute = kFull}, {.trace_to_step = 2});
  losses_of(outcomes);
  for (const auto& outcome : outcomes) {
    for (const StepReport& step : outcome.steps) {
      EXPECT_NEAR(step.times.phases.total().value, step.times.time.value, 1e-9);
      EXPECT_EQ(step.times.spans.empty(), step.step >= 2);
      Seconds drawn;
      for (const workload::Span& span : step.times.spans) {
        if (!span.background) drawn += span.duration;
      }
      if (step.step < 2) {
        EXPECT_NEAR(drawn.value, step.times.time.value, 1e-6);
      }
    }
    const workload::PhaseTimes& phases = outcome.steps[1].times.phases;
    using workload::Phase;
    for (const Phase phase :
         {Phase::kForward, Phase::kBackward, Phase::kRecompute, Phase::kTpComm, Phase::kOptimizer})
      EXPECT_GT(phases[phase].value, 0) << to_string(phase);
  }
}

// Bits of every loss after the step at which it was resumed.
void expect_resumes_bit_equal(const Strategy& strategy, workload::Job job) {
  const os::TempFolder folder = test::test_folder();
  job.checkpoint.folder = folder.path();
  job.checkpoint.every = 15;
  const auto whole = losses_of(run_job(job, strategy));
  ASSERT_EQ(whole.size(), 30U);
  std::filesystem::remove_all(folder.path() + "/step-00000030");
  const auto resumed = run_job(job, strategy, {.resume = true});
  const auto rest = losses_of(resumed);
  ASSERT_EQ(rest.size(), 15U);
  EXPECT_EQ(resumed[0].steps[0].step, 15);
  EXPECT_EQ(rest, std::vector<double>(whole.begin() + 15, whole.end()));
}

TEST(Trainer, ResumesBitEqualAlone) {
  expect_resumes_bit_equal({}, tiny_job());
}

TEST(Trainer, ResumesBitEqualInEveryDimension) {
  expect_resumes_bit_equal({.tp = 2, .pp = 2, .dp = 2}, tiny_job());
}

TEST(Trainer, ResumesBitEqualWithUnevenStages) {
  expect_resumes_bit_equal({.pp = 2, .dp = 2, .stage_layers = {1, 3}}, tiny_job());
}

TEST(Trainer, ResumesBitEqualInBf16WithTiedEmbeddings) {
  workload::Job job = tiny_job();
  job.precision = workload::Precision::kBf16;
  job.model.tied_embeddings = true;
  expect_resumes_bit_equal({.pp = 2, .micro_batch = 2, .recompute = kFull}, job);
}

// With compression the residuals belong to the state, too.
TEST(Trainer, ResumesBitEqualWithCompressedGradients) {
  using workload::GradientCompression;
  for (const GradientCompression kind :
       {GradientCompression::kInt8, GradientCompression::kTopK, GradientCompression::kPowerSgd})
    expect_resumes_bit_equal({.dp = 4, .compression = kind}, tiny_job());
  expect_resumes_bit_equal({.tp = 2, .pp = 2, .dp = 2, .compression = GradientCompression::kBf16},
                           tiny_job());
}

TEST(Trainer, ResumesCompressedWithAnotherNumberOfReplicas) {
  const os::TempFolder folder = test::test_folder();
  workload::Job job = tiny_job();
  job.checkpoint.folder = folder.path();
  job.steps = 15;
  losses_of(run_job(job, {.dp = 4, .compression = workload::GradientCompression::kInt8}));
  job.steps = 30;
  const auto rest = losses_of(run_job(
      job, {.dp = 2, .compression = workload::GradientCompression::kInt8}, {.resume = true}));
  ASSERT_EQ(rest.size(), 15U);
  EXPECT_NEAR(rest.back(), reference_losses(false).back(), 0.02 * rest.back());
}

// Tolerance: the ends of the three seeds, 2.25 to 2.37, lie 5 % apart; the code of single elements
// may move an end by a tenth of that. top_k and power_sgd send 1 % and a thin matrix: after 30
// steps they lag far behind (3.4 and 3.7), but learn.
TEST(Trainer, LearnsWithCompressedGradientsAsWithout) {
  using workload::GradientCompression;
  for (const std::uint64_t seed : {7U, 8U, 9U}) {
    workload::Job job = tiny_job();
    job.seed = seed;
    const double plain = losses_of(run_job(job, {.dp = 4})).back();
    for (const GradientCompression kind : workload::kGradientCompressions) {
      const auto losses = losses_of(run_job(job, {.dp = 4, .compression = kind}));
      const bool is_rough =
          kind == GradientCompression::kTopK || kind == GradientCompression::kPowerSgd;
      if (is_rough) {
        EXPECT_LT(losses.back(), 0.75 * losses.front()) << to_string(kind) << ", seed " << seed;
      } else {
        EXPECT_NEAR(losses.back(), plain, 0.005 * plain) << to_string(kind) << ", seed " << seed;
      }
    }
  }
}

TEST(Trainer, RefusesACheckpointOfAnotherPlan) {
  const os::TempFolder folder = test::test_folder();
  workload::Job job = tiny_job();
  job.steps = 2;
  job.checkpoint.folder = folder.path();
  losses_of(run_job(job, {.tp = 2}));
  const auto outcomes = run_job(job, {.pp = 2}, {.resume = true});
  ASSERT_FALSE(outcomes[0].status);
  EXPECT_EQ(outcomes[0].status.error().code, Code::kInvalidInput);
  EXPECT_EQ(outcomes[0].status.error().message,
            "checkpoint " + folder.path() +
                "/step-00000002/manifest.json: saved with tp 2, not 1; resume with that one or "
                "start without resume");
}

TEST(Trainer, NamesAnEmptyCheckpointFolder) {
  const os::TempFolder folder = test::test_folder();
  workload::Job job = tiny_job();
  job.checkpoint.folder = folder.path();
  const auto outcomes = run_job(job, {}, {.resume = true});
  ASSERT_FALSE(outcomes[0].status);
  EXPECT_EQ(outcomes[0].status.error().message,
            "checkpoint folder " + folder.path() +
                ": holds no complete checkpoint; start without resume");
  job.checkpoint.folder.clear();
  EXPECT_THAT(run_job(job, {}, {.resume = true})[0].status.error().message,
              testing::HasSubstr("the job names no checkpoint.folder"));
}

// Every step multiplies the weights by about 1 - lr.
workload::Job diverging_job() {
  workload::Job job = tiny_job();
  job.optimizer.lr = 1000;
  job.optimizer.weight_decay = 1;
  return job;
}

TEST(Trainer, EndsAtTheStepWhoseLossIsNotFinite) {
  workload::Job job = diverging_job();
  job.optimizer.clip_norm = 0;
  for (const Strategy& strategy : {Strategy{}, Strategy{.tp = 2, .pp = 2, .dp = 2}}) {
    for (const auto& outcome : run_job(job, strategy)) {
      for (const StepReport& step : outcome.steps)
        EXPECT_TRUE(std::isfinite(step.loss)) << step.step;
      ASSERT_FALSE(outcome.status);
      EXPECT_EQ(outcome.status.error().code, Code::kConflict);
      const std::string step = "step " + std::to_string(outcome.steps.size() + 1) + "/30";
      EXPECT_THAT(outcome.status.error().message,
                  testing::MatchesRegex(step + ": the loss is not finite .(nan|inf).; lower "
                                               "optimizer.lr or set optimizer.clip_norm"));
    }
  }
}

TEST(Trainer, EndsBeforeAGradientThatIsNotFiniteIsApplied) {
  workload::Job job = diverging_job();
  job.optimizer.lr = 10;  // slower, so that the squares of the gradient leave fp32 before the loss
  const auto outcomes = run_job(job, {.dp = 2});
  for (const auto& outcome : outcomes) {
    ASSERT_FALSE(outcome.status);
    EXPECT_THAT(outcome.status.error().message,
                testing::MatchesRegex("step [0-9]+/30: the gradient norm is not finite .(nan|inf)."
                                      "; lower optimizer.lr"));
    for (const StepReport& step : outcome.steps)
      EXPECT_TRUE(std::isfinite(step.gradient_norm)) << step.step;
  }
}

TEST(Trainer, NamesTheCheckpointThatHoldsADivergedModel) {
  const os::TempFolder folder = test::test_folder();
  workload::Job job = diverging_job();
  job.checkpoint.folder = folder.path();
  job.checkpoint.every = 1;
  ASSERT_FALSE(run_job(job, {})[0].status);
  const auto resumed = run_job(job, {}, {.resume = true});
  ASSERT_FALSE(resumed[0].status);
  EXPECT_TRUE(resumed[0].steps.empty());
  EXPECT_THAT(resumed[0].status.error().message,
              testing::HasSubstr("; remove the newest checkpoint in " + folder.path()));
}

TEST(Trainer, NamesTheDataThatIsMissing) {
  workload::Job job = tiny_job();
  job.data_text = "/no/such/text";
  const auto outcomes = run_job(job, {});
  ASSERT_FALSE(outcomes[0].status);
  EXPECT_EQ(outcomes[0].status.error().message,
            "data /no/such/text: no such file or folder; correct data.text in the job");
}

TEST(Trainer, RefusesAStrategyThatDoesNotDivideTheJob) {
  const auto outcomes = run_job(tiny_job(), {.micro_batch = 3});
  ASSERT_FALSE(outcomes[0].status);
  EXPECT_EQ(outcomes[0].status.error().code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::train
