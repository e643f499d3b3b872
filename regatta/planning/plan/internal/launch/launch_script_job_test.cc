// The values that the scripts of all launchers take from the job beside the strategy.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/launch.h"

namespace regatta::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr workload::Optimizer kOptimizer{
    .lr = 1e-4, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-6, .weight_decay = 0.2, .clip_norm = 2};

std::string script(Launcher launcher, const workload::ModelShape& model,
                   const workload::Optimizer& optimizer = kOptimizer, int steps = 500) {
  const workload::Strategy strategy{.dp = 8, .zero = 3};
  const workload::Strategy megatron{.dp = 8, .zero = 1};
  const auto text =
      launch_arguments(launcher, {.model = model,
                                  .strategy = launcher == Launcher::kMegatron ? megatron : strategy,
                                  .global_batch = 8,
                                  .devices_per_server = 8,
                                  .optimizer = optimizer,
                                  .steps = steps});
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : "";
}

const workload::ModelShape& preset(const char* name) {
  return workload::find_model_preset(name)->model;
}

TEST(LaunchArguments, HaveTheOptimizerAndTheStepsOfTheJob) {
  const workload::ModelShape& model = preset("llama2-7b");
  EXPECT_THAT(script(Launcher::kMegatron, model),
              AllOf(HasSubstr("--lr 0.0001\n"), HasSubstr("--min-lr 1e-05\n"),
                    HasSubstr("--adam-beta1 0.8\n"), HasSubstr("--adam-beta2 0.9\n"),
                    HasSubstr("--adam-eps 1e-06\n"), HasSubstr("--weight-decay 0.2\n"),
                    HasSubstr("--clip-grad 2\n"), HasSubstr("--train-iters 500\n"),
                    HasSubstr("--lr-warmup-iters 50\n")));
  EXPECT_THAT(
      script(Launcher::kTorchtitan, model),
      AllOf(HasSubstr("--optimizer.lr 0.0001\n"), HasSubstr("--optimizer.beta1 0.8\n"),
            HasSubstr("--optimizer.beta2 0.9\n"), HasSubstr("--optimizer.eps 1e-06\n"),
            HasSubstr("--optimizer.weight_decay 0.2\n"), HasSubstr("--training.max_norm 2\n"),
            HasSubstr("--training.steps 500\n"), HasSubstr("--lr_scheduler.warmup_steps 50\n")));
  EXPECT_THAT(script(Launcher::kDeepspeed, model),
              AllOf(HasSubstr("\"lr\": 0.0001,"), HasSubstr("\"eps\": 1e-06,"),
                    HasSubstr("\"weight_decay\": 0.2"), HasSubstr("\"gradient_clipping\": 2.0"),
                    HasSubstr("\"total_num_steps\": 500,"), HasSubstr("\"warmup_num_steps\": 50,"),
                    HasSubstr("        0.8,\n        0.9\n")));
}

TEST(LaunchArguments, SwitchClippingOffWhereTheJobDoes) {
  workload::Optimizer optimizer = kOptimizer;
  optimizer.clip_norm = 0;
  const workload::ModelShape& model = preset("llama2-7b");
  EXPECT_THAT(script(Launcher::kMegatron, model, optimizer), HasSubstr("--clip-grad 0\n"));
  EXPECT_THAT(script(Launcher::kTorchtitan, model, optimizer),
              HasSubstr("--training.max_norm inf\n"));
  EXPECT_THAT(script(Launcher::kDeepspeed, model, optimizer),
              HasSubstr("\"gradient_clipping\": 0.0"));
}

TEST(LaunchArguments, WarmUpForAFewStepsWhereThereAreFew) {
  const workload::ModelShape& model = preset("llama2-7b");
  EXPECT_THAT(script(Launcher::kMegatron, model, kOptimizer, 5),
              HasSubstr("--lr-warmup-iters 0\n"));
  EXPECT_THAT(script(Launcher::kMegatron, model, kOptimizer, 100'000),
              HasSubstr("--lr-warmup-iters 100\n"));
}

TEST(LaunchArguments, HaveTheAnglesAndTheNormsOfTheModel) {
  const std::string llama = script(Launcher::kMegatron, preset("llama3-8b"));
  EXPECT_THAT(llama, AllOf(HasSubstr("--rotary-base 500000\n"), HasSubstr("--rotary-percent 1.0\n"),
                           HasSubstr("--norm-epsilon 1e-05\n")));
  EXPECT_THAT(script(Launcher::kMegatron, preset("qwen2-7b")),
              AllOf(HasSubstr("--rotary-base 1000000\n"), HasSubstr("--norm-epsilon 1e-06\n")));
  EXPECT_THAT(script(Launcher::kMegatron, preset("gpt2-small")),
              AllOf(Not(HasSubstr("--rotary")), HasSubstr("--norm-epsilon 1e-05\n")));
  workload::ModelShape own = preset("llama3-8b");
  EXPECT_THAT(script(Launcher::kTorchtitan, own), Not(HasSubstr("rope_theta")));  // a known flavor
  own.rope_theta = 20000;
  EXPECT_THAT(script(Launcher::kTorchtitan, own), HasSubstr("rope_theta=20000, norm_eps=1e-05"));
  own.rope_theta = 20000.5;
  const workload::Strategy strategy;
  EXPECT_EQ(
      launch_arguments(Launcher::kMegatron,
                       {.model = own, .strategy = strategy, .global_batch = 1, .optimizer = {}})
          .error()
          .message,
      "megatron: rope_theta 20000.5 is no whole number; round it");
}

}  // namespace
}  // namespace regatta::plan
