#include "regatta/planning/replay/training_log.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/planning/replay/replay.h"

namespace regatta::replay {
namespace {

using testing::HasSubstr;
using workload::Precision;
using workload::Recompute;

std::string log_text(const std::string& name) {
  std::ifstream file(std::filesystem::path(REGATTA_TESTDATA) / "logs" / name);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TrainingLog read(const std::string& name) {
  const auto log = read_training_log(log_text(name), name);
  EXPECT_TRUE(log) << log.error().message;
  return log ? *log : TrainingLog{};
}

LogContext on_h100() {
  return {.server = topo::find_server_preset("dgx-h100")};
}

PublishedRun run_of(const std::string& name, const LogContext& context) {
  const auto run = run_of_log(read(name), context);
  EXPECT_TRUE(run) << run.error().message;
  return run ? *run : PublishedRun{};
}

TEST(TrainingLog, OfMegatronSaysTheWholeRun) {
  const TrainingLog log = read("megatron.log");
  EXPECT_EQ(log.framework, "Megatron-LM");
  EXPECT_EQ(log.steps.lines, 4);
  EXPECT_EQ(log.steps.left_out, 1);
  EXPECT_NEAR(log.steps.median, 16.0, 1e-9);
  EXPECT_LT(log.steps.spread, 0.01);
  const PublishedRun run = run_of("megatron.log", on_h100());
  EXPECT_EQ(run.model.preset, "llama3-70b");
  EXPECT_EQ(to_string(run.strategy),
            to_string(workload::Strategy{.tp = 4,
                                         .pp = 4,
                                         .dp = 4,
                                         .micro_batch = 1,
                                         .schedule = workload::PipelineSchedule::kInterleaved,
                                         .virtual_stages = 4,
                                         .sequence_parallel = true,
                                         .zero = 1}));
  EXPECT_EQ(run.global_batch, 128);
  EXPECT_EQ(run.precision, Precision::kBf16);
  EXPECT_EQ(run.stack, "megatron-core");
  EXPECT_DOUBLE_EQ(run.measured, 16.0);
  EXPECT_TRUE(predict_runs({run}));
}

// 64 samples of 8192 tokens at 6000 tokens a second on each of 64 devices.
TEST(TrainingLog, OfTorchtitanTurnsTokensPerSecondIntoAStep) {
  const PublishedRun run = run_of("torchtitan.log", on_h100());
  EXPECT_EQ(run.model.preset, "llama3-8b");
  EXPECT_EQ(run.strategy.tp, 4);
  EXPECT_EQ(run.strategy.dp, 16);
  EXPECT_EQ(run.strategy.zero, 3);
  EXPECT_EQ(run.strategy.shard_ranks, 8);
  EXPECT_EQ(run.strategy.micro_batch, 2);
  EXPECT_EQ(run.strategy.recompute, Recompute::kSelective);
  EXPECT_EQ(run.stack, "fsdp");
  EXPECT_NEAR(run.measured, 64.0 * 8192 / (6000.0 * 64), 1e-9);
  EXPECT_TRUE(predict_runs({run}));
}

TEST(TrainingLog, OfDeepSpeedNeedsAJobForTheModelAlone) {
  const auto without = run_of_log(read("deepspeed.log"), on_h100());
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().message,
            "deepspeed.log: the log does not say its model; give a job with it: --job JOB");
  LogContext context = on_h100();
  const workload::ModelShape model = workload::find_model_preset("llama2-7b")->model;
  context.model = &model;
  const PublishedRun run = run_of("deepspeed.log", context);
  EXPECT_EQ(run.strategy.dp, 16);
  EXPECT_EQ(run.strategy.zero, 3);
  EXPECT_EQ(run.strategy.micro_batch, 4);
  EXPECT_EQ(run.stack, "deepspeed-zero3-fp16");
  EXPECT_EQ(run.precision, Precision::kBf16);
  EXPECT_NEAR(run.measured, 64 / 16.05, 1e-9);
  EXPECT_TRUE(predict_runs({run}));
}

TEST(TrainingLog, OfNemoReadsItsExperimentAndItsStepTimes) {
  const PublishedRun run = run_of("nemo.log", on_h100());
  EXPECT_EQ(run.model.preset, "llama3-8b");
  EXPECT_EQ(run.model.seq, 8192);
  EXPECT_EQ(run.strategy.world_size(), 16);
  EXPECT_EQ(run.strategy.cp, 2);
  EXPECT_EQ(run.strategy.dp, 4);
  EXPECT_EQ(run.precision, Precision::kFp8);
  EXPECT_EQ(run.stack, "nemo");
  EXPECT_DOUBLE_EQ(run.measured, 5.5);
  EXPECT_TRUE(predict_runs({run}));
}

TEST(TrainingLog, OfMegatronBridgeTakesItsDevicesFromTheCluster) {
  const auto without = run_of_log(read("megatron_bridge.log"), on_h100());
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message,
              HasSubstr("does not say its number of devices; give the cluster of the run"));
  LogContext context = on_h100();
  context.devices = 16;
  const PublishedRun run = run_of("megatron_bridge.log", context);
  EXPECT_EQ(run.model.preset, "qwen3-30b-a3b");
  EXPECT_EQ(run.strategy.ep, 16);
  EXPECT_EQ(run.strategy.etp, 1);
  EXPECT_EQ(run.strategy.dp, 16);
  EXPECT_EQ(run.strategy.zero, 1);
  EXPECT_EQ(run.stack, "megatron-bridge");
  EXPECT_DOUBLE_EQ(run.measured, 12.0);
  EXPECT_TRUE(predict_runs({run}));
}

TEST(TrainingLog, TakesOverFromTheContextWhatIsMissingAlone) {
  LogContext context = on_h100();
  context.strategy.tp = 1;
  context.strategy.recompute = Recompute::kFull;
  context.stack = "nemo";
  const PublishedRun run = run_of("megatron.log", context);
  EXPECT_EQ(run.strategy.tp, 4);
  EXPECT_EQ(run.strategy.recompute, Recompute::kNone);
  EXPECT_EQ(run.stack, "nemo");
}

TEST(TrainingLog, RefusesTheJobOfAnotherModel) {
  LogContext context = on_h100();
  const workload::ModelShape other = workload::find_model_preset("llama3-8b")->model;
  context.model = &other;
  EXPECT_THAT(run_of_log(read("megatron.log"), context).error().message,
              HasSubstr("has other sizes (80 layers of 8192) than that of the job (32 of 4096)"));
}

TEST(TrainingLog, NamesTheMissingThingAndItsRemedy) {
  EXPECT_THAT(run_of_log(read("megatron.log"), {}).error().message,
              HasSubstr("megatron.log: the log does not say its servers; give the cluster"));
  TrainingLog log = read("megatron.log");
  log.settings.micro_batch.reset();
  EXPECT_THAT(run_of_log(log, on_h100()).error().message, HasSubstr("--strategy '{micro_batch"));
  log = read("megatron.log");
  log.settings.devices = 40;
  EXPECT_THAT(run_of_log(log, on_h100()).error().message,
              HasSubstr("its 40 devices are no multiple of tp x pp x cp 16"));
}

TEST(TrainingLog, RefusesTextWithoutAStep) {
  for (const char* const text : {"", "hello\n", "step: 1 loss: 2\n", "train_step_timing in s: x"})
    EXPECT_THAT(read_training_log(text, "a.log").error().message,
                testing::StartsWith("a.log: no step line"));
}

TEST(TrainingLog, KeepsTheOnlyStepOfAShortLog) {
  const auto log = read_training_log(
      " iteration 1/2 | consumed samples: 1 | elapsed time per iteration (ms): 500.0 |", "a.log");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->steps.lines, 1);
  EXPECT_EQ(log->steps.left_out, 0);
  EXPECT_DOUBLE_EQ(log->steps.median, 0.5);
}

TEST(IsTableOfRuns, TellsATableFromALog) {
  EXPECT_TRUE(is_table_of_runs("# mine\nmodel,server,gpus,mbs\nx,y,8,1\n"));
  EXPECT_FALSE(is_table_of_runs(log_text("megatron.log")));
  EXPECT_FALSE(is_table_of_runs(""));
}

}  // namespace
}  // namespace regatta::replay
