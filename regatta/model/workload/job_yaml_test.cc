#include <cstddef>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kSmall = R"(name: small
model: {kind: gpt, layers: 8, hidden: 384, heads: 8, ffn_hidden: 1536, seq: 128, vocab: 256}
data: {text: corpus}
global_batch: 16
precision: fp32
optimizer: {kind: adam, lr: 3e-4}
steps: 30
strategy: auto
placement: auto
)";

TEST(ParseJob, ReadsTheExample) {
  const auto job = parse_job(kSmall, "job.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->name, "small");
  EXPECT_EQ(job->model.layers, 8);
  EXPECT_EQ(job->model.ffn_hidden, 1536);
  EXPECT_EQ(job->data_text, "corpus");
  EXPECT_EQ(job->global_batch, 16);
  EXPECT_DOUBLE_EQ(job->optimizer.lr, 3e-4);
  EXPECT_EQ(job->steps, 30);
  EXPECT_EQ(job->seed, 1U);
  EXPECT_FALSE(job->strategy.tp.has_value());
  EXPECT_TRUE(job->placement.empty());
  EXPECT_TRUE(job->checkpoint.folder.empty());
}

TEST(ParseJob, ReadsEveryKeyThatIsAvailable) {
  const auto job = parse_job(R"(name: all
model: {layers: 2, hidden: 64, heads: 4, kv_heads: 4, head_dim: 16, activation: gelu, seq: 32,
        vocab: 256, tied_embeddings: true, attention: mha}
data: {text: /corpus}
global_batch: 8
precision: bf16
optimizer: {lr: 1e-3, beta1: 0.8, beta2: 0.99, eps: 1e-6, weight_decay: 0.1, clip_norm: 0}
steps: 5
seed: 18
strategy: {tp: 2, pp: auto, dp: 1, cp: 1, ep: 1, micro_batch: 2, schedule: 1f1b, zero: 0,
           virtual_stages: 1, sequence_parallel: false, recompute: full, compression: int8,
           overlap: false}
placement: [s0/0, s0/1, s1/0, s1/1]
checkpoint: {folder: ckpt, every: 2}
)",
                             "job.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->model.ffn_hidden, 256);
  EXPECT_TRUE(job->model.tied_embeddings);
  EXPECT_EQ(job->precision, Precision::kBf16);
  EXPECT_DOUBLE_EQ(job->optimizer.beta2, 0.99);
  EXPECT_DOUBLE_EQ(job->optimizer.clip_norm, 0);
  EXPECT_EQ(job->seed, 18U);
  EXPECT_EQ(job->strategy.tp, 2);
  EXPECT_EQ(job->strategy.pp, std::nullopt);
  EXPECT_EQ(job->strategy.recompute, Recompute::kFull);
  EXPECT_EQ(job->strategy.overlap, false);
  EXPECT_EQ(job->strategy.compression, GradientCompression::kInt8);
  EXPECT_THAT(job->placement, ElementsAre("s0/0", "s0/1", "s1/0", "s1/1"));
  EXPECT_EQ(job->checkpoint.every, 2);
}

TEST(ParseJob, TakesPublishedModelsAndOverridesThem) {
  const auto job = parse_job(
      "name: x\nmodel: {preset: gpt3-175b, layers: 4, seq: 1024}\ndata: {text: t}\n"
      "global_batch: 8\nsteps: 1\n",
      "job.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->model.hidden, 12288);
  EXPECT_EQ(job->model.layers, 4);
  EXPECT_EQ(job->model.seq, 1024);
  EXPECT_EQ(job->model.ffn_hidden, 4 * 12288);
}

TEST(ParseJob, NamesFileLineKeyAndRemedyOfEveryBrokenFile) {
  const auto files = broken_files(REGATTA_TESTDATA);
  EXPECT_GE(files.size(), 10U);
  for (const BrokenFile& file : files) {
    const auto job = parse_job(file.text, file.name);
    ASSERT_FALSE(job.has_value()) << file.name;
    EXPECT_EQ(job.error().message, file.expected);
    EXPECT_EQ(exit_status(job.error()), 2);
  }
}

TEST(ParseJob, SaysWhatIsNotYetAvailable) {
  const std::string text = std::string(kSmall).replace(std::string(kSmall).find("adam"), 4, "sgd");
  const auto job = parse_job(text, "job.yaml");
  ASSERT_FALSE(job.has_value());
  EXPECT_EQ(job.error().code, Code::kUnsupported);
  EXPECT_THAT(job.error().message, HasSubstr("not yet available"));
}

TEST(ParseJob, NeedsForAPlanOnlyTheModelAndTheBatch) {
  const auto job = parse_job("name: x\nmodel: {preset: llama3-8b}\nglobal_batch: 8\n", "job.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->data_text, "");
  EXPECT_EQ(job->steps, 0);
}

TEST(ParseJob, ReadsEveryPrecision) {
  for (const Precision precision : kPrecisions) {
    const std::string text =
        "name: x\nmodel: {preset: llama3-8b}\nglobal_batch: 8\nprecision: " + to_string(precision);
    const auto job = parse_job(text, "job.yaml");
    ASSERT_TRUE(job.has_value()) << job.error().message;
    EXPECT_EQ(job->precision, precision);
  }
}

TEST(ParseJob, AsksForWhatTheFileOfTheModelDoesNotTell) {
  const auto load = [](const std::string&) -> Result<ModelShape> {
    ModelShape model;
    model.layers = 2;
    model.hidden = 64;
    model.heads = 4;
    model.ffn_hidden = 100;
    model.vocab = 300;
    return model;
  };
  const std::string start = "name: x\nglobal_batch: 8\nmodel: {from: model.onnx";
  EXPECT_EQ(parse_job(start + "}\n", "job.yaml", load).error().message,
            "job.yaml:3: model.seq: missing; add a whole number from 1 to 10000000");
  const auto job = parse_job(start + ", seq: 32}\n", "job.yaml", load);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->model.ffn_hidden, 100);
}

TEST(ParseJob, FindsTheFileOfTheModelBesideTheJob) {
  std::string asked;
  const auto load = [&](const std::string& path) -> Result<ModelShape> {
    asked = path;
    return Error{Code::kInvalidInput, "no"};
  };
  const char* text = "name: x\nmodel: {from: config.json}\nglobal_batch: 8\n";
  EXPECT_FALSE(parse_job(text, "jobs/job.yaml", load).has_value());
  EXPECT_EQ(asked, "jobs/config.json");
}

TEST(ParseJob, AcceptsTheExamplesAndTheDocumentedFiles) {
  const auto texts = example_files(REGATTA_TESTDATA, "job");
  EXPECT_GE(texts.size(), 3U);
  for (const std::string& text : texts) {
    const auto read = parse_job(text, "file.yaml");
    EXPECT_TRUE(read.has_value()) << read.error().message << "\n" << text;
  }
}

TEST(ParseJob, SurvivesEveryTruncation) {
  const std::string text = kSmall;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto job = parse_job(text.substr(0, length), "cut.yaml");
    if (!job) {
      EXPECT_EQ(job.error().message.rfind("cut.yaml:", 0), 0U) << job.error().message;
    }
  }
}

TEST(ParseStrategy, ReadsTheFlag) {
  const auto request = parse_strategy("{tp: 2, pp: 4, recompute: none}", "--strategy");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->tp, 2);
  EXPECT_EQ(request->pp, 4);
  EXPECT_EQ(request->recompute, Recompute::kNone);
  EXPECT_TRUE(parse_strategy("auto", "--strategy").has_value());
  EXPECT_TRUE(parse_strategy("{\"tp\": 2}", "--strategy").has_value());
  EXPECT_EQ(parse_strategy("tp=2", "--strategy").error().message,
            "--strategy: 'tp=2' is no map; write it like '{tp: 2, pp: 4}'");
  EXPECT_EQ(parse_strategy("{tp:3}", "--strategy").error().message,
            "--strategy:1: tp:3: no space follows the colon; write 'tp: 3'");
  EXPECT_EQ(
      parse_strategy("{tensor: 2}", "--strategy").error().message,
      "--strategy:1: tensor: unknown key; the keys here are tp, pp, dp, cp, ep, etp, micro_batch, "
      "schedule, virtual_stages, sequence_parallel, zero, shard_ranks, context, offload, "
      "recompute, compression, overlap, stage_layers, constraints");
}

TEST(ResolvePath, IsRelativeToTheJobFile) {
  EXPECT_EQ(resolve_path("jobs/a.yaml", "data"), "jobs/data");
  EXPECT_EQ(resolve_path("a.yaml", "data"), "data");
  EXPECT_EQ(resolve_path("jobs/a.yaml", "/data"), "/data");
  EXPECT_EQ(resolve_path("jobs/a.yaml", ""), "");
}

}  // namespace
}  // namespace regatta::workload
