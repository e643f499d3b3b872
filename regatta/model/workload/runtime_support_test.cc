#include "regatta/model/workload/runtime_support.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"

namespace regatta::workload {
namespace {

using testing::StartsWith;

Job good_job() {
  Job job;
  job.model = find_model_preset("gpt2-small")->model;
  job.data_text = "text";
  job.steps = 10;
  job.global_batch = 8;
  return job;
}

std::string refusal(const Job& job) {
  const Status status = check_runnable(job);
  return status ? "none" : status.error().message;
}

TEST(CheckRunnable, TakesAPlainGptInThreeForms) {
  Job job = good_job();
  EXPECT_EQ(refusal(job), "none");
  job.precision = Precision::kBf16;
  job.strategy.tp = 2;
  job.strategy.pp = 3;
  job.strategy.dp = 4;
  job.strategy.recompute = Recompute::kFull;
  job.strategy.schedule = PipelineSchedule::k1F1B;
  job.strategy.zero = 0;
  EXPECT_EQ(refusal(job), "none");
}

TEST(CheckRunnable, SaysInOneSentenceWhatTheRuntimeDoesNotExecute) {
  Job job = good_job();
  job.strategy.zero = 3;
  EXPECT_EQ(refusal(job),
            "zero 3 is not yet executed by the training runtime; use zero 0, or plan for a cluster "
            "of GPUs");
  EXPECT_EQ(exit_status(check_runnable(job).error()), 2);
}

TEST(CheckRunnable, NamesEveryKeyOfAStrategy) {
  const struct {
    Strategy strategy;
    const char* start;
  } cases[] = {
      {{.cp = 2}, "cp 2 is not yet"},
      {{.ep = 2}, "ep 2 is not yet"},
      {{.schedule = PipelineSchedule::kZbH1}, "schedule zb-h1 is not yet"},
      {{.schedule = PipelineSchedule::kInterleaved, .virtual_stages = 2},
       "schedule interleaved is not"},
      {{.virtual_stages = 2}, "virtual_stages 2 is not yet"},
      {{.sequence_parallel = true}, "sequence_parallel true is not yet"},
      {{.zero = 1}, "zero 1 is not yet"},
      {{.offload = Offload::kBoth}, "offload both is not yet"},
      {{.recompute = Recompute::kSelective}, "recompute selective is not yet"},
      {{.tp = 5}, "tp 5 does not divide vocab 50304; choose a divisor of 50304"},
  };
  for (const auto& one : cases) {
    const Status status = check_runnable(good_job().model, one.strategy, Precision::kFp32);
    ASSERT_FALSE(status) << one.start;
    EXPECT_THAT(status.error().message, StartsWith(one.start));
  }
}

TEST(CheckRunnable, NamesEveryKeyOfAModel) {
  const auto refused = [](auto change) {
    Job job = good_job();
    change(job.model);
    const std::string message = refusal(job);
    return message.substr(0, message.find(" is not yet"));
  };
  EXPECT_EQ(refused([](ModelShape& m) { m.kind = ModelKind::kEncoder; }), "kind encoder");
  EXPECT_EQ(refused([](ModelShape& m) { m.experts = {.count = 8, .top_k = 2, .ffn_hidden = 64}; }),
            "kind moe");
  EXPECT_EQ(refused([](ModelShape& m) { m.latent.kv_rank = 64; }), "attention mla");
  EXPECT_EQ(refused([](ModelShape& m) { m.kv_heads = 4; }), "kv_heads 4");
  EXPECT_EQ(refused([](ModelShape& m) { m.head_dim = 128; }), "head_dim 128");
  EXPECT_EQ(refused([](ModelShape& m) { m.norm_eps = 1e-6; }), "norm_eps 1e-06");
  EXPECT_EQ(refused([](ModelShape& m) { m.activation = Activation::kSwiglu; }),
            "activation swiglu");
  EXPECT_EQ(refused([](ModelShape& m) { m.positions = PositionEncoding::kRotary; }),
            "positions rotary");
  EXPECT_EQ(refused([](ModelShape& m) { m.norm = NormKind::kRmsNorm; }), "norm rmsnorm");
  EXPECT_EQ(refused([](ModelShape& m) { m.linear_biases = false; }), "linear_biases false");
}

TEST(CheckRunnable, TakesEveryPresetThatIsAPlainGptAndNoOther) {
  for (const std::string& name : model_preset_names()) {
    const ModelShape& model = find_model_preset(name)->model;
    EXPECT_EQ(find_unsupported_feature(model, {}, Precision::kFp32).what.empty(),
              is_plain_gpt(model))
        << name;
  }
}

TEST(CheckRunnable, SaysWhatIsMissingToTrain) {
  Job job = good_job();
  job.data_text = "";
  EXPECT_EQ(refusal(job), "data is missing; add data: {text: FILE} to the job");
  job = good_job();
  job.steps = 0;
  EXPECT_EQ(refusal(job), "steps is missing; add steps: 100 to the job, or give --steps 100");
  job = good_job();
  job.model.vocab = 128;
  EXPECT_EQ(refusal(job), "vocab 128 is too small; the tokens are bytes, so write at least 256");
  job = good_job();
  job.precision = Precision::kFp8;
  EXPECT_THAT(refusal(job), StartsWith("precision fp8 is not yet executed"));
}

}  // namespace
}  // namespace regatta::workload
