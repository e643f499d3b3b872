#include "regatta/model/workload/model.h"

#include <string>

#include <gtest/gtest.h>

namespace regatta::workload {
namespace {

ModelShape small_model() {
  return {.kind = ModelKind::kGpt,
          .preset = "",
          .layers = 2,
          .hidden = 4,
          .heads = 2,
          .ffn_hidden = 16,
          .seq = 8,
          .vocab = 256,
          .activation = Activation::kGelu,
          .tied_embeddings = false};
}

TEST(ModelShape, CountsParametersByPart) {
  const ModelShape model = small_model();
  EXPECT_EQ(layer_parameters(model), 12 * 16 + 13 * 4);
  EXPECT_EQ(embedding_parameters(model), (256 + 8) * 4);
  EXPECT_EQ(head_parameters(model), 8 + 4 * 256);
  EXPECT_EQ(total_parameters(model),
            2 * layer_parameters(model) + embedding_parameters(model) + head_parameters(model));
}

TEST(ModelShape, SharesTheTokenTableWhenTied) {
  ModelShape model = small_model();
  model.tied_embeddings = true;
  EXPECT_EQ(head_parameters(model), 8);
}

struct Published {
  const char* preset;
  double billions;
  double tolerance;
};

// Narayanan et al., SC'21, tables 1 and 2, and Brown et al., 2020, table 2.1.
TEST(ModelPresets, HaveThePublishedNumberOfParameters) {
  const Published cases[] = {
      {"gpt2-small", 0.124, 0.01},       {"gpt2-xl", 1.558, 0.01},
      {"gpt3-6.7b", 6.7, 0.02},          {"gpt3-175b", 174.6, 0.005},
      {"megatron-1.7b", 1.7, 0.03},      {"megatron-3.6b", 3.6, 0.02},
      {"megatron-7.5b", 7.5, 0.01},      {"megatron-18.4b", 18.4, 0.005},
      {"megatron-39.1b", 39.1, 0.005},   {"megatron-76.1b", 76.1, 0.005},
      {"megatron-145.6b", 145.6, 0.005}, {"megatron-310.1b", 310.1, 0.005},
      {"megatron-529.6b", 529.6, 0.005}, {"megatron-1008b", 1008.0, 0.005},
  };
  for (const Published& published : cases) {
    const ModelPreset* preset = find_model_preset(published.preset);
    ASSERT_NE(preset, nullptr) << published.preset;
    const double billions = static_cast<double>(total_parameters(preset->model)) / 1e9;
    EXPECT_NEAR(billions / published.billions, 1, published.tolerance) << published.preset;
    EXPECT_EQ(preset->model.hidden % preset->model.heads, 0) << published.preset;
  }
}

// Total and active parameters as the sources of the presets state them.
TEST(ModelPresets, OfLaterModelsHaveThePublishedNumberOfParameters) {
  struct Stated {
    const char* preset;
    double billions;
    double active;
    double tolerance;
  };
  const Stated cases[] = {
      {"llama2-7b", 6.74, 6.74, 0.001},       {"llama2-13b", 13.02, 13.02, 0.001},
      {"llama2-70b", 68.98, 68.98, 0.001},    {"llama3-8b", 8.03, 8.03, 0.001},
      {"llama3-70b", 70.55, 70.55, 0.001},    {"llama3-405b", 405.85, 405.85, 0.001},
      {"mistral-7b", 7.24, 7.24, 0.001},      {"mixtral-8x7b", 46.7, 12.9, 0.003},
      {"mixtral-8x22b", 141, 39, 0.01},       {"qwen2-7b", 7.61, 7.61, 0.002},
      {"qwen2-72b", 72.7, 72.7, 0.001},       {"deepseek-v2-lite", 15.7, 2.6, 0.03},
      {"deepseek-v2", 236, 21, 0.03},         {"deepseek-v3", 671, 37, 0.02},
      {"bloom-176b", 176.25, 176.25, 0.001},  {"nemotron4-340b", 340, 340, 0.01},
      {"bert-large", 0.335, 0.335, 0.005},    {"llama3.2-1b", 1.2358, 1.2358, 1e-4},
      {"llama3.2-3b", 3.2127, 3.2127, 1e-4},  {"qwen3-0.6b", 0.59605, 0.59605, 1e-5},
      {"qwen3-1.7b", 1.7206, 1.7206, 1e-4},   {"qwen3-4b", 4.0225, 4.0225, 1e-4},
      {"qwen3-8b", 8.19074, 8.19074, 1e-6},   {"qwen3-14b", 14.7683, 14.7683, 1e-5},
      {"qwen3-32b", 32.7621, 32.7621, 1e-5},  {"gpt-oss-20b", 20.91, 4.19, 0.01},
      {"gpt-oss-120b", 116.83, 5.71, 0.01},   {"llama4-scout", 107.8, 17.2, 0.02},
      {"llama4-maverick", 400.7, 17.2, 0.02}, {"nemotron3-nano", 31.6, 3.6, 0.01},
      {"nemotron3-super", 120.6, 12.7, 0.01},
  };
  for (const Stated& stated : cases) {
    const ModelPreset* preset = find_model_preset(stated.preset);
    ASSERT_NE(preset, nullptr) << stated.preset;
    const double total = static_cast<double>(total_parameters(preset->model)) / 1e9;
    const double active = static_cast<double>(active_parameters(preset->model)) / 1e9;
    EXPECT_NEAR(total / stated.billions, 1, stated.tolerance) << stated.preset << " " << total;
    EXPECT_NEAR(active / stated.active, 1, stated.tolerance) << stated.preset << " " << active;
    EXPECT_FALSE(preset->source.empty()) << stated.preset;
  }
}

// SC'21, appendix: 72 B s l h^2 (1 + s / 6h + V / 12 l h) without recomputation.
TEST(ModelFlops, MatchesTheClosedFormOfThePaper) {
  const ModelPreset* preset = find_model_preset("gpt3-175b");
  ASSERT_NE(preset, nullptr);
  const double s = 2048;
  const double h = 12288;
  const double l = 96;
  const double v = 51200;
  const double batch = 1536;
  const double expected = 72 * batch * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  EXPECT_NEAR(model_flops(preset->model, 1536).value / expected, 1, 1e-12);
}

TEST(Precision, KnowsItsNameAndSize) {
  EXPECT_EQ(to_string(Precision::kBf16), "bf16");
  EXPECT_EQ(bytes_per_element(Precision::kBf16), 2);
  EXPECT_EQ(bytes_per_element(Precision::kFp32), 4);
}

}  // namespace
}  // namespace regatta::workload
