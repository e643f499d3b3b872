#include <string>
#include <string_view>
#include <vector>

#include "regatta/model/workload/internal/mixed_layer_presets.h"
#include "regatta/model/workload/model.h"

namespace regatta::workload {
namespace {

// A decoder with learned positions, biases, GELU and ffn_hidden = 4 hidden.
struct GptRow {
  const char* name;
  int layers;
  int hidden;
  int heads;
  int seq;
  int vocab;
  const char* source;
};

constexpr const char* kGpt2 = "Radford et al., 2019, table 2; vocabulary padded to 128";
constexpr const char* kGpt3 = "Brown et al., 2020, table 2.1; vocabulary padded to 51200";
constexpr const char* kMegatron = "Narayanan et al., SC'21, table 1";

// 50257 words divide by no useful tp, so they are padded as Megatron-LM does. All have the output
// layer tied to the token table.
constexpr GptRow kGptRows[] = {
    {"gpt2-small", 12, 768, 12, 1024, 50304, kGpt2},
    {"gpt2-medium", 24, 1024, 16, 1024, 50304, kGpt2},
    {"gpt2-large", 36, 1280, 20, 1024, 50304, kGpt2},
    {"gpt2-xl", 48, 1600, 25, 1024, 50304, kGpt2},
    {"gpt3-2.7b", 32, 2560, 32, 2048, 51200, kGpt3},
    {"gpt3-6.7b", 32, 4096, 32, 2048, 51200, kGpt3},
    // The paper prints a hidden size of 5140; 40 heads of 128 make 5120.
    {"gpt3-13b", 40, 5120, 40, 2048, 51200, kGpt3},
    {"gpt3-175b", 96, 12288, 96, 2048, 51200, kGpt3},
    {"megatron-1.7b", 24, 2304, 24, 2048, 51200, kMegatron},
    {"megatron-3.6b", 30, 3072, 32, 2048, 51200, kMegatron},
    {"megatron-7.5b", 36, 4096, 32, 2048, 51200, kMegatron},
    {"megatron-18.4b", 40, 6144, 48, 2048, 51200, kMegatron},
    {"megatron-39.1b", 48, 8192, 64, 2048, 51200, kMegatron},
    {"megatron-76.1b", 60, 10240, 80, 2048, 51200, kMegatron},
    {"megatron-145.6b", 80, 12288, 96, 2048, 51200, kMegatron},
    {"megatron-310.1b", 96, 16384, 128, 2048, 51200, kMegatron},
    {"megatron-529.6b", 105, 20480, 128, 2048, 51200, kMegatron},
    {"megatron-1008b", 128, 25600, 160, 2048, 51200, kMegatron},
};

ModelPreset preset_of(const GptRow& row) {
  return {.model = {.kind = ModelKind::kGpt,
                    .preset = row.name,
                    .layers = row.layers,
                    .hidden = row.hidden,
                    .heads = row.heads,
                    .ffn_hidden = 4 * row.hidden,
                    .seq = row.seq,
                    .vocab = row.vocab,
                    .activation = Activation::kGelu,
                    .tied_embeddings = true},
          .source = row.source};
}

// A decoder with rotary positions, RMS norm, SwiGLU, grouped queries and no biases, untied.
struct LlamaRow {
  const char* name;
  int layers;
  int hidden;
  int heads;
  int kv_heads;
  int ffn_hidden;
  int seq;
  int vocab;
  const char* source;
};

constexpr const char* kLlama2 =
    "Touvron et al., 2023 (Llama 2), table 1, and the published configuration";
constexpr const char* kLlama3 = "Grattafiori et al., 2024 (Llama 3), table 3";
constexpr const char* kLlama32 = "Meta AI, 2024, published configuration of Llama 3.2";
constexpr const char* kMistral = "Jiang et al., 2023 (Mistral 7B), table 1";
constexpr const char* kMixtral = "Jiang et al., 2024 (Mixtral of Experts), table 1";
constexpr const char* kMixtral22 = "Mistral AI, 2024, published configuration of Mixtral 8x22B";
constexpr const char* kQwen2 =
    "Yang et al., 2024 (Qwen2), table 1, and the published configuration";
constexpr const char* kDeepSeekV2 = "DeepSeek-AI, 2024 (DeepSeek-V2), section 3.1.2";
constexpr const char* kDeepSeekV2Lite = "DeepSeek-AI, 2024 (DeepSeek-V2), appendix B";
constexpr const char* kDeepSeekV3 =
    "DeepSeek-AI, 2024 (DeepSeek-V3), section 4.2; mtp_layers: 1 adds its prediction module";
constexpr const char* kQwen3 =
    "Yang et al., 2025 (Qwen3), tables 1 and 2, and the published configuration";
constexpr const char* kKimi = "Moonshot AI, 2025 (Kimi K2), table 2, published configuration";

constexpr LlamaRow kLlamaRows[] = {
    {"llama2-7b", 32, 4096, 32, 32, 11008, 4096, 32000, kLlama2},
    {"llama2-13b", 40, 5120, 40, 40, 13824, 4096, 32000, kLlama2},
    {"llama2-70b", 80, 8192, 64, 8, 28672, 4096, 32000, kLlama2},
    {"llama3-8b", 32, 4096, 32, 8, 14336, 8192, 128256, kLlama3},
    {"llama3-70b", 80, 8192, 64, 8, 28672, 8192, 128256, kLlama3},
    {"llama3-405b", 126, 16384, 128, 8, 53248, 8192, 128256, kLlama3},
    {"llama3.2-1b", 16, 2048, 32, 8, 8192, 8192, 128256, kLlama32},
    {"llama3.2-3b", 28, 3072, 24, 8, 8192, 8192, 128256, kLlama32},
    {"mistral-7b", 32, 4096, 32, 8, 14336, 8192, 32000, kMistral},
    {"mixtral-8x7b", 32, 4096, 32, 8, 14336, 8192, 32000, kMixtral},
    {"mixtral-8x22b", 56, 6144, 48, 8, 16384, 8192, 32768, kMixtral22},
    {"qwen2-7b", 28, 3584, 28, 4, 18944, 4096, 152064, kQwen2},
    {"qwen2-72b", 80, 8192, 64, 8, 29568, 4096, 152064, kQwen2},
    {"deepseek-v2-lite", 27, 2048, 16, 16, 10944, 4096, 102400, kDeepSeekV2Lite},
    {"deepseek-v2", 60, 5120, 128, 128, 12288, 4096, 102400, kDeepSeekV2},
    {"deepseek-v3", 61, 7168, 128, 128, 18432, 4096, 129280, kDeepSeekV3},
    {"qwen3-0.6b", 28, 1024, 16, 8, 3072, 4096, 151936, kQwen3},
    {"qwen3-1.7b", 28, 2048, 16, 8, 6144, 4096, 151936, kQwen3},
    {"qwen3-4b", 36, 2560, 32, 8, 9728, 4096, 151936, kQwen3},
    {"qwen3-8b", 36, 4096, 32, 8, 12288, 4096, 151936, kQwen3},
    {"qwen3-14b", 40, 5120, 40, 8, 17408, 4096, 151936, kQwen3},
    {"qwen3-32b", 64, 5120, 64, 8, 25600, 4096, 151936, kQwen3},
    {"qwen3-30b-a3b", 48, 2048, 32, 4, 6144, 4096, 151936, kQwen3},
    {"qwen3-235b-a22b", 94, 4096, 64, 4, 12288, 4096, 151936, kQwen3},
    {"kimi-k2", 61, 7168, 64, 64, 18432, 4096, 163840, kKimi},
};

ModelPreset preset_of(const LlamaRow& row) {
  return {.model = {.kind = ModelKind::kGpt,
                    .preset = row.name,
                    .layers = row.layers,
                    .hidden = row.hidden,
                    .heads = row.heads,
                    .ffn_hidden = row.ffn_hidden,
                    .seq = row.seq,
                    .vocab = row.vocab,
                    .activation = Activation::kSwiglu,
                    .tied_embeddings = false,
                    .kv_heads = row.kv_heads,
                    .positions = PositionEncoding::kRotary,
                    .norm = NormKind::kRmsNorm,
                    .linear_biases = false},
          .source = row.source};
}

// As the published configurations have them.
void complete_scalars(ModelShape& model) {
  const auto is = [&](std::string_view family) { return model.preset.starts_with(family); };
  if (is("llama3")) model.rope_theta = 500000;
  if (is("mixtral") || is("qwen")) model.rope_theta = 1e6;
  if (is("kimi")) model.rope_theta = 50000;
  if (is("qwen") || is("deepseek") || is("kimi")) model.norm_eps = 1e-6;
}

// Fills in the sizes that the rows above leave out.
void complete(ModelShape& model) {
  complete_scalars(model);
  constexpr LatentAttention kLatent{
      .query_rank = 1536, .kv_rank = 512, .plain_dim = 128, .rotary_dim = 64, .value_dim = 128};
  if (model.preset.starts_with("qwen2")) model.qkv_biases = true;
  if (model.preset.starts_with("mixtral"))
    model.experts = {.count = 8, .top_k = 2, .ffn_hidden = model.ffn_hidden};
  if (model.preset == "deepseek-v2-lite") {
    model.latent = kLatent;
    model.latent.query_rank = 0;
    model.experts = {.count = 64, .shared = 2, .top_k = 6, .ffn_hidden = 1408, .dense_layers = 1};
  }
  if (model.preset == "deepseek-v2") {
    model.latent = kLatent;
    model.experts = {.count = 160, .shared = 2, .top_k = 6, .ffn_hidden = 1536, .dense_layers = 1};
    model.experts.groups = 8;
    model.experts.top_groups = 3;
  }
  if (model.preset == "deepseek-v3") {
    model.latent = kLatent;
    model.experts = {.count = 256, .shared = 1, .top_k = 8, .ffn_hidden = 2048, .dense_layers = 3};
    model.experts.groups = 8;
    model.experts.top_groups = 4;
  }
  if (model.preset == "kimi-k2") {
    model.latent = kLatent;
    model.experts = {.count = 384, .shared = 1, .top_k = 8, .ffn_hidden = 2048, .dense_layers = 1};
  }
  if (model.preset == "qwen3-30b-a3b")
    model.experts = {.count = 128, .top_k = 8, .ffn_hidden = 768};
  if (model.preset == "qwen3-235b-a22b")
    model.experts = {.count = 128, .top_k = 8, .ffn_hidden = 1536};
  if (model.preset.starts_with("qwen3-")) model.head_dim = 128;
  if (model.preset.starts_with("qwen3-")) model.qk_norms = !has_experts(model);
  for (const char* small : {"llama3.2-1b", "llama3.2-3b", "qwen3-0.6b", "qwen3-1.7b", "qwen3-4b"})
    if (model.preset == small) model.tied_embeddings = true;
}

// Published models that no row above fits.
std::vector<ModelPreset> other_presets() {
  std::vector<ModelPreset> made;
  ModelShape bloom = {.preset = "bloom-176b",
                      .layers = 70,
                      .hidden = 14336,
                      .heads = 112,
                      .ffn_hidden = 57344,
                      .seq = 2048,
                      .vocab = 250880,
                      .tied_embeddings = true};
  bloom.positions = PositionEncoding::kNone;
  made.push_back({bloom, "BigScience, 2022 (BLOOM), table 3: ALiBi, vocabulary padded to 250880"});
  ModelShape nemotron = {.preset = "nemotron4-340b",
                         .layers = 96,
                         .hidden = 18432,
                         .heads = 96,
                         .ffn_hidden = 73728,
                         .seq = 4096,
                         .vocab = 256000};
  nemotron.kv_heads = 8;
  nemotron.positions = PositionEncoding::kRotary;
  nemotron.linear_biases = false;
  made.push_back(
      {nemotron, "NVIDIA, 2024 (Nemotron-4 340B), table 1: squared ReLU, taken as GELU"});
  ModelShape bert = {.kind = ModelKind::kEncoder,
                     .preset = "bert-large",
                     .layers = 24,
                     .hidden = 1024,
                     .heads = 16,
                     .ffn_hidden = 4096,
                     .seq = 512,
                     .vocab = 30592,
                     .tied_embeddings = true};
  bert.norm_eps = 1e-12;
  made.push_back({bert, "Devlin et al., 2019, section 3; vocabulary padded to 128"});
  return made;
}

const std::vector<ModelPreset>& presets() {
  static const std::vector<ModelPreset> all = [] {
    std::vector<ModelPreset> made;
    for (const GptRow& row : kGptRows)
      made.push_back(preset_of(row));
    for (const LlamaRow& row : kLlamaRows) {
      made.push_back(preset_of(row));
      complete(made.back().model);
    }
    for (const ModelPreset& other : other_presets())
      made.push_back(other);
    for (const ModelPreset& mixed : mixed_layer_presets())
      made.push_back(mixed);
    return made;
  }();
  return all;
}

}  // namespace

const ModelPreset* find_model_preset(std::string_view name) {
  for (const ModelPreset& preset : presets()) {
    if (preset.model.preset == name) return &preset;
  }
  return nullptr;
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : presets())
    names.push_back(preset.model.preset);
  return names;
}

}  // namespace regatta::workload
