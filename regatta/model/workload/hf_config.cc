#include "regatta/model/workload/hf_config.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"

namespace regatta::workload {
namespace {

using Keys = std::initializer_list<const char*>;

constexpr long long kSizeMax = 10'000'000;

// Reads the values of a flat object of which each has one of several keys, or null.
class Config {
 public:
  explicit Config(JsonReader root) : root_(std::move(root)) {}

  int size(Keys keys) const {  // at least 1
    if (const auto value = find(keys)) return value->as<int>(IntRange{1, kSizeMax});
    fail(*keys.begin(), "missing; add it as the model has it");
    return 1;
  }
  int size_or(Keys keys, int otherwise) const {
    const auto value = find(keys);
    return value ? value->as<int>(IntRange{0, kSizeMax}) : otherwise;
  }
  double number_or(Keys keys, double otherwise) const {
    const auto value = find(keys);
    return value ? value->as<double>(kPositive) : otherwise;
  }
  bool boolean_or(const char* key, bool otherwise) const {
    root_.read_if(key, otherwise);
    return otherwise;
  }
  void fail(const char* key, const std::string& problem) const {
    root_.fail(fmt::format("{}: {}", key, problem));
  }

 private:
  std::optional<JsonReader> find(Keys keys) const {
    for (const char* key : keys)
      if (root_.has(key)) return root_.at(key);
    return std::nullopt;
  }

  JsonReader root_;
};

ModelShape read_sizes(const Config& config) {
  ModelShape model;
  model.layers = config.size({"num_hidden_layers", "n_layer", "n_layers"});
  model.hidden = config.size({"hidden_size", "n_embd", "d_model", "n_embed"});
  model.heads = config.size({"num_attention_heads", "n_head", "n_heads"});
  model.vocab = config.size({"vocab_size"});
  return model;
}

// GPT-2, OPT, BLOOM, GPT-NeoX, BERT: biases, layer norm and a plain MLP.
ModelShape read_gpt(const Config& config, const std::string& type) {
  ModelShape model = read_sizes(config);
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
  ModelShape model = read_sizes(config);
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

void read_experts(const Config& config, ModelShape& model) {
  Experts& experts = model.experts;
  experts.count = config.size({"num_local_experts", "n_routed_experts", "num_experts"});
  experts.top_k = config.size({"num_experts_per_tok"});
  experts.ffn_hidden = config.size_or({"moe_intermediate_size"}, model.ffn_hidden);
  experts.shared = config.size_or({"n_shared_experts"}, 0);
  // One group is none.
  if (const int groups = config.size_or({"n_group"}, 1); groups > 1) {
    experts.groups = groups;
    experts.top_groups = config.size_or({"topk_group"}, groups);
  }
  experts.dense_layers = config.size_or({"first_k_dense_replace"}, 0);
  const int shared_width = config.size_or({"shared_expert_intermediate_size"}, 0);
  if (shared_width > 0 && experts.ffn_hidden > 0)
    experts.shared = (shared_width + experts.ffn_hidden - 1) / experts.ffn_hidden;
  if (experts.top_k > experts.count)
    config.fail("num_experts_per_tok", fmt::format("{} exceeds the {} experts that there are",
                                                   experts.top_k, experts.count));
  if (experts.dense_layers > model.layers)
    config.fail("first_k_dense_replace", fmt::format("{} exceeds the {} layers that there are",
                                                     experts.dense_layers, model.layers));
}

// Llama and what descends from it: rotary positions, RMS norm, a gated MLP.
ModelShape read_llama(const Config& config, const std::string& type) {
  ModelShape model = read_sizes(config);
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
  if (type.starts_with("deepseek")) read_latent(config, model);
  if (type == "mixtral" || type.ends_with("moe") || type.starts_with("deepseek"))
    read_experts(config, model);
  return model;
}

constexpr std::array kGptTypes = {"gpt2", "opt", "bloom", "gpt_neox", "bert"};
constexpr std::array kLlamaTypes = {"llama",     "mistral",   "mixtral",     "qwen2",      "qwen3",
                                    "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3"};

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

void check_size(const Config& config, const ModelShape& model) {
  if (is_too_large(model))
    config.fail("hidden_size",
                "this and the other sizes make more than 10^15 parameters; check them");
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> types(kGptTypes.begin(), kGptTypes.end());
  types.emplace_back("mpt");
  types.insert(types.end(), kLlamaTypes.begin(), kLlamaTypes.end());
  return types;
}

Result<ModelShape> parse_hf_config(std::string_view text, const std::string& file) {
  REGATTA_TRY(root, JsonReader::parse(text, file));
  const Config config(root);
  std::string type;
  root.read_if("model_type", type);
  REGATTA_TRY_DO(root.status());
  ModelShape model;
  if (is_one_of(kGptTypes, type))
    model = read_gpt(config, type);
  else if (is_one_of(kLlamaTypes, type))
    model = read_llama(config, type);
  else if (type == "mpt")
    model = read_mpt(config);
  else
    config.fail("model_type", fmt::format("'{}' is not known; it may be {}, or write the sizes out",
                                          printable(type, 40), join(hf_model_types(), ", ")));
  REGATTA_TRY_DO(root.status());
  check_heads(config, model);
  check_size(config, model);
  return root.finish(model);
}

}  // namespace regatta::workload
