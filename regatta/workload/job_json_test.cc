#include "regatta/workload/job_json.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace regatta::workload {
namespace {

using nlohmann::json;

Job full_job() {
  Job job;
  job.name = "all";
  job.model = {.kind = ModelKind::kGpt,
               .preset = "gpt2-small",
               .layers = 12,
               .hidden = 768,
               .heads = 12,
               .ffn_hidden = 3072,
               .seq = 1024,
               .vocab = 50304,
               .activation = Activation::kGelu,
               .tied_embeddings = true};
  job.data_text = "/corpus \"quoted\"";
  job.global_batch = 64;
  job.precision = Precision::kBf16;
  job.optimizer.lr = 0.1 + 0.2;  // no short decimal
  job.steps = 100;
  job.seed = std::numeric_limits<std::uint64_t>::max();
  job.strategy.tp = 4;
  job.strategy.recompute = Recompute::kFull;
  job.strategy.overlap = false;
  job.strategy.compression = Compression::kPowerSgd;
  job.placement = {"s0/0", "s0/1"};
  job.checkpoint = {.folder = "ckpt", .every = 10};
  return job;
}

TEST(JobJson, GivesTheJobBack) {
  const Job job = full_job();
  const std::string text = job_to_json(job).dump();
  const auto read = job_from_json(json::parse(text));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(job_to_json(*read).dump(), text);
  EXPECT_EQ(read->optimizer.lr, job.optimizer.lr);
  EXPECT_EQ(read->seed, job.seed);
  EXPECT_EQ(read->strategy.tp, 4);
  EXPECT_FALSE(read->strategy.pp.has_value());
  EXPECT_EQ(read->strategy.overlap, false);
  EXPECT_EQ(read->strategy.compression, Compression::kPowerSgd);
  EXPECT_EQ(read->placement, job.placement);
}

TEST(JobJson, NamesTheKeyThatIsWrong) {
  json object = job_to_json(full_job());
  object["model"].erase("heads");
  EXPECT_EQ(job_from_json(object).error().message, "model: \"heads\" is missing");
  object = job_to_json(full_job());
  object["steps"] = "ten";
  EXPECT_EQ(job_from_json(object).error().message, "job: \"steps\" is not a whole number");
  object["steps"] = 1e18;
  EXPECT_FALSE(job_from_json(object).has_value());
  object["steps"] = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(job_from_json(object).error().message, "job: \"steps\" is out of range");
  EXPECT_EQ(job_from_json(json::array()).error().message, "job: not an object");
  object = job_to_json(full_job());
  object["placement"] = {1, 2};
  EXPECT_EQ(job_from_json(object).error().message, "placement: not a list of texts");
  object = job_to_json(full_job());
  object["precision"] = "fp64";
  EXPECT_EQ(job_from_json(object).error().message, "job: \"precision\" is not fp32 or bf16");
}

TEST(StrategyJson, GivesTheStrategyBack) {
  const Strategy strategy{.tp = 2,
                          .pp = 3,
                          .dp = 4,
                          .micro_batch = 5,
                          .recompute = Recompute::kFull,
                          .overlap = false,
                          .compression = Compression::kAutomatic};
  EXPECT_EQ(*strategy_from_json(strategy_to_json(strategy)), strategy);
  json object = strategy_to_json(strategy);
  object["tp"] = 0;
  EXPECT_FALSE(strategy_from_json(object).has_value());
}

TEST(TimelineJson, GivesTheSpansBack) {
  const Timeline timeline = {
      {Rank{0}, Phase::kForward, 3, 1, -1, false, {0.25}, {1e-6}},
      {Rank{7}, Phase::kDpComm, 3, -1, 4, true, {0.5}, {0.125}},
  };
  const auto read = timeline_from_json(timeline_to_json(timeline));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[1].phase, Phase::kDpComm);
  EXPECT_EQ((*read)[1].rank, Rank{7});
  EXPECT_TRUE((*read)[1].background);
  EXPECT_EQ((*read)[0].duration.value, 1e-6);
  EXPECT_EQ(timeline_to_json(*read), timeline_to_json(timeline));
  json broken = timeline_to_json(timeline);
  broken[0]["phase"] = "sleeping";
  EXPECT_EQ(timeline_from_json(broken).error().message, "span: 'sleeping' is not a phase");
}

TEST(PhasesJson, HoldsEveryPhaseInSeconds) {
  PhaseTimes phases;
  phases[Phase::kForward] = {1};
  phases[Phase::kOther] = {0.5};
  const json object = phases_to_json(phases);
  EXPECT_EQ(object.size(), kPhaseCount);
  EXPECT_EQ(object["forward_s"], 1);
  EXPECT_DOUBLE_EQ(phases_from_json(object)->total().value, 1.5);
  EXPECT_EQ(phases_from_json(json::object()).error().message, "phases: \"forward_s\" is missing");
}

}  // namespace
}  // namespace regatta::workload
