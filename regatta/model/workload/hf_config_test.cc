#include "regatta/model/workload/hf_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"

namespace regatta::workload {
namespace {

using testing::HasSubstr;

// The keys that count, as the published repositories have them.
constexpr const char* kLlama3 = R"({"model_type": "llama", "hidden_size": 4096,
  "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
  "num_hidden_layers": 32, "max_position_embeddings": 8192, "vocab_size": 128256,
  "tie_word_embeddings": false, "rope_theta": 500000.0, "hidden_act": "silu"})";
constexpr const char* kMixtral = R"({"model_type": "mixtral", "hidden_size": 4096,
  "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
  "num_hidden_layers": 32, "num_local_experts": 8, "num_experts_per_tok": 2,
  "max_position_embeddings": 32768, "vocab_size": 32000})";
constexpr const char* kDeepSeekV3 = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
  "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 128,
  "num_key_value_heads": 128, "num_hidden_layers": 61, "n_routed_experts": 256,
  "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
  "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "v_head_dim": 128, "max_position_embeddings": 163840, "vocab_size": 129280})";
constexpr const char* kQwen3 = R"({"model_type": "qwen3", "hidden_size": 4096, "head_dim": 128,
  "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8,
  "num_hidden_layers": 36, "max_position_embeddings": 40960, "vocab_size": 151936,
  "attention_bias": false, "use_sliding_window": false, "sliding_window": null})";
constexpr const char* kGptOss = R"({"model_type": "gpt_oss", "hidden_size": 2880, "head_dim": 64,
  "intermediate_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
  "num_hidden_layers": 4, "num_local_experts": 128, "num_experts_per_tok": 4,
  "attention_bias": true, "sliding_window": 128, "layer_types": ["sliding_attention",
  "full_attention", "sliding_attention", "full_attention"], "max_position_embeddings": 131072,
  "rope_theta": 150000, "vocab_size": 201088})";
constexpr const char* kMaverick = R"({"model_type": "llama4", "text_config": {
  "model_type": "llama4_text", "hidden_size": 5120, "head_dim": 128, "intermediate_size": 8192,
  "intermediate_size_mlp": 16384, "num_attention_heads": 40, "num_key_value_heads": 8,
  "num_hidden_layers": 48, "num_local_experts": 128, "num_experts_per_tok": 1,
  "interleave_moe_layer_step": 2, "attention_chunk_size": 8192, "use_qk_norm": false,
  "max_position_embeddings": 1048576, "vocab_size": 202048}})";
constexpr const char* kKimi = R"({"model_type": "kimi_k2", "hidden_size": 7168,
  "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 64,
  "num_key_value_heads": 64, "num_hidden_layers": 61, "n_routed_experts": 384,
  "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1,
  "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "v_head_dim": 128, "max_position_embeddings": 131072, "num_nextn_predict_layers": 0,
  "vocab_size": 163840})";
constexpr const char* kNemotronSuper = R"({"model_type": "nemotron_h", "hidden_size": 4096,
  "intermediate_size": 2688, "num_attention_heads": 32, "num_key_value_heads": 2,
  "head_dim": 128, "num_hidden_layers": 88, "hybrid_override_pattern":
  "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",
  "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
  "conv_kernel": 4, "chunk_size": 128, "n_routed_experts": 512, "n_shared_experts": 1,
  "num_experts_per_tok": 22, "moe_intermediate_size": 2688, "moe_latent_size": 1024,
  "moe_shared_expert_intermediate_size": 5376, "max_position_embeddings": 262144,
  "vocab_size": 131072})";
constexpr const char* kGpt2 = R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12,
  "n_layer": 12, "n_positions": 1024, "n_ctx": 1024, "vocab_size": 50257, "n_inner": null})";

ModelShape read(const std::string& text) {
  auto model = parse_hf_config(text, "config.json");
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : ModelShape{};
}

TEST(HfConfig, GivesTheModelsThatThePresetsDescribe) {
  const struct {
    const char* text;
    const char* preset;
  } cases[] = {{kLlama3, "llama3-8b"},
               {kMixtral, "mixtral-8x7b"},
               {kDeepSeekV3, "deepseek-v3"},
               {kQwen3, "qwen3-8b"},
               {kMaverick, "llama4-maverick"},
               {kKimi, "kimi-k2"},
               {kNemotronSuper, "nemotron3-super"}};
  for (const auto& one : cases) {
    const ModelShape model = read(one.text);
    const ModelPreset* preset = find_model_preset(one.preset);
    ASSERT_NE(preset, nullptr);
    EXPECT_EQ(total_parameters(model), total_parameters(preset->model)) << one.preset;
    EXPECT_EQ(active_parameters(model), active_parameters(preset->model)) << one.preset;
  }
}

TEST(HfConfig, KeepsWhatMakesLayersDiffer) {
  const ModelShape oss = read(kGptOss);
  EXPECT_EQ(oss.window, find_model_preset("gpt-oss-120b")->model.window);
  EXPECT_TRUE(oss.attention_sinks && oss.linear_biases);
  EXPECT_EQ(layer_parameters(oss), layer_parameters(find_model_preset("gpt-oss-120b")->model));
  const ModelShape& maverick = find_model_preset("llama4-maverick")->model;
  EXPECT_EQ(read(kMaverick).window, maverick.window);
  EXPECT_EQ(read(kMaverick).experts, maverick.experts);
  const ModelShape& super = find_model_preset("nemotron3-super")->model;
  EXPECT_EQ(read(kNemotronSuper).state_space, super.state_space);
  EXPECT_EQ(read(kNemotronSuper).layer_pattern, super.layer_pattern);
  std::string predicts = kDeepSeekV3;
  predicts.insert(1, "\"num_nextn_predict_layers\": 1, ");
  EXPECT_EQ(read(predicts).mtp_layers, 1);
  EXPECT_EQ(read(kDeepSeekV3).mtp_layers, 0);
}

TEST(HfConfig, NamesTheKeyThatMakesLayersDifferInNoKnownWay) {
  const auto refusal = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    const auto model = parse_hf_config(text, "config.json");
    return model ? "none" : model.error().message;
  };
  EXPECT_THAT(refusal(kNemotronSuper, "\"MEMEMEM*", "\"MEMEMEMX"),
              HasSubstr("hybrid_override_pattern: layer 7 is 'X'"));
  EXPECT_THAT(refusal(kNemotronSuper, "\"MEMEMEM*", "\""),
              HasSubstr("hybrid_override_pattern: it has 80 letters, the model 88 layers"));
  EXPECT_THAT(refusal(kNemotronSuper, "\"hybrid_override_pattern\"", "\"pattern\""),
              HasSubstr("hybrid_override_pattern: missing"));
  EXPECT_THAT(refusal(kNemotronSuper, "\"n_groups\": 8", "\"n_groups\": 7"),
              HasSubstr("n_groups: 7 does not divide"));
  EXPECT_THAT(refusal(kGptOss, "[\"sliding_attention\"", "[\"full_attention\""),
              HasSubstr("layer_types: full attention does not come back evenly"));
  EXPECT_THAT(refusal(kMaverick, "intermediate_size_mlp", "mlp_size"),
              HasSubstr("intermediate_size_mlp: missing"));
}

TEST(HfConfig, KeepsTheAnglesAndTheNorms) {
  const ModelShape llama = read(kLlama3);
  EXPECT_EQ(llama.rope_theta, 500000);
  EXPECT_EQ(llama.norm_eps, 1e-6);  // the default of the type
  EXPECT_EQ(read(kMixtral).rope_theta, 1e6);
  EXPECT_EQ(read(kGpt2).norm_eps, 1e-5);
  std::string text = kLlama3;
  text.insert(1, "\"rms_norm_eps\": 1e-05, ");
  EXPECT_EQ(read(text).norm_eps, 1e-5);
  text.replace(text.find("500000.0"), 8, "\"many\"");
  EXPECT_EQ(parse_hf_config(text, "config.json").error().message,
            "config.json: rope_theta: expected a number above 0, found the string \"many\"");
}

// Radford et al., 2019: 124 million, with 50257 words.
TEST(HfConfig, TakesTheDefaultsOfTheTypeForWhatIsLeftOut) {
  const ModelShape model = read(kGpt2);
  EXPECT_EQ(model.ffn_hidden, 4 * 768);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(total_parameters(model), 124'439'808);
}

std::string error_of(const std::string& text) {
  const auto model = parse_hf_config(text, "config.json");
  return model ? "none" : model.error().message;
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(HfConfig, RefusesWhatIsNoModelAndNamesTheKey) {
  EXPECT_THAT(error_of("[1]"), HasSubstr("config.json: expected an object, found a list"));
  EXPECT_THAT(error_of("{"), HasSubstr("config.json: not JSON in line 1: "));
  EXPECT_THAT(error_of("{}"), HasSubstr("model_type: '' is not known; it may be gpt2"));
  EXPECT_THAT(error_of(changed(kLlama3, "llama", "whisper")), HasSubstr("'whisper' is not known"));
  EXPECT_THAT(error_of(changed(kLlama3, "\"hidden_size\": 4096", "\"hidden\": 4096")),
              HasSubstr("hidden_size: missing"));
  EXPECT_THAT(error_of(changed(kLlama3, "14336", "-14336")),
              HasSubstr("intermediate_size: expected an integer from 1 to 10000000, found "));
  EXPECT_THAT(error_of(changed(kLlama3, "14336", "1e300")),
              HasSubstr("intermediate_size: expected an integer from 1 to 10000000, found "));
  EXPECT_THAT(error_of(changed(kLlama3, "14336", "99999999999999999999")),
              HasSubstr("intermediate_size: expected an integer from 1 to 10000000, found "));
  EXPECT_THAT(error_of(changed(kLlama3, "_heads\": 32", "_heads\": 33")),
              HasSubstr("33 does not divide the hidden size 4096"));
  EXPECT_THAT(error_of(changed(kLlama3, "_value_heads\": 8", "_value_heads\": 5")),
              HasSubstr("5 does not divide the 32 attention heads"));
  EXPECT_THAT(error_of(changed(kMixtral, "per_tok\": 2", "per_tok\": 9")),
              HasSubstr("9 exceeds the 8 experts"));
  EXPECT_THAT(error_of(changed(kLlama3, "14336", "10000000")), "none");
  EXPECT_THAT(error_of(changed(changed(kLlama3, "14336", "10000000"), "\"hidden_size\": 4096",
                               "\"hidden_size\": 9999968")),
              HasSubstr("make more than 10^15 parameters"));
  EXPECT_THAT(error_of(changed(kLlama3, "false", "\"no\"")),
              HasSubstr("tie_word_embeddings: expected true or false, found the string \"no\""));
}

}  // namespace
}  // namespace regatta::workload
