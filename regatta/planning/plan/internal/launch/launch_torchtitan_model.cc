#include "regatta/planning/plan/internal/launch/launch_torchtitan_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/internal/launch/model_details.h"

namespace regatta::plan {
namespace {

using workload::ModelShape;

struct Known {
  std::string_view preset;
  std::string_view name;
  std::string_view flavor;
};
constexpr std::array kKnown = {
    Known{"llama3-8b", "llama3", "8B"},          Known{"llama3-70b", "llama3", "70B"},
    Known{"llama3-405b", "llama3", "405B"},      Known{"deepseek-v2-lite", "deepseek_v3", "16B"},
    Known{"deepseek-v2", "deepseek_v3", "236B"}, Known{"deepseek-v3", "deepseek_v3", "671B"},
    Known{"qwen3-30b-a3b", "qwen3", "30B-A3B"},  Known{"qwen3-235b-a22b", "qwen3", "235B-A22B"},
};

// Whether it is the preset that it names, for any sequence.
bool is_unchanged(const ModelShape& model) {
  const workload::ModelPreset* preset = workload::find_model_preset(model.preset);
  if (preset == nullptr) return false;
  ModelShape same = preset->model;
  same.seq = model.seq;
  same.experts.capacity = model.experts.capacity;
  same.experts.imbalance = model.experts.imbalance;
  return same == model;
}

// Llama 3's MLP is 8 h / 3, times a factor, rounded up to a multiple. The factor hits the middle of
// the last multiple, so that no rounding of it matters.
std::string mlp_words(const ModelShape& model) {
  int multiple = 1;
  while (multiple < 4096 && model.ffn_hidden % (2 * multiple) == 0)
    multiple *= 2;
  const int plain = 8 * model.hidden / 3;
  const double factor = (model.ffn_hidden - 0.5 * multiple) / plain;
  return fmt::format("multiple_of={}, ffn_dim_multiplier={:.6f}", multiple, factor);
}

std::string scalar_words(const ModelShape& model) {
  return fmt::format("rope_theta={}, norm_eps={}", model.rope_theta, model.norm_eps);
}

std::string expert_words(const ModelShape& model) {
  const workload::Experts& experts = model.experts;
  const ModelDetails details = model_details(model);
  return fmt::format(
      "moe_inter_dim={}, moe_args=MoEArgs(num_experts={}, num_shared_experts={}, top_k={}, "
      "score_func=\"{}\", route_norm={}, route_scale={})",
      experts.ffn_hidden, experts.count, experts.shared, experts.top_k,
      details.has_sigmoid_router ? "sigmoid" : "softmax",
      details.has_sigmoid_router || !details.weighs_all_experts ? "True" : "False",
      details.router_scaling > 0 ? details.router_scaling : 1.0);
}

std::string llama_definition(const ModelShape& model) {
  return fmt::format(
      "TransformerModelArgs(dim={}, n_layers={}, n_heads={}, n_kv_heads={}, vocab_size={}, {}, {})",
      model.hidden, model.layers, model.heads, attention_shape(model).kv_heads, model.vocab,
      mlp_words(model), scalar_words(model));
}

std::string qwen_definition(const ModelShape& model) {
  const workload::AttentionShape attention = attention_shape(model);
  std::string text = fmt::format(
      "Qwen3ModelArgs(dim={}, n_layers={}, n_heads={}, n_kv_heads={}, head_dim={}, hidden_dim={}, "
      "vocab_size={}, qk_norm={}, {}",
      model.hidden, model.layers, model.heads, attention.kv_heads, attention.key_dim,
      model.ffn_hidden, model.vocab, model.qk_norms ? "True" : "False", scalar_words(model));
  if (has_experts(model)) text += ", moe_enabled=True, " + expert_words(model);
  return text + ")";
}

std::string deepseek_definition(const ModelShape& model) {
  const workload::LatentAttention& latent = model.latent;
  return fmt::format(
      "DeepSeekV3ModelArgs(dim={}, n_layers={}, n_dense_layers={}, n_heads={}, inter_dim={}, "
      "vocab_size={}, q_lora_rank={}, kv_lora_rank={}, qk_nope_head_dim={}, qk_rope_head_dim={}, "
      "v_head_dim={}, n_expert_groups={}, n_limited_groups={}, {}, {})",
      model.hidden, model.layers, dense_layers(model), model.heads, model.ffn_hidden, model.vocab,
      latent.query_rank, latent.kv_rank, latent.plain_dim, latent.rotary_dim, latent.value_dim,
      std::max(1, model.experts.groups), std::max(1, model.experts.top_groups), scalar_words(model),
      expert_words(model));
}

// The parts that none of torchtitan's models has; "" for a shape that one of them has.
std::string torchtitan_lacks(const ModelShape& model) {
  std::vector<std::string> lacks;
  const auto add = [&](bool is_lacking, const char* what) {
    if (is_lacking) lacks.emplace_back(what);
  };
  add(model.positions != workload::PositionEncoding::kRotary, "other than rotary positions");
  add(model.norm != workload::NormKind::kRmsNorm, "layer norms");
  add(model.activation != workload::Activation::kSwiglu, "an MLP without a gate");
  add(model.linear_biases || model.qkv_biases, "biases");
  add(model.tied_embeddings, "tied embeddings");
  add(has_latent_attention(model) && !has_experts(model), "latent attention without experts");
  add(!has_latent_attention(model) && has_experts(model) && model.experts.dense_layers > 0,
      "plain layers before those with experts");
  return join(lacks, ", ");
}

// A module that adds the flavor to those of the model, for --experimental.custom_import.
std::string module_of(const TorchtitanModel& model, const std::string& arguments) {
  const std::string type = arguments.substr(0, arguments.find('('));
  const bool has_router = arguments.find("MoEArgs") != std::string::npos;
  return fmt::format(
      "{0}from torchtitan.models.{1}.model.args import {2}\n"
      "from torchtitan.protocols.train_spec import get_train_spec\n\n"
      "get_train_spec(\"{1}\").model_args[\"{3}\"] = {4}\n",
      has_router ? "from torchtitan.models.moe import MoEArgs\n" : "", model.name, type,
      model.flavor, arguments);
}

// Letters, digits, '-', '_' and '.' of a name.
std::string plain_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; },
      '_');
  return name;
}

}  // namespace

TorchtitanModel torchtitan_model(const ModelShape& model) {
  if (is_unchanged(model)) {
    for (const Known& known : kKnown) {
      if (known.preset == model.preset)
        return {std::string(known.name), std::string(known.flavor), "", ""};
    }
  }
  TorchtitanModel found{.name = {}, .flavor = {}, .definition = {}, .lacks = {}};
  found.flavor = model.preset.empty() ? "custom" : plain_name(model.preset);
  found.lacks = torchtitan_lacks(model);
  if (!found.lacks.empty()) {
    found.name = found.flavor;
    return found;
  }
  const bool is_llama =
      !has_latent_attention(model) && !has_experts(model) && model.head_dim == 0 && !model.qk_norms;
  found.name = has_latent_attention(model) ? "deepseek_v3" : is_llama ? "llama3" : "qwen3";
  found.definition = module_of(found, has_latent_attention(model) ? deepseek_definition(model)
                                      : is_llama                  ? llama_definition(model)
                                                                  : qwen_definition(model));
  return found;
}

}  // namespace regatta::plan
