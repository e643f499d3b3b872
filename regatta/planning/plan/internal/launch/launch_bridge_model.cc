// Fields: megatron/bridge/models/{gpt_provider,mla_provider,mamba/mamba_provider}.py and
// megatron/core/transformer/transformer_config.py, megatron/core/model_parallel_config.py.
#include "regatta/planning/plan/internal/launch/launch_bridge_model.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/planning/plan/internal/launch/launch_megatron_model.h"
#include "regatta/planning/plan/internal/launch/model_details.h"

namespace regatta::plan {
namespace {

using workload::ModelShape;
using workload::Precision;
using workload::Recompute;
using workload::Strategy;

void add_sizes(PythonCall& call, const ModelShape& model) {
  call.add("num_layers", model.layers);
  call.add("hidden_size", model.hidden);
  call.add("ffn_hidden_size", model.ffn_hidden);
  call.add("num_attention_heads", model.heads);
  call.add("seq_length", model.seq);
  call.add("vocab_size", model.vocab);
  call.add_truth("should_pad_vocab", true);
  call.add("make_vocab_size_divisible_by", kVocabularyMultiple);
}

void add_attention_fields(PythonCall& call, const ModelShape& model, const ModelDetails& details) {
  if (!has_latent_attention(model)) {
    call.add("num_query_groups", attention_shape(model).kv_heads);
    call.add("kv_channels", attention_shape(model).key_dim);
    call.add_truth("qk_layernorm", model.qk_norms);
    if (model.attention_sinks) call.add_word("softmax_type", "learnable");
    if (model.window.tokens > 0) call.add("window_size", window_text(model));
    if (model.window.full_every > 0) call.add("window_attn_skip_freq", model.window.full_every);
    return;
  }
  const workload::LatentAttention& latent = model.latent;
  if (latent.query_rank > 0)
    call.add("q_lora_rank", latent.query_rank);
  else
    call.add("q_lora_rank", "None");
  call.add("kv_lora_rank", latent.kv_rank);
  call.add("qk_head_dim", latent.plain_dim);
  call.add("qk_pos_emb_head_dim", latent.rotary_dim);
  call.add("v_head_dim", latent.value_dim);
  call.add_truth("qk_layernorm", true);
  const bool is_yarn = details.rope_scaling == RopeScaling::kYarn;
  call.add_word("rope_type", is_yarn ? "yarn" : "rope");
  if (!is_yarn) return;
  call.add("rotary_scaling_factor", details.rope_factor);
  call.add("mscale", details.yarn_mscale);
  call.add("mscale_all_dim", details.yarn_mscale);
}

std::string position_word(const ModelShape& model) {
  switch (model.positions) {
    case workload::PositionEncoding::kLearned:
      return "learned_absolute";
    case workload::PositionEncoding::kRotary:
      return "rope";
    case workload::PositionEncoding::kNone:
      break;
  }
  return "none";
}

void add_activation_fields(PythonCall& call, const ModelShape& model, const ModelDetails& details) {
  const bool is_gated = model.activation == workload::Activation::kSwiglu;
  call.add_truth("gated_linear_unit", is_gated);
  call.add("activation_func", activation_function(model));
  if (!details.has_clamped_gate) return;
  call.add("activation_func_clamp_value", kGateClamp);
  call.add("glu_linear_offset", "1.0");
}

void add_form(PythonCall& call, const LaunchInput& input) {
  const ModelShape& model = input.model;
  const bool is_rotary = model.positions == workload::PositionEncoding::kRotary;
  call.add_word("position_embedding_type", position_word(model));
  if (is_rotary) {
    call.add("rotary_base", static_cast<long long>(model.rope_theta));
    call.add("rotary_percent", "1.0");
  }
  const bool is_rms = model.norm == workload::NormKind::kRmsNorm;
  call.add_word("normalization", is_rms ? "RMSNorm" : "LayerNorm");
  call.add("layernorm_epsilon", model.norm_eps);
  add_activation_fields(call, model, model_details(model));
  call.add_truth("share_embeddings_and_output_weights", model.tied_embeddings);
  call.add_truth("add_bias_linear", model.linear_biases);
  call.add_truth("add_qkv_bias", model.linear_biases || model.qkv_biases);
  call.add("attention_dropout", input.dropout);
  call.add("hidden_dropout", input.dropout);
}

void add_router_fields(PythonCall& call, const ModelShape& model) {
  const ModelDetails details = model_details(model);
  call.add("moe_router_topk", model.experts.top_k);
  call.add_word("moe_router_score_function", details.has_sigmoid_router ? "sigmoid" : "softmax");
  call.add_truth("moe_router_pre_softmax", details.weighs_all_experts);
  if (model.experts.groups > 0) {
    call.add("moe_router_num_groups", model.experts.groups);
    call.add("moe_router_group_topk", model.experts.top_groups);
  }
  if (details.router_scaling > 0)
    call.add("moe_router_topk_scaling_factor", details.router_scaling);
  call.add_truth("moe_router_enable_expert_bias", details.has_router_bias);
  if (details.has_router_bias) call.add("moe_router_bias_update_rate", 1e-3);
  call.add_word("moe_router_dtype", "fp32");
  call.add_word("moe_router_load_balancing_type", details.balancing);
  call.add("moe_aux_loss_coeff", details.balancing_coefficient);
}

void add_expert_fields(PythonCall& call, const LaunchInput& input) {
  const workload::Experts& experts = input.model.experts;
  call.add("num_moe_experts", experts.count);
  call.add("expert_model_parallel_size", input.strategy.ep);
  call.add("expert_tensor_parallel_size", input.strategy.expert_tp());
  call.add("moe_ffn_hidden_size", experts.ffn_hidden);
  if (experts.shared > 0)
    call.add("moe_shared_expert_intermediate_size", experts.shared * experts.ffn_hidden);
  if (experts.latent > 0) call.add("moe_latent_size", experts.latent);
  if (const std::string layers = expert_layers(input.model); !layers.empty())
    call.add("moe_layer_freq", layers);
  add_router_fields(call, input.model);
  if (experts.capacity > 0) call.add("moe_expert_capacity_factor", experts.capacity);
  call.add_word("moe_token_dispatcher_type", "alltoall");
  call.add_truth("moe_permute_fusion", true);
  call.add_truth("moe_grouped_gemm",
                 input.precision != Precision::kFp16 && input.precision != Precision::kFp32);
}

void add_degrees(PythonCall& call, const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  call.add("tensor_model_parallel_size", strategy.tp);
  call.add_truth("sequence_parallel", strategy.sequence_parallel && strategy.tp > 1);
  call.add("pipeline_model_parallel_size", strategy.pp);
  const MegatronStages stages = megatron_stages(input.model, strategy);
  if (strategy.virtual_stages > 1)
    call.add("virtual_pipeline_model_parallel_size", strategy.virtual_stages);
  if (stages.first_layers > 0) {
    call.add("num_layers_in_first_pipeline_stage", stages.first_layers);
    call.add("num_layers_in_last_pipeline_stage", stages.last_layers);
  }
  if (!stages.layout.empty()) call.add_word("pipeline_model_parallel_layout", stages.layout);
  call.add("context_parallel_size", strategy.cp);
  if (strategy.cp > 1) {
    const bool is_ring = strategy.context == workload::ContextParallelism::kRing;
    call.add_word("cp_comm_type", is_ring ? "p2p" : "a2a");
  }
  if (strategy.recompute == Recompute::kSelective)
    call.add_word("recompute_granularity", "selective");
  if (const auto modules = recomputed_modules(input.model, strategy.recompute); !modules.empty()) {
    call.add_word("recompute_granularity", "selective");
    call.add("recompute_modules", fmt::format("[\"{}\"]", join(modules, "\", \"")));
  }
  if (strategy.recompute == Recompute::kFull) {
    call.add_word("recompute_granularity", "full");
    call.add_word("recompute_method", "uniform");
    call.add("recompute_num_layers", 1);
  }
}

void add_pattern_fields(PythonCall& call, const ModelShape& model) {
  const workload::StateSpace& space = model.state_space;
  call.add_word("hybrid_override_pattern", hybrid_pattern(model));
  call.add("mamba_num_heads", space.heads);
  call.add("mamba_head_dim", space.head_dim);
  call.add("mamba_state_dim", space.state);
  call.add("mamba_num_groups", space.groups);
}

}  // namespace

BridgeProvider bridge_provider(const ModelShape& model) {
  if (!model.layer_pattern.empty()) return {"mamba.mamba_provider", "MambaModelProvider"};
  if (has_latent_attention(model)) return {"mla_provider", "MLAModelProvider"};
  return {"gpt_provider", "GPTModelProvider"};
}

std::string activation_function(const ModelShape& model) {
  const ModelDetails details = model_details(model);
  if (details.has_clamped_gate) return "quick_gelu";
  if (model.activation == workload::Activation::kSwiglu) return "torch.nn.functional.silu";
  return details.has_squared_relu ? "squared_relu" : "torch.nn.functional.gelu";
}

std::string python_word(std::string_view text) {
  std::string word = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') word += '\\';
    word += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return word + "\"";
}

std::string python_word(bool is_true) {
  return is_true ? "True" : "False";
}

std::string PythonCall::text(int indent) const {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string text = name_ + "(\n";
  for (const std::string& line : lines_)
    text += margin + "    " + line + "\n";
  return text + margin + ")";
}

PythonCall bridge_model(const LaunchInput& input) {
  const ModelDetails details = model_details(input.model);
  PythonCall call(bridge_provider(input.model).name);
  add_sizes(call, input.model);
  add_attention_fields(call, input.model, details);
  add_form(call, input);
  if (!input.model.layer_pattern.empty()) add_pattern_fields(call, input.model);
  if (input.model.mtp_layers > 0) call.add("mtp_num_layers", input.model.mtp_layers);
  if (has_experts(input.model)) add_expert_fields(call, input);
  add_degrees(call, input);
  return call;
}

}  // namespace regatta::plan
