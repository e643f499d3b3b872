#include "regatta/planning/plan/internal/launch/launch_torchtitan_model.h"

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"

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
  return fmt::format(
      "moe_inter_dim={}, moe_args=MoEArgs(num_experts={}, num_shared_experts={}, top_k={})",
      experts.ffn_hidden, experts.count, experts.shared, experts.top_k);
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
      "vocab_size={}, qk_norm=False, {}",
      model.hidden, model.layers, model.heads, attention.kv_heads, attention.key_dim,
      model.ffn_hidden, model.vocab, scalar_words(model));
  if (has_experts(model)) text += ", moe_enabled=True, " + expert_words(model);
  return text + ")";
}

std::string deepseek_definition(const ModelShape& model) {
  const workload::LatentAttention& latent = model.latent;
  return fmt::format(
      "DeepSeekV3ModelArgs(dim={}, n_layers={}, n_dense_layers={}, n_heads={}, inter_dim={}, "
      "vocab_size={}, q_lora_rank={}, kv_lora_rank={}, qk_nope_head_dim={}, qk_rope_head_dim={}, "
      "v_head_dim={}, {}, {})",
      model.hidden, model.layers, dense_layers(model), model.heads, model.ffn_hidden, model.vocab,
      latent.query_rank, latent.kv_rank, latent.plain_dim, latent.rotary_dim, latent.value_dim,
      scalar_words(model), expert_words(model));
}

}  // namespace

Status check_torchtitan_model(const ModelShape& model) {
  const auto lacks = [](std::string_view what) {
    return unsupported_by(Launcher::kTorchrun, fmt::format("none of its models has {}", what),
                          "take another model, or launch with megatron");
  };
  if (model.positions != workload::PositionEncoding::kRotary)
    return lacks("other than rotary positions");
  if (model.norm != workload::NormKind::kRmsNorm) return lacks("layer norms");
  if (model.activation != workload::Activation::kSwiglu) return lacks("an MLP without a gate");
  if (model.linear_biases || model.qkv_biases) return lacks("biases");
  if (model.tied_embeddings) return lacks("tied embeddings");
  if (has_latent_attention(model) && !has_experts(model))
    return lacks("latent attention without experts");
  if (!has_latent_attention(model) && has_experts(model) && model.experts.dense_layers > 0)
    return lacks("plain layers before those with experts, but for latent attention");
  return {};
}

TorchtitanModel torchtitan_model(const ModelShape& model) {
  if (is_unchanged(model)) {
    for (const Known& known : kKnown) {
      if (known.preset == model.preset)
        return {std::string(known.name), std::string(known.flavor), ""};
    }
  }
  const std::string flavor = model.preset.empty() ? "custom" : model.preset;
  if (has_latent_attention(model)) return {"deepseek_v3", flavor, deepseek_definition(model)};
  const bool is_llama = !has_experts(model) && model.head_dim == 0;
  if (is_llama) return {"llama3", flavor, llama_definition(model)};
  return {"qwen3", flavor, qwen_definition(model)};
}

}  // namespace regatta::plan
