// workload/model.h: the shape of a model, and the operations and parameters of its layers.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::workload {

enum class ModelKind {
  kGpt,      // decoder: each token sees those before it
  kEncoder,  // each token sees all
};
enum class Activation { kGelu, kSwiglu };  // SwiGLU has a third matrix, the gate
inline constexpr std::array kActivationKinds = {Activation::kGelu, Activation::kSwiglu};
enum class PositionEncoding {
  kLearned,  // a table of seq x hidden
  kRotary,   // turned into queries and keys
  kNone,     // none, or a bias of the scores (ALiBi)
};
inline constexpr std::array kPositionEncodings = {
    PositionEncoding::kLearned, PositionEncoding::kRotary, PositionEncoding::kNone};
enum class NormKind { kLayerNorm, kRmsNorm };  // with a bias and without
inline constexpr std::array kNormKinds = {NormKind::kLayerNorm, NormKind::kRmsNorm};

// Keys and values of a token share one short vector, from which each head makes its own: Multi-head
// Latent Attention, DeepSeek-V2 (2024), section 2.1.
struct LatentAttention {
  int query_rank = 0;  // of the short vector of the queries; 0: they are made from the input
  int kv_rank = 0;     // of that of keys and values; 0: the model has no latent attention
  int plain_dim = 0;   // of a head's query and key: the part without position,
  int rotary_dim = 0;  // and that with it, which all heads share in the key
  int value_dim = 0;

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

// Attention of which a query sees only tokens near its own.
struct AttentionWindow {
  int tokens = 0;           // that it sees, itself included; 0: every layer sees all
  bool is_chunked = false;  // they begin where its chunk of so many tokens does, as in Llama 4
  int full_every = 0;       // every so many-th layer sees all; 0: none does

  friend bool operator==(const AttentionWindow&, const AttentionWindow&) = default;
};

// The MLP of a block as experts, of which each token visits the shared ones and top_k of the rest.
struct Experts {
  int count = 0;         // those that tokens are routed to; 0: the model has none
  int shared = 0;        // those that every token visits
  int top_k = 0;         // experts a token is routed to
  int ffn_hidden = 0;    // of one expert
  int groups = 0;        // equal parts of the experts, of which a token is routed to top_groups;
  int top_groups = 0;    // 0: it may go to any (DeepSeek-V3, 2024, section 2.1.2)
  int latent = 0;        // width that tokens are projected to for the routed ones; 0: hidden
  int dense_layers = 0;  // the first blocks have the plain MLP of ffn_hidden
  int every = 1;        // of the rest, so do all but every so many-th, counted from the first block
  double capacity = 0;  // a token beyond so many times the mean load is dropped; 0: none is
  double imbalance = 1;  // tokens of the fullest rank of experts over the mean, >= 1

  // The share of the experts that one token may be routed to.
  double reach() const { return groups > 0 ? static_cast<double>(top_groups) / groups : 1; }

  friend bool operator==(const Experts&, const Experts&) = default;
};

// Mixing of tokens by a state that each hands to the next, computed chunk by chunk: Mamba-2 (Dao
// and Gu, "Transformers are SSMs", 2024, sections 6 and 7).
struct StateSpace {
  int heads = 0;  // 0: the model has none
  int head_dim = 0;
  int state = 0;    // size of the state of one channel of a head
  int groups = 1;   // of heads that share what writes and reads their states
  int conv = 4;     // tokens of the convolution before it
  int chunk = 128;  // tokens

  friend bool operator==(const StateSpace&, const StateSpace&) = default;

  long long inner() const { return static_cast<long long>(heads) * head_dim; }
  // Channels of the convolution: the inner ones, and what writes and reads the states.
  long long convolved() const { return inner() + 2LL * groups * state; }
  // A token is projected to these, a gate, and the time step of each head.
  long long projected() const { return convolved() + inner() + heads; }
};

// Two trained matrices of a low rank beside each of some whose weights are frozen, like all others
// of the model: LoRA (Hu et al., 2021). The names are Megatron's.
struct Adapters {
  int rank = 0;       // 0: the model has none, and all its weights are trained
  bool qkv = false;   // beside the projections to queries, keys and values
  bool proj = false;  // beside the output projection of the attention
  bool fc1 = false;   // beside what leads into an MLP or expert
  bool fc2 = false;   // beside what leads out of it

  friend bool operator==(const Adapters&, const Adapters&) = default;
};

// A model of pre-norm blocks (workload/blocks.h) between an embedding and an output layer. The
// output layer has no bias and is untied unless `tied_embeddings`. A GPT of the defaults has
// 12 h^2 + 13 h parameters in a block when ffn_hidden = 4 h.
struct ModelShape {
  ModelKind kind = ModelKind::kGpt;
  std::string preset;  // the preset's name, when one was used
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int ffn_hidden = 0;
  int seq = 0;  // tokens of one sample
  int vocab = 0;
  Activation activation = Activation::kGelu;
  bool tied_embeddings = false;
  int kv_heads = 0;  // heads of keys and values, a divisor of `heads`; 0: as many (multi-head)
  int head_dim = 0;  // 0: hidden / heads
  PositionEncoding positions = PositionEncoding::kLearned;
  NormKind norm = NormKind::kLayerNorm;
  bool linear_biases = true;     // of the matrices of a block
  bool qkv_biases = false;       // of queries, keys and values where the others have none
  bool qk_norms = false;         // of each head's query and key, RMS
  bool attention_sinks = false;  // a score of each head, to which no value belongs
  // These change the trained weights, but no time and no memory.
  double rope_theta = 10000;  // base of the angles of rotary positions
  double norm_eps = 1e-5;     // added to the variance
  LatentAttention latent;
  AttentionWindow window;
  Experts experts;
  StateSpace state_space;
  // A letter for each layer, where a layer is one part of a block alone: M a state space, * the
  // attention, - the MLP, E the experts. Empty: every layer has attention and an MLP or experts.
  std::string layer_pattern;
  // Modules behind the blocks, each of which predicts one token further: two norms, a projection of
  // two hidden states to one, a block with experts if the model has them, and the output layer
  // again (DeepSeek-V3, 2024, section 2.2).
  int mtp_layers = 0;
  // The mean number of tokens of the samples that are packed into one of `seq` tokens, and of which
  // none sees another; 0: none are.
  int packed = 0;
  Adapters adapters;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

// Whether it is a GPT of the defaults: multi-head attention over all tokens, learned positions,
// layer norms, biases and a plain MLP with GELU.
bool is_plain_gpt(const ModelShape& model);

// Sizes of the attention of one block, for any kind of it.
struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int key_dim = 0;    // of one head's query and key
  int value_dim = 0;  // of one head's value
};
AttentionShape attention_shape(const ModelShape& model);

inline bool has_experts(const ModelShape& model) {
  return model.experts.count > 0;
}
inline bool has_latent_attention(const ModelShape& model) {
  return model.latent.kv_rank > 0;
}
// Whether adapters alone are trained.
inline bool is_frozen(const ModelShape& model) {
  return model.adapters.rank > 0;
}
// Whether a trained model is tuned: adapters, or on packed samples.
inline bool is_tuned(const ModelShape& model) {
  return is_frozen(model) || model.packed > 0;
}
// The width of a token as it is sent to the routed experts.
inline int dispatched_width(const ModelShape& model) {
  return model.experts.latent > 0 ? model.experts.latent : model.hidden;
}
// Matrices of an MLP or expert: 2, with a gate 3.
inline int mlp_matrices(const ModelShape& model) {
  return model.activation == Activation::kSwiglu ? 3 : 2;
}
// Blocks with the plain MLP that come first; all without experts.
int dense_layers(const ModelShape& model);

// Whether the sizes, each of which is below 2^31, make more than 10^15 parameters in the blocks:
// counts of parameters and operations stay within 63 bits below that.
bool is_too_large(const ModelShape& model);

enum class Precision {
  kFp32,
  kTf32,  // products of fp32 with 10 bits of mantissa
  kFp16,
  kBf16,
  kFp8,    // products; all else in bf16
  kMxfp8,  // the same with a scale for each 32 elements
  kNvfp4,  // products in 4 bits, with a scale for each 16 elements; all else in bf16
};
inline constexpr std::array kPrecisions = {Precision::kFp32, Precision::kTf32, Precision::kFp16,
                                           Precision::kBf16, Precision::kFp8,  Precision::kMxfp8,
                                           Precision::kNvfp4};

// Whether products read elements of eight bits or fewer, and all else is bf16.
inline bool is_eight_bits_or_less(Precision precision) {
  return precision == Precision::kFp8 || precision == Precision::kMxfp8 ||
         precision == Precision::kNvfp4;
}

// Bytes of one element of an activation.
inline int bytes_per_element(Precision precision) {
  return precision == Precision::kFp32 || precision == Precision::kTf32 ? 4 : 2;
}

// Parameters of the parts of a block.
struct LayerParameters {
  long long attention = 0;  // or of what stands in its place
  long long norms = 0;
  long long mlp = 0;              // plain; of a block with experts: all but the routed ones
  long long experts = 0;          // the experts that tokens are routed to, all of them
  long long adapters = 0;         // beside all but those
  long long expert_adapters = 0;  // beside those

  long long of_experts() const { return experts + expert_adapters; }
  long long total() const { return attention + norms + mlp + adapters + of_experts(); }
};
LayerParameters dense_layer_parameters(const ModelShape& model);
LayerParameters expert_layer_parameters(const ModelShape& model);  // requires has_experts()

// One block of a model without experts, or of the blocks with experts of one that has them.
long long layer_parameters(const ModelShape& model);
long long embedding_parameters(const ModelShape& model);  // token + learned position tables
long long head_parameters(
    const ModelShape& model);  // final norm + output layer (the norm alone if tied)
long long total_parameters(const ModelShape& model);
// All, or of a frozen model the adapters.
long long trained_parameters(const ModelShape& model);
// The parameters that one token uses: without the experts that it is not routed to.
long long active_parameters(const ModelShape& model);

// Model floating-point operations of one step (forward + backward = 3 x forward, no recomputation)
// for `samples` sequences: matrix products only, 2 m n k each, scores over the whole sequence
// (Narayanan et al., SC'21, appendix), or over the tokens of a window or of a packed sample. Frozen
// weights have no gradient: their backward is as long as their forward.
Flops model_flops(const ModelShape& model, int samples);

// The activations that the device computes again for the backward; never those of the output layer.
enum class Recompute {
  kNone,
  kSelective,  // scores, softmax and context alone: Korthikanti et al., 2022, section 5
  // With experts: norms, activation functions, and the heads made from short vectors (DeepSeek-V3,
  // 2024, section 3.2.3; Megatron-Core's modules layernorm, moe_act and mla_up_proj),
  kPointwise,
  kExperts,  // and all of the experts, their exchange included (its module moe).
  kFull,
};
Flops recomputed_flops(const ModelShape& model, int samples, Recompute recompute);

std::string to_string(Precision precision);  // "bf16"; precision_named() is the inverse
std::optional<Precision> precision_named(std::string_view name);
std::string to_string(Activation activation);       // "gelu", "swiglu"
std::string to_string(PositionEncoding positions);  // "learned", "rotary", "none"
std::string to_string(NormKind norm);               // "layernorm", "rmsnorm"
// "gpt", "encoder", "moe": a decoder with experts.
std::string model_kind_name(const ModelShape& model);

// Published models by name, each with its source.

struct ModelPreset {
  ModelShape model;    // model.preset is the name
  std::string source;  // paper and table
};

// nullptr when there is no preset of that name.
const ModelPreset* find_model_preset(std::string_view name);

// In the order of the table, for the remedies of messages.
std::vector<std::string> model_preset_names();

}  // namespace regatta::workload
