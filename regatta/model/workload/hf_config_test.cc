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
  } cases[] = {{kLlama3, "llama3-8b"}, {kMixtral, "mixtral-8x7b"}, {kDeepSeekV3, "deepseek-v3"}};
  for (const auto& one : cases) {
    const ModelShape model = read(one.text);
    const ModelPreset* preset = find_model_preset(one.preset);
    ASSERT_NE(preset, nullptr);
    EXPECT_EQ(total_parameters(model), total_parameters(preset->model)) << one.preset;
    EXPECT_EQ(active_parameters(model), active_parameters(preset->model)) << one.preset;
  }
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
