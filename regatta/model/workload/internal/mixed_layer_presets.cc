#include "regatta/model/workload/internal/mixed_layer_presets.h"

#include <string>

namespace regatta::workload {
namespace {

// OpenAI, 2025 (gpt-oss model card), table 1: every second layer sees 128 tokens, heads have sinks,
// all matrices biases.
ModelPreset gpt_oss(const char* name, int layers, int experts) {
  ModelShape model = {.preset = name,
                      .layers = layers,
                      .hidden = 2880,
                      .heads = 64,
                      .ffn_hidden = 2880,
                      .seq = 4096,
                      .vocab = 201088,
                      .activation = Activation::kSwiglu,
                      .kv_heads = 8,
                      .head_dim = 64,
                      .positions = PositionEncoding::kRotary,
                      .norm = NormKind::kRmsNorm};
  model.attention_sinks = true;
  model.rope_theta = 150000;
  model.window = {.tokens = 128, .full_every = 2};
  model.experts = {.count = experts, .top_k = 4, .ffn_hidden = 2880};
  return {model, "OpenAI, 2025 (gpt-oss), table 1, and the published configuration"};
}

// Three of four layers see the tokens of their chunk; the fourth sees all, without positions.
ModelPreset llama4(const char* name, int experts, int every) {
  ModelShape model = {.preset = name,
                      .layers = 48,
                      .hidden = 5120,
                      .heads = 40,
                      .ffn_hidden = 16384,
                      .seq = 8192,
                      .vocab = 202048,
                      .activation = Activation::kSwiglu,
                      .kv_heads = 8,
                      .head_dim = 128,
                      .positions = PositionEncoding::kRotary,
                      .norm = NormKind::kRmsNorm,
                      .linear_biases = false};
  model.qk_norms = every == 1;
  model.rope_theta = 500000;
  model.window = {.tokens = 8192, .is_chunked = true, .full_every = 4};
  model.experts = {.count = experts, .shared = 1, .top_k = 1, .ffn_hidden = 8192, .every = every};
  return {model, "Meta AI, 2025, published configuration of Llama 4; its text part"};
}

struct NemotronSizes {
  int hidden;
  StateSpace state_space;
  Experts experts;
  std::string pattern;
};

// Squared ReLU, taken as GELU; no positions, which the state spaces have of their own.
ModelPreset nemotron3(const char* name, const NemotronSizes& sizes, const char* source) {
  ModelShape model = {.preset = name,
                      .layers = static_cast<int>(sizes.pattern.size()),
                      .hidden = sizes.hidden,
                      .heads = 32,
                      .ffn_hidden = sizes.experts.ffn_hidden,
                      .seq = 8192,
                      .vocab = 131072,
                      .kv_heads = 2,
                      .head_dim = 128,
                      .positions = PositionEncoding::kNone,
                      .norm = NormKind::kRmsNorm,
                      .linear_biases = false};
  model.state_space = sizes.state_space;
  model.experts = sizes.experts;
  model.layer_pattern = sizes.pattern;
  return {model, source};
}

}  // namespace

std::vector<ModelPreset> mixed_layer_presets() {
  const NemotronSizes nano = {
      .hidden = 2688,
      .state_space = {.heads = 64, .head_dim = 64, .state = 128, .groups = 8},
      .experts = {.count = 128, .shared = 2, .top_k = 6, .ffn_hidden = 1856},
      .pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"};
  const NemotronSizes super = {
      .hidden = 4096,
      .state_space = {.heads = 128, .head_dim = 64, .state = 128, .groups = 8},
      .experts = {.count = 512, .shared = 2, .top_k = 22, .ffn_hidden = 2688, .latent = 1024},
      .pattern =
          "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EM"
          "EMEMEME"};
  return {gpt_oss("gpt-oss-20b", 24, 32),
          gpt_oss("gpt-oss-120b", 36, 128),
          llama4("llama4-scout", 16, 1),
          llama4("llama4-maverick", 128, 2),
          nemotron3("nemotron3-nano", nano,
                    "NVIDIA, 2025 (Nemotron 3 Nano), table 1, and the published configuration"),
          nemotron3("nemotron3-super", super,
                    "NVIDIA, 2026 (Nemotron 3 Super), and the published configuration; "
                    "mtp_layers: 1 adds its prediction module")};
}

}  // namespace regatta::workload
