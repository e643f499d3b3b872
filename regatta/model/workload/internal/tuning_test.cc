#include "regatta/model/workload/internal/tuning.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

using testing::HasSubstr;

Result<Job> job_of(const std::string& tuning) {
  return parse_job("name: x\nmodel: {preset: llama3-70b}\nglobal_batch: 32\n" + tuning, "job.yaml");
}

std::string refusal(const std::string& tuning) {
  const Result<Job> job = job_of(tuning);
  return job ? "none" : job.error().message;
}

TEST(Tuning, TrainsAllWeightsUnlessItIsLora) {
  EXPECT_FALSE(is_frozen(job_of("")->model));
  EXPECT_FALSE(is_frozen(job_of("tuning: {kind: full}\n")->model));
  const auto lora = job_of("tuning: {kind: lora, rank: 16, targets: [linear_qkv, linear_fc2]}\n");
  ASSERT_TRUE(lora) << lora.error().message;
  EXPECT_EQ(lora->model.adapters, (Adapters{.rank = 16, .qkv = true, .fc2 = true}));
  EXPECT_EQ(job_of("tuning: {kind: lora, rank: 8}\n")->model.adapters,
            (Adapters{.rank = 8, .qkv = true, .proj = true, .fc1 = true, .fc2 = true}));
}

TEST(Tuning, ComesBackFromJson) {
  const auto job = job_of("tuning: {kind: lora, rank: 16, targets: [linear_proj]}\n");
  ASSERT_TRUE(job);
  const nlohmann::json json = job_to_json(*job);
  EXPECT_EQ(json["tuning"].dump(), R"({"kind":"lora","rank":16,"targets":["linear_proj"]})");
  EXPECT_FALSE(job_to_json(*job_of("tuning: {kind: full}\n")).contains("tuning"));
}

TEST(Tuning, NamesTheKeyThatIsWrong) {
  EXPECT_THAT(refusal("tuning: {kind: lora}\n"), HasSubstr("tuning.rank"));
  EXPECT_THAT(refusal("tuning: {kind: full, rank: 8}\n"),
              HasSubstr("tuning.rank: belongs to kind: lora"));
  EXPECT_THAT(refusal("tuning: {kind: lora, rank: 8, targets: [q_proj]}\n"),
              HasSubstr("tuning.targets: no matrix is called 'q_proj'; choose some of linear_qkv"));
  EXPECT_THAT(refusal("tuning: {kind: lora, rank: 8, targets: []}\n"), HasSubstr("tuning.targets"));
  EXPECT_THAT(refusal("tuning: {kind: prefix}\n"), HasSubstr("tuning.kind"));
}

// Rank 16 beside 8192 to 10240 and 28672 times two, and back.
TEST(Adapters, AreTheTrainedParameters) {
  ModelShape model = find_model_preset("llama3-70b")->model;
  const long long all = total_parameters(model);
  EXPECT_EQ(trained_parameters(model), all);
  model.adapters = {.rank = 16, .qkv = true};
  EXPECT_EQ(trained_parameters(model), 80LL * 16 * (8192 + 10240));
  EXPECT_EQ(total_parameters(model), all + trained_parameters(model));
  model.adapters = {.rank = 16, .fc1 = true, .fc2 = true};
  EXPECT_EQ(trained_parameters(model), 80LL * 16 * (8192 + 2 * 28672 + 28672 + 8192));
}

// A backward of frozen weights is as long as their forward: 4 operations a parameter and token for
// 6, and those of the scores.
TEST(Adapters, SaveTheGradientsOfFrozenWeights) {
  ModelShape model = find_model_preset("llama3-70b")->model;
  model.seq = 128;
  const double full = model_flops(model, 1).value;
  model.adapters = {.rank = 1, .qkv = true};
  EXPECT_NEAR(model_flops(model, 1).value / full, 2.0 / 3, 0.01);
}

TEST(PackedSamples, SaveScores) {
  ModelShape model = find_model_preset("llama3-8b")->model;
  const double whole = recomputed_flops(model, 1, Recompute::kSelective).value;
  model.packed = model.seq / 4;
  EXPECT_NEAR(recomputed_flops(model, 1, Recompute::kSelective).value / whole, 0.25, 1e-9);
  EXPECT_EQ(total_parameters(model), total_parameters(find_model_preset("llama3-8b")->model));
}

}  // namespace
}  // namespace regatta::workload
