#include "regatta/model/workload/internal/model_yaml.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"

namespace regatta::workload {
namespace {

// The model of "{layers: 2, ...}", or the message that refuses it.
Result<ModelShape> model_of(const std::string& text, const ModelLoader& load = nullptr) {
  REGATTA_TRY(document, YamlDocument::parse("model: " + text, "job.yaml"));
  const ModelShape model = read_model(document.root().map("model"), load);
  REGATTA_TRY_DO(document.status());
  return model;
}

ModelShape good_model(const std::string& text) {
  const Result<ModelShape> model = model_of(text);
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : ModelShape{};
}

TEST(ReadModel, TakesEveryPresetAsItIs) {
  for (const std::string& name : model_preset_names()) {
    const ModelShape model = good_model("{preset: " + name + "}");
    const ModelShape& published = find_model_preset(name)->model;
    EXPECT_EQ(model.preset, name);
    EXPECT_EQ(total_parameters(model), total_parameters(published)) << name;
    EXPECT_EQ(active_parameters(model), active_parameters(published)) << name;
    EXPECT_EQ(is_plain_gpt(model), is_plain_gpt(published)) << name;
  }
}

TEST(ReadModel, WritesAPublishedModelOut) {
  const ModelShape written = good_model(
      "{layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, seq: 8192, "
      "vocab: 128256, activation: swiglu, positions: rotary, norm: rmsnorm, linear_biases: false}");
  const ModelShape& published = find_model_preset("llama3-8b")->model;
  EXPECT_EQ(total_parameters(written), total_parameters(published));
  EXPECT_EQ(model_flops(written, 1).value, model_flops(published, 1).value);
}

TEST(ReadModel, ReadsExpertsAndLatentAttention) {
  const ModelShape written = good_model(
      "{kind: moe, layers: 61, hidden: 7168, heads: 128, ffn_hidden: 18432, seq: 4096, "
      "vocab: 129280, activation: swiglu, positions: rotary, norm: rmsnorm, linear_biases: false, "
      "attention: mla, q_lora_rank: 1536, kv_lora_rank: 512, qk_nope_head_dim: 128, "
      "qk_rope_head_dim: 64, v_head_dim: 128, experts: 256, shared_experts: 1, top_k: 8, "
      "expert_ffn_hidden: 2048, expert_groups: 8, top_groups: 4, dense_layers: 3, capacity: 1.25, "
      "imbalance: 1.5}");
  const ModelShape& published = find_model_preset("deepseek-v3")->model;
  EXPECT_EQ(total_parameters(written), total_parameters(published));
  EXPECT_EQ(active_parameters(written), active_parameters(published));
  EXPECT_EQ(written.experts.capacity, 1.25);
  EXPECT_EQ(written.experts.imbalance, 1.5);
  EXPECT_EQ(written.experts.groups, published.experts.groups);
  EXPECT_EQ(written.experts.reach(), 0.5);
}

TEST(ReadModel, RefusesGroupsOfExpertsThatCannotBe) {
  EXPECT_EQ(model_of("{preset: deepseek-v3, expert_groups: 7}").error().message,
            "job.yaml:1: model.expert_groups: expert_groups 7 does not divide experts 256; choose "
            "a divisor of 256");
  EXPECT_EQ(model_of("{preset: deepseek-v3, top_groups: 9}").error().message,
            "job.yaml:1: model.top_groups: top_groups 9 is not between 1 and expert_groups 8; "
            "leave both out where tokens may go to any expert");
  EXPECT_FALSE(model_of("{preset: qwen3-30b-a3b, expert_groups: 8}")) << "top_groups is missing";
}

TEST(ReadModel, KnowsTheKindByTheExperts) {
  EXPECT_TRUE(has_experts(
      good_model("{layers: 2, hidden: 64, heads: 4, seq: 32, vocab: 256, experts: 4, top_k: 1}")));
  const ModelShape encoder =
      good_model("{kind: encoder, layers: 2, hidden: 64, heads: 4, seq: 32, vocab: 256}");
  EXPECT_EQ(encoder.kind, ModelKind::kEncoder);
  EXPECT_FALSE(has_experts(encoder));
}

TEST(ReadModel, LetsSizesFollowThoseThatAreChanged) {
  // 32 key heads of 32 are no choice of their own, 8 of 64 are.
  const ModelShape multi = good_model("{preset: llama2-7b, heads: 16}");
  EXPECT_EQ(attention_shape(multi).kv_heads, 16);
  EXPECT_EQ(attention_shape(multi).key_dim, 256);
  EXPECT_EQ(attention_shape(good_model("{preset: llama2-70b, heads: 32}")).kv_heads, 8);
  EXPECT_EQ(good_model("{preset: gpt2-small, hidden: 1536}").ffn_hidden, 4 * 1536);
  EXPECT_EQ(attention_shape(good_model("{preset: llama3-8b, attention: mha}")).kv_heads, 32);
  EXPECT_FALSE(has_latent_attention(good_model("{preset: deepseek-v3, attention: mha}")));
}

TEST(ReadModel, TakesTheAnglesAndTheNorms) {
  const ModelShape llama = good_model("{preset: llama3-8b}");
  EXPECT_EQ(llama.rope_theta, 500000);
  EXPECT_EQ(llama.norm_eps, 1e-5);
  const ModelShape own = good_model("{preset: llama3-8b, rope_theta: 1e6, norm_eps: 1e-6}");
  EXPECT_EQ(own.rope_theta, 1e6);
  EXPECT_EQ(own.norm_eps, 1e-6);
  EXPECT_EQ(model_of("{preset: gpt2-small, rope_theta: 10000}").error().message,
            "job.yaml:1: model.rope_theta: belongs to rotary positions; add positions: rotary, or "
            "leave the key out");
  EXPECT_FALSE(model_of("{preset: llama3-8b, norm_eps: 0}"));
}

TEST(ReadModel, TakesAFileAndWhatTheJobSaysBesides) {
  const auto load = [](const std::string& path) -> Result<ModelShape> {
    if (path != "config.json") return Error{Code::kInvalidInput, path + ": no such file"};
    return find_model_preset("mixtral-8x7b")->model;
  };
  const auto model = model_of("{from: config.json, seq: 4096, imbalance: 1.2}", load);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->seq, 4096);
  EXPECT_EQ(model->experts.count, 8);
  EXPECT_EQ(model->experts.imbalance, 1.2);
  EXPECT_EQ(model_of("{from: missing.json}", load).error().message,
            "job.yaml:1: model.from: missing.json: no such file");
}

}  // namespace
}  // namespace regatta::workload
