#include "regatta/model/workload/model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/text.h"
#include "regatta/model/workload/blocks.h"

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
  const long long few =
      (model.qk_norms ? 2LL * shape.key_dim : 0) + (model.attention_sinks ? heads : 0);
  if (!has_latent_attention(model)) {
    const long long kv_heads = shape.kv_heads;
    const bool bias = model.linear_biases || model.qkv_biases;
    return linear(h, (heads + 2 * kv_heads) * shape.key_dim, bias) + out + few;
  }
  const long long queries = heads * shape.key_dim;
  long long parameters = out + few;
  parameters += latent.query_rank == 0
                    ? h * queries
                    : h * latent.query_rank + norm_parameters(model, latent.query_rank) +
                          latent.query_rank * queries;
  // The short vector and the shared rotary key; then each head's plain key and value.
  parameters += h * (latent.kv_rank + latent.rotary_dim) + norm_parameters(model, latent.kv_rank);
  parameters += latent.kv_rank * heads * (latent.plain_dim + latent.value_dim);
  return parameters;
}

// An MLP or expert that takes tokens of width `h`.
// The two matrices beside one [in, out].
long long adapter(const ModelShape& model, bool has_one, long long in, long long out) {
  return has_one ? model.adapters.rank * (in + out) : 0;
}

long long attention_adapters(const ModelShape& model) {
  const AttentionShape shape = attention_shape(model);
  const Adapters& adapters = model.adapters;
  const LatentAttention& latent = model.latent;
  const long long h = model.hidden;
  const long long heads = shape.heads;
  const long long queries = heads * shape.key_dim;
  const long long out = adapter(model, adapters.proj, heads * shape.value_dim, h);
  if (!has_latent_attention(model)) {
    return out + adapter(model, adapters.qkv, h, (heads + 2LL * shape.kv_heads) * shape.key_dim);
  }
  const long long input = latent.query_rank > 0 ? latent.query_rank : h;
  return out + (latent.query_rank > 0 ? adapter(model, adapters.qkv, h, input) : 0) +
         adapter(model, adapters.qkv, input, queries) +
         adapter(model, adapters.qkv, h, latent.kv_rank + latent.rotary_dim) +
         adapter(model, adapters.qkv, latent.kv_rank,
                 heads * (latent.plain_dim + latent.value_dim));
}

// An MLP or expert that takes tokens of width `h`.
long long mlp_adapters(const ModelShape& model, long long h, long long width) {
  return adapter(model, model.adapters.fc1, h, (mlp_matrices(model) - 1) * width) +
         adapter(model, model.adapters.fc2, width, h);
}

long long mlp_parameters(const ModelShape& model, long long h, long long width) {
  return (mlp_matrices(model) - 1) * linear(h, width, model.linear_biases) +
         linear(width, h, model.linear_biases);
}

// In-projection, convolution with its bias, decay, skip and step of each head, gated norm and
// out-projection.
long long state_space_parameters(const ModelShape& model) {
  const StateSpace& space = model.state_space;
  const long long h = model.hidden;
  return linear(h, space.projected(), model.linear_biases) + space.convolved() * (space.conv + 1) +
         3LL * space.heads + space.inner() + linear(space.inner(), h, model.linear_biases);
}

// Operations of one token in the scores and the context of a block, forward.
double score_flops(const ModelShape& model, Mixer mixer) {
  const AttentionShape shape = attention_shape(model);
  int seen = model.packed > 0 ? std::min(model.packed, model.seq) : model.seq;
  if (mixer == Mixer::kWindowAttention) seen = std::min(model.window.tokens, seen);
  return 2.0 * shape.heads * (shape.key_dim + shape.value_dim) * seen;
}

// Operations of one token in the matrix products of a block's attention, forward.
double attention_flops(const ModelShape& model, Mixer mixer) {
  const AttentionShape shape = attention_shape(model);
  const double h = model.hidden;
  const double heads = shape.heads;
  const double scores = score_flops(model, mixer) / 2;
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

double mlp_flops(const ModelShape& model, double h, double width) {
  return 2 * mlp_matrices(model) * h * width;
}

double expert_flops(const ModelShape& model) {
  const Experts& experts = model.experts;
  const double h = model.hidden;
  return experts.top_k * mlp_flops(model, dispatched_width(model), experts.ffn_hidden) +
         experts.shared * mlp_flops(model, h, experts.ffn_hidden) +
         2 * h * (experts.count + 2.0 * experts.latent);  // the router, and there and back
}

// Operations of one token in the scan: scores and their sums within a chunk, the state that the
// chunk leaves, and the sum of the state that it finds.
double scan_flops(const ModelShape& model) {
  const StateSpace& space = model.state_space;
  const auto inner = static_cast<double>(space.inner());
  const double chunk = std::min(space.chunk, model.seq);
  return 2 * (static_cast<double>(space.groups) * space.state * chunk + inner * chunk +
              2 * inner * space.state);
}

double state_space_flops(const ModelShape& model) {
  const StateSpace& space = model.state_space;
  return 2.0 * model.hidden * static_cast<double>(space.projected() + space.inner()) +
         scan_flops(model);
}

// Those of a mixer that have no weights.
double mixing_flops(const ModelShape& model, Mixer mixer) {
  if (has_attention(mixer)) return score_flops(model, mixer);
  return mixer == Mixer::kStateSpace ? scan_flops(model) : 0;
}

// Operations of one token in the matrix products of a block, forward.
double block_flops(const ModelShape& model, BlockKind kind) {
  double flops = 0;
  if (has_attention(kind.mixer)) flops += attention_flops(model, kind.mixer);
  if (kind.mixer == Mixer::kStateSpace) flops += state_space_flops(model);
  if (kind.mlp == BlockMlp::kPlain) flops += mlp_flops(model, model.hidden, model.ffn_hidden);
  if (kind.mlp == BlockMlp::kExperts) flops += expert_flops(model);
  if (kind.predicts) flops += 2.0 * model.hidden * (2.0 * model.hidden + model.vocab);
  return flops;
}

void add_adapters(const ModelShape& model, BlockKind kind, LayerParameters& parameters) {
  const long long h = model.hidden;
  const Experts& experts = model.experts;
  if (has_attention(kind.mixer)) parameters.adapters += attention_adapters(model);
  if (kind.mlp == BlockMlp::kPlain) parameters.adapters += mlp_adapters(model, h, model.ffn_hidden);
  if (kind.mlp != BlockMlp::kExperts) return;
  if (experts.shared > 0)
    parameters.adapters +=
        mlp_adapters(model, h, static_cast<long long>(experts.shared) * experts.ffn_hidden);
  parameters.expert_adapters +=
      experts.count * mlp_adapters(model, dispatched_width(model), experts.ffn_hidden);
}

// Operations of one token in the matrix products of the model, forward, without adapters.
double forward_flops(const ModelShape& model) {
  const BlockCounts counts = all_blocks(model);
  double token = 2.0 * model.hidden * model.vocab;
  for (int kind = 0; kind < kBlockKinds; ++kind)
    if (counts[kind] > 0) token += counts[kind] * block_flops(model, block_kind(model, kind));
  return token;
}

}  // namespace

bool is_plain_gpt(const ModelShape& model) {
  const AttentionShape shape = attention_shape(model);
  return model.kind == ModelKind::kGpt && model.activation == Activation::kGelu &&
         model.positions == PositionEncoding::kLearned && model.norm == NormKind::kLayerNorm &&
         model.linear_biases && !model.qk_norms && !model.attention_sinks &&
         are_kinds_in_order(model) && model.mtp_layers == 0 && !has_experts(model) &&
         !has_latent_attention(model) && shape.kv_heads == model.heads &&
         shape.key_dim * model.heads == model.hidden;
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
  const double states = 3.0 * model.hidden * static_cast<double>(model.state_space.projected());
  const double layers = static_cast<double>(model.layers) + model.mtp_layers;
  return layers * (4.0 * width * heads * key_and_value + mlps + states) > kParametersMax;
}

LayerParameters block_parameters(const ModelShape& model, BlockKind kind) {
  const long long h = model.hidden;
  LayerParameters parameters{.norms = kind.parts() * norm_parameters(model, h)};
  if (has_attention(kind.mixer)) parameters.attention = attention_parameters(model);
  if (kind.mixer == Mixer::kStateSpace) parameters.attention = state_space_parameters(model);
  if (kind.mlp == BlockMlp::kPlain) parameters.mlp = mlp_parameters(model, h, model.ffn_hidden);
  if (kind.mlp == BlockMlp::kExperts) {
    const Experts& experts = model.experts;
    parameters.mlp = h * (experts.count + 2LL * experts.latent) +
                     experts.shared * mlp_parameters(model, h, experts.ffn_hidden);
    parameters.experts =
        experts.count * mlp_parameters(model, dispatched_width(model), experts.ffn_hidden);
  }
  add_adapters(model, kind, parameters);
  if (kind.predicts) {
    parameters.mlp += 2 * h * h;
    parameters.norms += 3 * norm_parameters(model, h);
  }
  return parameters;
}

LayerParameters dense_layer_parameters(const ModelShape& model) {
  return block_parameters(model, {});
}

LayerParameters expert_layer_parameters(const ModelShape& model) {
  return block_parameters(model, {.mlp = BlockMlp::kExperts});
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
  const BlockCounts counts = all_blocks(model);
  long long blocks = 0;
  for (int kind = 0; kind < kBlockKinds; ++kind) {
    if (counts[kind] > 0)
      blocks +=
          std::llround(counts[kind]) * block_parameters(model, block_kind(model, kind)).total();
  }
  return blocks + embedding_parameters(model) + head_parameters(model);
}

long long trained_parameters(const ModelShape& model) {
  if (!is_frozen(model)) return total_parameters(model);
  const BlockCounts counts = all_blocks(model);
  long long trained = 0;
  for (int kind = 0; kind < kBlockKinds; ++kind) {
    if (counts[kind] == 0) continue;
    const LayerParameters block = block_parameters(model, block_kind(model, kind));
    trained += std::llround(counts[kind]) * (block.adapters + block.expert_adapters);
  }
  return trained;
}

long long active_parameters(const ModelShape& model) {
  if (!has_experts(model)) return total_parameters(model);
  const BlockCounts counts = all_blocks(model);
  long long idle = 0;
  for (int kind = 0; kind < kBlockKinds; ++kind) {
    if (counts[kind] == 0) continue;
    const long long one =
        block_parameters(model, block_kind(model, kind)).of_experts() / model.experts.count;
    idle += std::llround(counts[kind]) * (model.experts.count - model.experts.top_k) * one;
  }
  return total_parameters(model) - idle;
}

Flops model_flops(const ModelShape& model, int samples) {
  const double token = forward_flops(model);
  if (!is_frozen(model)) return {3.0 * samples * model.seq * token};
  // The operations on frozen weights have one gradient, that of their input; all others two.
  const BlockCounts counts = all_blocks(model);
  double adapters = 0;
  double frozen = 2.0 * model.hidden * model.vocab;
  for (int kind = 0; kind < kBlockKinds; ++kind) {
    if (counts[kind] == 0) continue;
    const BlockKind block = block_kind(model, kind);
    const LayerParameters parameters = block_parameters(model, block);
    const double visited =
        has_experts(model) ? static_cast<double>(model.experts.top_k) / model.experts.count : 0;
    adapters += counts[kind] * 2 *
                (static_cast<double>(parameters.adapters) +
                 static_cast<double>(parameters.expert_adapters) * visited);
    frozen += counts[kind] * (block_flops(model, block) - mixing_flops(model, block.mixer));
  }
  return {1.0 * samples * model.seq * (3 * (token + adapters) - frozen)};
}

Flops recomputed_flops(const ModelShape& model, int samples, Recompute recompute) {
  const double tokens = static_cast<double>(samples) * model.seq;
  const BlockCounts counts = all_blocks(model);
  double scores = 0;
  double with_experts = 0;
  double with_both = 0;  // blocks with attention, too
  for (int kind = 0; kind < kBlockKinds; ++kind) {
    const BlockKind block = block_kind(model, kind);
    if (counts[kind] == 0) continue;
    if (block.mlp == BlockMlp::kExperts) with_experts += counts[kind];
    if (!has_attention(block.mixer)) continue;
    scores += counts[kind] * score_flops(model, block.mixer);
    if (block.mlp == BlockMlp::kExperts) with_both += counts[kind];
  }
  const double logits = 2.0 * model.hidden * model.vocab * (1 + model.mtp_layers);
  // Blocks with experts make the heads of latent attention again from their short vectors.
  const LatentAttention& latent = model.latent;
  const double made_heads =
      latent.query_rank * static_cast<double>(attention_shape(model).key_dim) +
      static_cast<double>(latent.kv_rank) * (latent.plain_dim + latent.value_dim);
  const double heads = 2.0 * with_both * model.heads * made_heads;
  switch (recompute) {
    case Recompute::kNone:
      return {};
    case Recompute::kSelective:
      return {tokens * scores};
    case Recompute::kPointwise:
      return {tokens * heads};
    case Recompute::kExperts:
      return {tokens * (heads + (with_experts > 0 ? with_experts * expert_flops(model) : 0))};
    case Recompute::kFull:
      return {tokens * (forward_flops(model) - logits)};
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
