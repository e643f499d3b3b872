#include "regatta/model/workload/blocks.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::workload {
namespace {

using testing::ElementsAre;

const ModelShape& preset(const char* name) {
  return find_model_preset(name)->model;
}

TEST(BlockCounts, PutBlocksWithoutExpertsFirst) {
  const ModelShape& model = preset("deepseek-v3");
  EXPECT_THAT(all_blocks(model).of, ElementsAre(3, 58, 0, 0, 0));
  EXPECT_THAT(block_counts(model, 2, 4).of, ElementsAre(1, 3, 0, 0, 0));
}

TEST(BlockCounts, FollowWindowsAndExpertsOfEverySoManyLayers) {
  EXPECT_THAT(all_blocks(preset("gpt-oss-120b")).of, ElementsAre(0, 18, 0, 18, 0));
  // Experts in every second layer; every fourth, which has them, sees all tokens.
  EXPECT_THAT(all_blocks(preset("llama4-maverick")).of, ElementsAre(0, 12, 24, 12, 0));
  EXPECT_THAT(block_counts(preset("llama4-maverick"), 2, 2).of, ElementsAre(0, 1, 1, 0, 0));
}

TEST(BlockCounts, FollowTheLettersOfAPattern) {
  EXPECT_THAT(all_blocks(preset("nemotron3-nano")).of, ElementsAre(6, 0, 23, 23, 0));
  EXPECT_THAT(all_blocks(preset("nemotron3-super")).of, ElementsAre(8, 0, 40, 40, 0));
  EXPECT_THAT(block_counts(preset("nemotron3-nano"), 4, 3).of, ElementsAre(1, 0, 1, 1, 0));
}

TEST(BlockCounts, OfEveryPartSumToAll) {
  for (const std::string& name : model_preset_names()) {
    ModelShape model = find_model_preset(name)->model;
    model.mtp_layers = 2;
    BlockCounts sum;
    for (int layer = 0; layer < model.layers; ++layer)
      sum += block_counts(model, layer, 1);
    EXPECT_EQ(sum.of, all_blocks(model).of) << name;
    EXPECT_EQ(sum[kPredictionKind], 2) << name;
  }
}

TEST(BlockKind, HasThePartsOfItsLetter) {
  const ModelShape& nano = preset("nemotron3-nano");
  const auto kind_of = [&](int layer) {
    return block_kind(nano, block_kind_of_layer(nano, layer));
  };
  EXPECT_EQ(kind_of(0), (BlockKind{.mixer = Mixer::kStateSpace, .mlp = BlockMlp::kNone}));
  EXPECT_EQ(kind_of(1), (BlockKind{.mixer = Mixer::kNone, .mlp = BlockMlp::kExperts}));
  EXPECT_EQ(kind_of(5), (BlockKind{.mixer = Mixer::kAttention, .mlp = BlockMlp::kNone}));
  EXPECT_EQ(kind_of(5).parts(), 1);
  EXPECT_EQ(BlockKind{}.parts(), 2);
}

TEST(SeenTokens, AreThoseBeforeAQueryAndInItsWindow) {
  ModelShape model = preset("gpt-oss-120b");
  model.seq = 4096;
  EXPECT_EQ(seen_tokens(model, Mixer::kAttention), 2048);
  // 128, but for the first 128 of a sample, which see half as many.
  EXPECT_EQ(seen_tokens(model, Mixer::kWindowAttention), 128 - 128.0 * 128 / 8192);
  model.window.is_chunked = true;
  EXPECT_EQ(seen_tokens(model, Mixer::kWindowAttention), 64);
  model.window.tokens = 8192;  // longer than the sample
  model.window.is_chunked = false;
  EXPECT_EQ(seen_tokens(model, Mixer::kWindowAttention), 2048);
  EXPECT_EQ(seen_tokens(preset("bert-large"), Mixer::kAttention), 512);
}

// A window saves operations of the scores alone; published: 10,304 columns of the in-projection.
TEST(BlockParameters, AreThoseOfTheParts) {
  const ModelShape& nano = preset("nemotron3-nano");
  EXPECT_EQ(nano.state_space.projected(), 10304);
  const LayerParameters state_space =
      block_parameters(nano, {.mixer = Mixer::kStateSpace, .mlp = BlockMlp::kNone});
  EXPECT_EQ(state_space.attention, 2688LL * 10304 + 6144 * 5 + 3 * 64 + 4096 + 4096LL * 2688);
  EXPECT_EQ(state_space.norms, 2688);
  EXPECT_EQ(state_space.mlp + state_space.experts, 0);
  // Projections to 1,024 and back, a router of 512, two shared experts of the full width.
  const ModelShape& super = preset("nemotron3-super");
  const LayerParameters experts =
      block_parameters(super, {.mixer = Mixer::kNone, .mlp = BlockMlp::kExperts});
  EXPECT_EQ(experts.experts, 512LL * 2 * 1024 * 2688);
  EXPECT_EQ(experts.mlp, 4096LL * (512 + 2 * 1024) + 2LL * 2 * 4096 * 2688);
}

// DeepSeek-V3, 2024, section 2.2 and the published checkpoint: 11.5 billion of its own.
TEST(BlockParameters, OfAModuleThatPredictsAreABlockAndAProjection) {
  ModelShape model = preset("deepseek-v3");
  const long long before = total_parameters(model);
  const double flops = model_flops(model, 1).value;
  model.mtp_layers = 1;
  EXPECT_NEAR(static_cast<double>(total_parameters(model) - before) / 1e9, 11.6, 0.1);
  const double logits = 6.0 * model.seq * model.hidden * model.vocab;
  EXPECT_GT(model_flops(model, 1).value - flops, logits + (flops - logits) / 61);
}

TEST(ModelFlops, CountTheScoresOfAWindow) {
  ModelShape model = preset("gpt-oss-120b");
  const double windowed = model_flops(model, 1).value;
  const double scores = recomputed_flops(model, 1, Recompute::kSelective).value;
  model.window = {};
  const double all = model_flops(model, 1).value;
  EXPECT_NEAR(all - windowed,
              3 * (recomputed_flops(model, 1, Recompute::kSelective).value - scores), 1e-9 * all);
  EXPECT_LT(windowed, all);
}

}  // namespace
}  // namespace regatta::workload
