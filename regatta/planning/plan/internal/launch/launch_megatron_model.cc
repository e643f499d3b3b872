#include "regatta/planning/plan/internal/launch/launch_megatron_model.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/model/workload/blocks.h"
#include "regatta/planning/plan/internal/launch/model_details.h"

namespace regatta::plan {
namespace {

using workload::ModelShape;
using workload::Strategy;

// Blocks of every part of the model in its order, as Megatron-LM's layout writes them: E the
// embedding, t a block, m a module that predicts, L the loss.
std::string layout_text(const std::vector<int>& layers, int modules) {
  std::string text;
  for (const int count : layers) {
    text += text.empty() ? 'E' : '|';
    if (count > 0) text += fmt::format("t*{}", count);
  }
  return text + std::string(static_cast<std::size_t>(modules), 'm') + "L";
}

void add_latent_attention(FlagArray& flags, const ModelShape& model, const ModelDetails& details) {
  const workload::LatentAttention& latent = model.latent;
  flags.add("--multi-latent-attention");
  if (latent.query_rank > 0) flags.add("--q-lora-rank", latent.query_rank);
  flags.add("--kv-lora-rank", latent.kv_rank);
  flags.add("--qk-head-dim", latent.plain_dim);
  flags.add("--qk-pos-emb-head-dim", latent.rotary_dim);
  flags.add("--v-head-dim", latent.value_dim);
  flags.add("--qk-layernorm");  // of the short vectors
  const bool is_yarn = details.rope_scaling == RopeScaling::kYarn;
  flags.add("--rope-type", is_yarn ? "yarn" : "rope");
  if (!is_yarn) return;
  flags.add("--rotary-scaling-factor", details.rope_factor);
  flags.add("--mscale", details.yarn_mscale);
  flags.add("--mscale-all-dim", details.yarn_mscale);
}

void add_attention(FlagArray& flags, const ModelShape& model, const ModelDetails& details) {
  const workload::AttentionShape shape = attention_shape(model);
  flags.add("--num-attention-heads", model.heads);
  if (has_latent_attention(model)) return add_latent_attention(flags, model, details);
  flags.add("--kv-channels", shape.key_dim);
  if (shape.kv_heads != shape.heads) {
    flags.add("--group-query-attention");
    flags.add("--num-query-groups", shape.kv_heads);
  }
  if (model.qk_norms) flags.add("--qk-layernorm");
  if (model.attention_sinks) flags.add("--softmax-type", "learnable");
  if (model.window.tokens > 0) {
    flags.add("--window-size", window_text(model));
    if (model.window.full_every > 0) flags.add("--window-attn-skip-freq", model.window.full_every);
  }
}

void add_activation(FlagArray& flags, const ModelShape& model, const ModelDetails& details) {
  if (details.has_clamped_gate) {
    flags.add("--quick-geglu");
    flags.add("--activation-func-clamp-value", kGateClamp);
    flags.add("--glu-linear-offset", "1.0");
  } else if (model.activation == workload::Activation::kSwiglu) {
    flags.add("--swiglu");
  } else if (details.has_squared_relu) {
    flags.add("--squared-relu");
  }
}

// State-space layers between the others, each of which is one part of a block.
void add_layer_pattern(FlagArray& flags, const ModelShape& model) {
  const workload::StateSpace& space = model.state_space;
  flags.add("--is-hybrid-model");
  flags.add_expanded("--spec", "megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec");
  flags.add("--hybrid-override-pattern", hybrid_pattern(model));
  flags.add("--mamba-num-heads", space.heads);
  flags.add("--mamba-head-dim", space.head_dim);
  flags.add("--mamba-state-dim", space.state);
  flags.add("--mamba-num-groups", space.groups);
}

void add_positions(FlagArray& flags, const ModelShape& model, const ModelDetails& details) {
  switch (model.positions) {
    case workload::PositionEncoding::kLearned:
      flags.add("--position-embedding-type", "learned_absolute");
      return;
    case workload::PositionEncoding::kNone:
      flags.add("--position-embedding-type", "none");
      return;
    case workload::PositionEncoding::kRotary:
      break;
  }
  flags.add("--position-embedding-type", "rope");
  flags.add("--rotary-base", static_cast<long long>(model.rope_theta));
  flags.add("--rotary-percent", "1.0");
  if (details.rope_scaling != RopeScaling::kLlama3) return;
  flags.add("--use-rope-scaling");
  flags.add("--rope-scaling-factor", details.rope_factor);
}

void add_router(FlagArray& flags, const ModelShape& model) {
  const ModelDetails details = model_details(model);
  flags.add("--moe-router-topk", model.experts.top_k);
  flags.add("--moe-router-score-function", details.has_sigmoid_router ? "sigmoid" : "softmax");
  if (details.weighs_all_experts) flags.add("--moe-router-pre-softmax");
  if (model.experts.groups > 0) {
    flags.add("--moe-router-num-groups", model.experts.groups);
    flags.add("--moe-router-group-topk", model.experts.top_groups);
  }
  if (details.router_scaling > 0)
    flags.add("--moe-router-topk-scaling-factor", details.router_scaling);
  if (details.has_router_bias) {
    flags.add("--moe-router-enable-expert-bias");
    flags.add("--moe-router-bias-update-rate", 1e-3);
  }
  flags.add("--moe-router-dtype", "fp32");
  flags.add("--moe-router-load-balancing-type", details.balancing);
  flags.add("--moe-aux-loss-coeff", details.balancing_coefficient);
}

}  // namespace

std::string window_text(const ModelShape& model) {
  return fmt::format("({},0)", model.window.tokens - 1);
}

std::string hybrid_pattern(const ModelShape& model) {
  std::string pattern = model.layer_pattern;
  for (int i = 0; i < model.mtp_layers; ++i)
    pattern += has_experts(model) ? "/*E" : "/*-";
  return pattern;
}

std::string expert_layers(const ModelShape& model) {
  const workload::Experts& experts = model.experts;
  if (!model.layer_pattern.empty() || (experts.dense_layers == 0 && experts.every == 1)) return "";
  std::string text;
  int end = 0;
  for (int layer = 0; layer < model.layers; layer = end) {
    const auto kind = [&](int i) { return block_kind(model, block_kind_of_layer(model, i)).mlp; };
    while (end < model.layers && kind(end) == kind(layer))
      ++end;
    const int value = kind(layer) == workload::BlockMlp::kExperts ? 1 : 0;
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", value, end - layer);
  }
  return "(" + text + ")";
}

std::vector<std::string> recomputed_modules(const ModelShape& model,
                                            workload::Recompute recompute) {
  if (!needs_experts(recompute)) return {};
  std::vector<std::string> modules = {"layernorm"};
  if (has_latent_attention(model)) modules.emplace_back("mla_up_proj");
  modules.emplace_back(recompute == workload::Recompute::kExperts ? "moe" : "moe_act");
  return modules;
}

std::string fp8_recipe(workload::Recompute recompute) {
  return needs_experts(recompute) ? "tensorwise" : "delayed";
}

MegatronStages megatron_stages(const ModelShape& model, const Strategy& strategy) {
  if (strategy.pp == 1) return {};
  const std::vector<int> layers = layers_of_parts(model, strategy);
  if (are_equal(layers))
    return {.layers_per_part = strategy.virtual_stages > 1 ? layers.front() : 0, .layout = {}};
  if (strategy.virtual_stages == 1 && are_equal(std::span(layers).subspan(1, layers.size() - 2)))
    return {.first_layers = layers.front(), .last_layers = layers.back(), .layout = {}};
  return {.layout = layout_text(layers, model.mtp_layers)};
}

std::vector<std::string> vocabulary_notes(const LaunchInput& input) {
  const long long multiple = static_cast<long long>(kVocabularyMultiple) * input.strategy.tp;
  const long long padded = (input.model.vocab + multiple - 1) / multiple * multiple;
  if (padded == input.model.vocab) return {};
  return {fmt::format("The vocabulary of {} is padded to {}, a multiple of {} x tp.",
                      input.model.vocab, padded, kVocabularyMultiple)};
}

FlagArray megatron_model_flags(const ModelShape& model) {
  const ModelDetails details = model_details(model);
  FlagArray flags("MODEL");
  flags.add("--num-layers", model.layers);
  flags.add("--hidden-size", model.hidden);
  flags.add("--ffn-hidden-size", model.ffn_hidden);
  add_attention(flags, model, details);
  flags.add("--seq-length", model.seq);
  flags.add("--max-position-embeddings", model.seq);
  add_positions(flags, model, details);
  const bool is_rms = model.norm == workload::NormKind::kRmsNorm;
  flags.add("--normalization", is_rms ? "RMSNorm" : "LayerNorm");
  flags.add("--norm-epsilon", model.norm_eps);
  add_activation(flags, model, details);
  if (!model.layer_pattern.empty()) add_layer_pattern(flags, model);
  if (model.mtp_layers > 0) flags.add("--mtp-num-layers", model.mtp_layers);
  if (!model.tied_embeddings) flags.add("--untie-embeddings-and-output-weights");
  if (!model.linear_biases) flags.add("--disable-bias-linear");
  if (!model.linear_biases && model.qkv_biases) flags.add("--add-qkv-bias");
  flags.add("--make-vocab-size-divisible-by", kVocabularyMultiple);
  return flags;
}

FlagArray megatron_expert_flags(const LaunchInput& input) {
  const ModelShape& model = input.model;
  const workload::Experts& experts = model.experts;
  FlagArray flags("EXPERTS");
  flags.add("--num-experts", experts.count);
  flags.add("--expert-model-parallel-size", input.strategy.ep);
  flags.add("--expert-tensor-parallel-size", input.strategy.expert_tp());
  flags.add("--moe-ffn-hidden-size", experts.ffn_hidden);
  if (experts.shared > 0)
    flags.add("--moe-shared-expert-intermediate-size", experts.shared * experts.ffn_hidden);
  if (experts.latent > 0) flags.add("--moe-latent-size", experts.latent);
  if (const std::string layers = expert_layers(model); !layers.empty())
    flags.add("--moe-layer-freq", layers);
  add_router(flags, model);
  if (experts.capacity > 0) flags.add("--moe-expert-capacity-factor", experts.capacity);
  flags.add("--moe-token-dispatcher-type", "alltoall");
  flags.add("--moe-permute-fusion");
  const bool is_bf16 = input.precision != workload::Precision::kFp16 &&
                       input.precision != workload::Precision::kFp32;
  if (is_bf16) flags.add("--moe-grouped-gemm");
  return flags;
}

}  // namespace regatta::plan
