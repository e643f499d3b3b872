#include "regatta/model/workload/hf_config.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"

namespace regatta::workload {
namespace {

using nlohmann::json;
using Keys = std::initializer_list<const char*>;

constexpr unsigned long long kSizeMax = 10'000'000;

// Reads a flat object; keeps the first error.
class Config {
 public:
  Config(const json& object, std::string file) : object_(object), file_(std::move(file)) {}

  bool has(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && !found->is_null();
  }
  // The first of `keys` that is there, at least 1.
  int size(Keys keys) {
    for (const char* key : keys)
      if (has(key)) return whole(key, 1);
    fail(*keys.begin(), "is missing; add it as the model has it");
    return 1;
  }
  int size_or(Keys keys, int otherwise) {
    for (const char* key : keys)
      if (has(key)) return whole(key, 0);
    return otherwise;
  }
  double number_or(Keys keys, double otherwise) {
    for (const char* key : keys) {
      if (!has(key)) continue;
      if (object_[key].is_number() && object_[key].get<double>() > 0)
        return object_[key].get<double>();
      fail(key, "is no number above 0");
      return otherwise;
    }
    return otherwise;
  }
  bool boolean_or(const char* key, bool otherwise) {
    if (!has(key)) return otherwise;
    if (object_[key].is_boolean()) return object_[key].get<bool>();
    fail(key, "is neither true nor false");
    return otherwise;
  }
  std::string text_or(const char* key, const std::string& otherwise) {
    if (!has(key)) return otherwise;
    if (object_[key].is_string()) return object_[key].get<std::string>();
    fail(key, "is no text");
    return otherwise;
  }
  void fail(const char* key, const std::string& problem) {
    if (error_.empty()) error_ = fmt::format("{}: \"{}\" {}", file_, key, problem);
  }
  const std::string& error() const { return error_; }

 private:
  int whole(const char* key, unsigned long long least) {
    const json& value = object_[key];
    const bool is_in_range = value.is_number_unsigned() &&
                             value.get<unsigned long long>() >= least &&
                             value.get<unsigned long long>() <= kSizeMax;
    if (!is_in_range) {
      fail(key, fmt::format("is no whole number from {} to {}", least, kSizeMax));
      return 1;
    }
    return value.get<int>();
  }

  const json& object_;
  std::string file_;
  std::string error_;
};

ModelShape read_sizes(Config& config) {
  ModelShape model;
  model.layers = config.size({"num_hidden_layers", "n_layer", "n_layers"});
  model.hidden = config.size({"hidden_size", "n_embd", "d_model", "n_embed"});
  model.heads = config.size({"num_attention_heads", "n_head", "n_heads"});
  model.vocab = config.size({"vocab_size"});
  return model;
}

// GPT-2, OPT, BLOOM, GPT-NeoX, BERT: biases, layer norm and a plain MLP.
ModelShape read_gpt(Config& config, const std::string& type) {
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

ModelShape read_mpt(Config& config) {
  ModelShape model = read_sizes(config);
  model.ffn_hidden = config.size_or({"expansion_ratio"}, 4) * model.hidden;
  model.seq = config.size({"max_seq_len"});
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", true);
  model.linear_biases = !config.boolean_or("no_bias", true);
  model.positions = PositionEncoding::kNone;
  return model;
}

void read_latent(Config& config, ModelShape& model) {
  model.latent = {.query_rank = config.size_or({"q_lora_rank"}, 0),
                  .kv_rank = config.size({"kv_lora_rank"}),
                  .plain_dim = config.size({"qk_nope_head_dim"}),
                  .rotary_dim = config.size({"qk_rope_head_dim"}),
                  .value_dim = config.size({"v_head_dim"})};
}

void read_experts(Config& config, ModelShape& model) {
  Experts& experts = model.experts;
  experts.count = config.size({"num_local_experts", "n_routed_experts", "num_experts"});
  experts.top_k = config.size({"num_experts_per_tok"});
  experts.ffn_hidden = config.size_or({"moe_intermediate_size"}, model.ffn_hidden);
  experts.shared = config.size_or({"n_shared_experts"}, 0);
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
ModelShape read_llama(Config& config, const std::string& type) {
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

void check_heads(Config& config, const ModelShape& model) {
  if (has_latent_attention(model)) return;
  if (model.head_dim == 0 && model.hidden % model.heads != 0)
    config.fail("num_attention_heads",
                fmt::format("{} does not divide the hidden size {}", model.heads, model.hidden));
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0)
    config.fail("num_key_value_heads", fmt::format("{} does not divide the {} attention heads",
                                                   model.kv_heads, model.heads));
}

void check_size(Config& config, const ModelShape& model) {
  if (is_too_large(model))
    config.fail("hidden_size", "and the other sizes make more than 10^15 parameters; check them");
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> types(kGptTypes.begin(), kGptTypes.end());
  types.emplace_back("mpt");
  types.insert(types.end(), kLlamaTypes.begin(), kLlamaTypes.end());
  return types;
}

Result<ModelShape> parse_hf_config(std::string_view text, const std::string& file) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    return Error{Code::kInvalidInput,
                 file + ": no JSON object; give the config.json of a Hugging Face model"};
  }
  Config config(object, file);
  const std::string type = config.text_or("model_type", "");
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
  if (config.error().empty()) check_heads(config, model);
  if (config.error().empty()) check_size(config, model);
  if (!config.error().empty()) return Error{Code::kInvalidInput, config.error()};
  return model;
}

}  // namespace regatta::workload
