#include "regatta/model/workload/model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/text.h"

namespace regatta::workload {
namespace {

// By the value of the enumerator.
constexpr EnumNames<7> kPrecisionNames = {"fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4"};
constexpr EnumNames<2> kActivationNames = {"gelu", "swiglu"};
constexpr EnumNames<3> kPositionEncodingNames = {"learned", "rotary", "none"};
constexpr EnumNames<2> kNormKindNames = {"layernorm", "rmsnorm"};
static_assert(kPrecisionNames.size() == kPrecisions.size());
static_assert(kActivationNames.size() == kActivationKinds.size());
static_assert(kPositionEncodingNames.size() == kPositionEncodings.size());
static_assert(kNormKindNames.size() == kNormKinds.size());

// A matrix [in, out] and its bias.
long long linear(long long in, long long out, bool bias) {
  return in * out + (bias ? out : 0);
}

long long norm_parameters(const ModelShape& model, long long width) {
  return (model.norm == NormKind::kLayerNorm ? 2 : 1) * width;
}

// Queries, keys, values and the output projection.
long long attention_parameters(const ModelShape& model) {
  const AttentionShape shape = attention_shape(model);
  const long long h = model.hidden;
  const long long heads = shape.heads;
  const long long out = linear(heads * shape.value_dim, h, model.linear_biases);
  const LatentAttention& latent = model.latent;
  if (!has_latent_attention(model)) {
    const long long kv_heads = shape.kv_heads;
    const bool bias = model.linear_biases || model.qkv_biases;
    return linear(h, (heads + 2 * kv_heads) * shape.key_dim, bias) + out;
  }
  const long long queries = heads * shape.key_dim;
  long long parameters = out;
  parameters += latent.query_rank == 0
                    ? h * queries
                    : h * latent.query_rank + norm_parameters(model, latent.query_rank) +
                          latent.query_rank * queries;
  // The short vector and the shared rotary key; then each head's plain key and value.
  parameters += h * (latent.kv_rank + latent.rotary_dim) + norm_parameters(model, latent.kv_rank);
  parameters += latent.kv_rank * heads * (latent.plain_dim + latent.value_dim);
  return parameters;
}

long long mlp_parameters(const ModelShape& model, long long width) {
  const long long h = model.hidden;
  return (mlp_matrices(model) - 1) * linear(h, width, model.linear_biases) +
         linear(width, h, model.linear_biases);
}

LayerParameters without_mlp(const ModelShape& model) {
  return {.attention = attention_parameters(model),
          .norms = 2 * norm_parameters(model, model.hidden)};
}

// Operations of one token in the matrix products of a block's attention, forward.
double attention_flops(const ModelShape& model) {
  const AttentionShape shape = attention_shape(model);
  const double h = model.hidden;
  const double heads = shape.heads;
  const double scores = heads * (shape.key_dim + shape.value_dim) * model.seq;
  const double out = heads * shape.value_dim * h;
  const LatentAttention& latent = model.latent;
  if (!has_latent_attention(model))
    return 2 * (h * (heads + 2.0 * shape.kv_heads) * shape.key_dim + out + scores);
  const double queries = heads * shape.key_dim;
  const double q = latent.query_rank == 0 ? h * queries : latent.query_rank * (h + queries);
  const double kv = h * (latent.kv_rank + latent.rotary_dim) +
                    latent.kv_rank * heads * (latent.plain_dim + latent.value_dim);
  return 2 * (q + kv + out + scores);
}

double mlp_flops(const ModelShape& model, double width) {
  return 2 * mlp_matrices(model) * static_cast<double>(model.hidden) * width;
}

double expert_flops(const ModelShape& model) {
  const Experts& experts = model.experts;
  const double visited = experts.top_k + experts.shared;
  return visited * mlp_flops(model, experts.ffn_hidden) +
         2.0 * model.hidden * experts.count;  // the router
}

}  // namespace

bool is_plain_gpt(const ModelShape& model) {
  const AttentionShape shape = attention_shape(model);
  return model.kind == ModelKind::kGpt && model.activation == Activation::kGelu &&
         model.positions == PositionEncoding::kLearned && model.norm == NormKind::kLayerNorm &&
         model.linear_biases && !has_experts(model) && !has_latent_attention(model) &&
         shape.kv_heads == model.heads && shape.key_dim * model.heads == model.hidden;
}

AttentionShape attention_shape(const ModelShape& model) {
  const LatentAttention& latent = model.latent;
  if (has_latent_attention(model)) {
    return {.heads = model.heads,
            .kv_heads = model.heads,
            .key_dim = latent.plain_dim + latent.rotary_dim,
            .value_dim = latent.value_dim};
  }
  const int usual = model.heads > 0 ? model.hidden / model.heads : 0;
  const int dim = model.head_dim > 0 ? model.head_dim : usual;
  return {.heads = model.heads,
          .kv_heads = model.kv_heads > 0 ? model.kv_heads : model.heads,
          .key_dim = dim,
          .value_dim = dim};
}

int dense_layers(const ModelShape& model) {
  return has_experts(model) ? model.experts.dense_layers : model.layers;
}

bool is_too_large(const ModelShape& model) {
  constexpr double kParametersMax = 1e15;
  const AttentionShape shape = attention_shape(model);
  const Experts& experts = model.experts;
  const double width = std::max({model.hidden, model.latent.query_rank, model.latent.kv_rank});
  const double heads = shape.heads;
  const double key_and_value = static_cast<double>(shape.key_dim) + shape.value_dim;
  const double mlps = 3.0 * model.hidden *
                      (model.ffn_hidden + static_cast<double>(experts.ffn_hidden) *
                                              (1.0 + experts.count + experts.shared));
  return model.layers * (4.0 * width * heads * key_and_value + mlps) > kParametersMax;
}

LayerParameters dense_layer_parameters(const ModelShape& model) {
  LayerParameters parameters = without_mlp(model);
  parameters.mlp = mlp_parameters(model, model.ffn_hidden);
  return parameters;
}

LayerParameters expert_layer_parameters(const ModelShape& model) {
  const Experts& experts = model.experts;
  const long long one = mlp_parameters(model, experts.ffn_hidden);
  LayerParameters parameters = without_mlp(model);
  parameters.mlp = static_cast<long long>(model.hidden) * experts.count + experts.shared * one;
  parameters.experts = experts.count * one;
  return parameters;
}

long long layer_parameters(const ModelShape& model) {
  return has_experts(model) ? expert_layer_parameters(model).total()
                            : dense_layer_parameters(model).total();
}

long long embedding_parameters(const ModelShape& model) {
  const long long positions = model.positions == PositionEncoding::kLearned ? model.seq : 0;
  return (model.vocab + positions) * model.hidden;
}

long long head_parameters(const ModelShape& model) {
  const long long h = model.hidden;
  return norm_parameters(model, h) + (model.tied_embeddings ? 0 : h * model.vocab);
}

long long total_parameters(const ModelShape& model) {
  const long long dense = dense_layers(model);
  long long blocks = dense * dense_layer_parameters(model).total();
  if (has_experts(model)) blocks += (model.layers - dense) * expert_layer_parameters(model).total();
  return blocks + embedding_parameters(model) + head_parameters(model);
}

long long active_parameters(const ModelShape& model) {
  if (!has_experts(model)) return total_parameters(model);
  const Experts& experts = model.experts;
  const long long idle = experts.count - experts.top_k;
  const long long one = expert_layer_parameters(model).experts / experts.count;
  return total_parameters(model) - (model.layers - experts.dense_layers) * idle * one;
}

Flops model_flops(const ModelShape& model, int samples) {
  const double dense = dense_layers(model);
  double token = model.layers * attention_flops(model) + dense * mlp_flops(model, model.ffn_hidden);
  if (has_experts(model)) token += (model.layers - dense) * expert_flops(model);
  token += 2.0 * model.hidden * model.vocab;
  return {3.0 * samples * model.seq * token};
}

Flops recomputed_flops(const ModelShape& model, int samples, Recompute recompute) {
  const double tokens = static_cast<double>(samples) * model.seq;
  const AttentionShape shape = attention_shape(model);
  const double scores =
      2.0 * shape.heads * (shape.key_dim + shape.value_dim) * model.seq * model.layers;
  const double logits = 2.0 * model.hidden * model.vocab;
  // Blocks with experts make the heads of latent attention again from their short vectors.
  const LatentAttention& latent = model.latent;
  const double made_heads =
      latent.query_rank * static_cast<double>(shape.key_dim) +
      static_cast<double>(latent.kv_rank) * (latent.plain_dim + latent.value_dim);
  const double heads = 2.0 * (model.layers - dense_layers(model)) * model.heads * made_heads;
  switch (recompute) {
    case Recompute::kNone:
      return {};
    case Recompute::kSelective:
      return {tokens * scores};
    case Recompute::kPointwise:
      return {tokens * heads};
    case Recompute::kExperts:
      return {tokens * (heads + (model.layers - dense_layers(model)) * expert_flops(model))};
    case Recompute::kFull:
      return {model_flops(model, samples).value / 3 - tokens * logits};
  }
  return {};
}

std::string to_string(Precision precision) {
  return enum_name(kPrecisionNames, precision);
}
std::optional<Precision> precision_named(std::string_view name) {
  return parse_enum<Precision>(kPrecisionNames, name);
}

std::string to_string(Activation activation) {
  return enum_name(kActivationNames, activation);
}

std::string to_string(PositionEncoding positions) {
  return enum_name(kPositionEncodingNames, positions);
}

std::string to_string(NormKind norm) {
  return enum_name(kNormKindNames, norm);
}

std::string model_kind_name(const ModelShape& model) {
  if (model.kind == ModelKind::kEncoder) return "encoder";
  return has_experts(model) ? "moe" : "gpt";
}

}  // namespace regatta::workload
