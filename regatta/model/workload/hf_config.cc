#include "regatta/model/workload/hf_config.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/model/workload/internal/hf_config_values.h"
#include "regatta/model/workload/internal/mixed_layers.h"

namespace regatta::workload {
namespace {

using Config = HfConfigValues;

// GPT-2, OPT, BLOOM, GPT-NeoX, BERT: biases, layer norm and a plain MLP.
ModelShape read_gpt(const Config& config, const std::string& type) {
  ModelShape model = read_hf_sizes(config);
  model.ffn_hidden = config.size_or({"n_inner", "ffn_dim", "intermediate_size"}, 4 * model.hidden);
  model.seq =
      config.size_or({"n_positions", "max_position_embeddings", "seq_length", "n_ctx"}, 2048);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", type != "gpt_neox");
  if (type == "bert") model.kind = ModelKind::kEncoder;
  if (type == "bloom") model.positions = PositionEncoding::kNone;
  if (type == "gpt_neox") model.positions = PositionEncoding::kRotary;
  model.rope_theta = config.number_or({"rope_theta", "rotary_emb_base"}, 10000);
  model.norm_eps =
      config.number_or({"layer_norm_epsilon", "layer_norm_eps"}, type == "bert" ? 1e-12 : 1e-5);
  return model;
}

ModelShape read_mpt(const Config& config) {
  ModelShape model = read_hf_sizes(config);
  model.ffn_hidden = config.size_or({"expansion_ratio"}, 4) * model.hidden;
  model.seq = config.size({"max_seq_len"});
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", true);
  model.linear_biases = !config.boolean_or("no_bias", true);
  model.positions = PositionEncoding::kNone;
  return model;
}

void read_latent(const Config& config, ModelShape& model) {
  model.latent = {.query_rank = config.size_or({"q_lora_rank"}, 0),
                  .kv_rank = config.size({"kv_lora_rank"}),
                  .plain_dim = config.size({"qk_nope_head_dim"}),
                  .rotary_dim = config.size({"qk_rope_head_dim"}),
                  .value_dim = config.size({"v_head_dim"})};
}

// Llama and what descends from it: rotary positions, RMS norm, a gated MLP.
ModelShape read_llama(const Config& config, const std::string& type) {
  ModelShape model = read_hf_sizes(config);
  model.ffn_hidden = config.size({"intermediate_size"});
  model.seq = config.size({"max_position_embeddings"});
  model.kv_heads = config.size_or({"num_key_value_heads"}, model.heads);
  model.head_dim = config.size_or({"head_dim"}, 0);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", false);
  model.activation = Activation::kSwiglu;
  model.positions = PositionEncoding::kRotary;
  model.rope_theta = config.number_or({"rope_theta"}, type == "mixtral" ? 1e6 : 10000);
  model.norm = NormKind::kRmsNorm;
  model.norm_eps = config.number_or({"rms_norm_eps"}, type == "mixtral" ? 1e-5 : 1e-6);
  model.linear_biases = false;
  model.qkv_biases = config.boolean_or("attention_bias", type == "qwen2" || type == "qwen2_moe");
  model.qk_norms = type.starts_with("qwen3") || config.boolean_or("use_qk_norm", false);
  const bool is_deepseek = type.starts_with("deepseek") || type == "kimi_k2";
  if (is_deepseek) read_latent(config, model);
  if (type == "mixtral" || type.ends_with("moe") || is_deepseek || type.starts_with("llama4") ||
      type == "gpt_oss")
    read_hf_experts(config, model);
  model.mtp_layers = config.size_or({"num_nextn_predict_layers"}, 0);
  if (type == "gpt_oss") read_hf_gpt_oss(config, model);
  if (type.starts_with("llama4")) read_hf_llama4(config, model);
  return model;
}

constexpr std::array kGptTypes = {"gpt2", "opt", "bloom", "gpt_neox", "bert"};
constexpr std::array kLlamaTypes = {
    "llama",       "mistral",     "mixtral", "qwen2",   "qwen3",  "qwen2_moe",  "qwen3_moe",
    "deepseek_v2", "deepseek_v3", "kimi_k2", "gpt_oss", "llama4", "llama4_text"};

bool is_one_of(const auto& types, const std::string& type) {
  for (const char* one : types)
    if (type == one) return true;
  return false;
}

void check_heads(const Config& config, const ModelShape& model) {
  if (has_latent_attention(model)) return;
  if (model.head_dim == 0 && model.hidden % model.heads != 0)
    config.fail("num_attention_heads",
                fmt::format("{} does not divide the hidden size {}", model.heads, model.hidden));
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0)
    config.fail("num_key_value_heads", fmt::format("{} does not divide the {} attention heads",
                                                   model.kv_heads, model.heads));
}

// Says it in the words of the file.
void check_layers(const Config& config, const ModelShape& model) {
  const auto found = find_layer_contradiction(model);
  if (!found) return;
  const bool is_groups = found->key == "mamba_groups";
  config.fail(found->key == "layer_pattern" ? "hybrid_override_pattern"
              : is_groups                   ? "n_groups"
                                            : found->key,
              found->problem);
}

void check_size(const Config& config, const ModelShape& model) {
  if (is_too_large(model))
    config.fail("hidden_size",
                "this and the other sizes make more than 10^15 parameters; check them");
}

}  // namespace

ModelShape read_hf_sizes(const HfConfigValues& config) {
  ModelShape model;
  model.layers = config.size({"num_hidden_layers", "n_layer", "n_layers"});
  model.hidden = config.size({"hidden_size", "n_embd", "d_model", "n_embed"});
  model.heads = config.size({"num_attention_heads", "n_head", "n_heads"});
  model.vocab = config.size({"vocab_size"});
  return model;
}

void read_hf_experts(const HfConfigValues& config, ModelShape& model) {
  Experts& experts = model.experts;
  experts.count = config.size({"num_local_experts", "n_routed_experts", "num_experts"});
  experts.top_k = config.size({"num_experts_per_tok", "experts_per_token"});
  experts.ffn_hidden = config.size_or({"moe_intermediate_size"}, model.ffn_hidden);
  experts.shared = config.size_or({"n_shared_experts"}, 0);
  // One group is none.
  if (const int groups = config.size_or({"n_group"}, 1); groups > 1) {
    experts.groups = groups;
    experts.top_groups = config.size_or({"topk_group"}, groups);
  }
  experts.dense_layers = config.size_or({"first_k_dense_replace"}, 0);
  const int shared_width =
      config.size_or({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"}, 0);
  if (shared_width > 0 && experts.ffn_hidden > 0)
    experts.shared = (shared_width + experts.ffn_hidden - 1) / experts.ffn_hidden;
  if (experts.top_k > experts.count)
    config.fail("num_experts_per_tok", fmt::format("{} exceeds the {} experts that there are",
                                                   experts.top_k, experts.count));
  if (experts.dense_layers > model.layers)
    config.fail("first_k_dense_replace", fmt::format("{} exceeds the {} layers that there are",
                                                     experts.dense_layers, model.layers));
}

std::vector<std::string> hf_model_types() {
  std::vector<std::string> types(kGptTypes.begin(), kGptTypes.end());
  types.emplace_back("mpt");
  types.emplace_back("nemotron_h");
  types.insert(types.end(), kLlamaTypes.begin(), kLlamaTypes.end());
  return types;
}

Result<ModelShape> parse_hf_config(std::string_view text, const std::string& file) {
  REGATTA_TRY(root, JsonReader::parse(text, file));
  std::string type;
  root.read_if("model_type", type);
  REGATTA_TRY_DO(root.status());
  // A model of text and pictures has that of the text inside.
  const Config config(type == "llama4" && root.has("text_config") ? root.at("text_config") : root);
  ModelShape model;
  if (is_one_of(kGptTypes, type))
    model = read_gpt(config, type);
  else if (is_one_of(kLlamaTypes, type))
    model = read_llama(config, type);
  else if (type == "mpt")
    model = read_mpt(config);
  else if (type == "nemotron_h")
    model = read_hf_nemotron_h(config);
  else
    config.fail("model_type", fmt::format("'{}' is not known; it may be {}, or write the sizes out",
                                          printable(type, 40), join(hf_model_types(), ", ")));
  REGATTA_TRY_DO(root.status());
  check_heads(config, model);
  check_layers(config, model);
  check_size(config, model);
  return root.finish(model);
}

}  // namespace regatta::workload
