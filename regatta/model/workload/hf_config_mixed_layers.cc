// The types of workload/internal/hf_config_values.h whose layers differ.
#include <algorithm>
#include <string>
#include <vector>

#include "regatta/model/workload/internal/hf_config_values.h"

namespace regatta::workload {
namespace {

// Every so many-th of `kinds` is full attention, and no other; 0 where none is.
int full_attention_every(const HfConfigValues& values, const std::vector<std::string>& kinds) {
  const auto first = std::find(kinds.begin(), kinds.end(), "full_attention");
  if (first == kinds.end()) return 0;
  const int every = static_cast<int>(first - kinds.begin()) + 1;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool is_full = (static_cast<int>(i) + 1) % every == 0;
    if (is_full != (kinds[i] == "full_attention")) {
      values.fail("layer_types",
                  "full attention does not come back evenly; write the sizes out "
                  "with a full_attention_every that is near it");
      return 0;
    }
  }
  return every;
}

// The letters of a layer_pattern, from either form of it.
std::string pattern_of(const HfConfigValues& values) {
  std::string pattern = values.text_or("hybrid_override_pattern", "");
  for (const std::string& block : values.texts("layers_block_type")) {
    const char letter = block == "mamba"       ? 'M'
                        : block == "attention" ? '*'
                        : block == "moe"       ? 'E'
                                               : '-';
    pattern += letter;
  }
  if (pattern.empty())
    values.fail("hybrid_override_pattern", "missing; add it as the model has it");
  return pattern;
}

}  // namespace

void read_hf_gpt_oss(const HfConfigValues& values, ModelShape& model) {
  model.qkv_biases = false;
  model.linear_biases = values.boolean_or("attention_bias", true);
  model.attention_sinks = true;
  model.window.tokens = values.size_or({"sliding_window"}, 0);
  const std::vector<std::string> kinds = values.texts("layer_types");
  if (model.window.tokens > 0)
    model.window.full_every = kinds.empty() ? 2 : full_attention_every(values, kinds);
}

// intermediate_size is that of an expert.
void read_hf_llama4(const HfConfigValues& values, ModelShape& model) {
  model.experts.ffn_hidden = values.size({"intermediate_size"});
  model.ffn_hidden = values.size({"intermediate_size_mlp"});
  model.experts.shared = 1;
  model.experts.every = std::max(1, values.size_or({"interleave_moe_layer_step"}, 1));
  model.rope_theta = values.number_or({"rope_theta"}, 500000);
  model.norm_eps = values.number_or({"rms_norm_eps"}, 1e-5);
  model.window = {.tokens = values.size_or({"attention_chunk_size"}, 0), .is_chunked = true};
  if (model.window.tokens > 0)
    model.window.full_every = values.size_or({"no_rope_layer_interval"}, 4);
  else
    model.window = {};
}

ModelShape read_hf_nemotron_h(const HfConfigValues& values) {
  ModelShape model = read_hf_sizes(values);
  model.ffn_hidden = values.size({"intermediate_size"});
  model.seq = values.size({"max_position_embeddings"});
  model.kv_heads = values.size_or({"num_key_value_heads"}, model.heads);
  model.head_dim = values.size_or({"head_dim", "attention_head_dim"}, 0);
  model.tied_embeddings = values.boolean_or("tie_word_embeddings", false);
  model.positions = PositionEncoding::kNone;
  model.norm = NormKind::kRmsNorm;
  model.norm_eps = values.number_or({"norm_eps", "layer_norm_epsilon", "rms_norm_eps"}, 1e-5);
  model.linear_biases = values.boolean_or("mlp_bias", false);
  model.layer_pattern = pattern_of(values);
  model.state_space = {.heads = values.size_or({"mamba_num_heads"}, 0),
                       .head_dim = values.size_or({"mamba_head_dim"}, 0),
                       .state = values.size_or({"ssm_state_size"}, 0),
                       .groups = std::max(1, values.size_or({"n_groups"}, 1)),
                       .conv = std::max(1, values.size_or({"conv_kernel"}, 4)),
                       .chunk = std::max(1, values.size_or({"chunk_size"}, 128))};
  if (values.size_or({"n_routed_experts"}, 0) > 0) {
    read_hf_experts(values, model);
    model.experts.latent = values.size_or({"moe_latent_size"}, 0);
  }
  model.mtp_layers = values.size_or({"num_nextn_predict_layers"}, 0);
  return model;
}

}  // namespace regatta::workload
