#include <algorithm>

#include "regatta/model/cost/internal/gpu_state_space.h"
#include "regatta/model/cost/memory.h"

namespace regatta::cost {
namespace {

using workload::BlockKind;
using workload::BlockMlp;
using workload::Mixer;
using workload::Precision;
using workload::Recompute;

// Bytes that a block keeps for one token, by what divides them.
struct PerToken {
  double whole = 0;   // held by every tensor rank unless they share the tokens
  double shared = 0;  // divided by the tensor ranks
  double scores = 0;  // of attention that is not fused: shared, too, and recomputed selectively
  // Held by every rank of an expert, each of which has what all of them sent (Megatron-Core,
  // MoEAlltoAllTokenDispatcher, gathers it before the experts).
  double gathered = 0;
};
PerToken operator+(const PerToken& a, const PerToken& b) {
  return {a.whole + b.whole, a.shared + b.shared, a.scores + b.scores, a.gathered + b.gathered};
}
PerToken operator-(const PerToken& a, const PerToken& b) {
  return {a.whole - b.whole, a.shared - b.shared, a.scores - b.scores, a.gathered - b.gathered};
}

// Whether the input of a product is kept: it serves the gradient of the weights, or an adapter.
bool keeps_input(const workload::ModelShape& model, bool has_adapter) {
  return !is_frozen(model) || has_adapter;
}

PerToken attention_bytes(const SoftwareStack& stack, const RankWork& work, double element) {
  const workload::ModelShape& model = work.model;
  const workload::AttentionShape shape = attention_shape(model);
  const double h = model.hidden;
  const double heads = shape.heads;
  const bool has_dropout = stack.traits.has_dropout;
  PerToken bytes;
  bytes.whole = 2 * element * h + (has_dropout ? h : 0);  // inputs of norm and product, a mask
  bytes.shared = element * (heads * shape.key_dim + heads * shape.value_dim +
                            shape.kv_heads * (shape.key_dim + shape.value_dim));
  if (has_latent_attention(model))
    bytes.whole += element * (model.latent.query_rank + model.latent.kv_rank);
  if (!keeps_input(model, model.adapters.qkv)) bytes.whole -= element * h;
  if (model.qk_norms) bytes.shared += element * (heads + shape.kv_heads) * shape.key_dim;
  // Softmax, its dropped form and the mask; fused: a sum for each row.
  const double keys = static_cast<double>(model.seq);
  bytes.scores = stack.traits.flash_attention
                     ? 4 * heads
                     : heads * keys * (element + (has_dropout ? element + 1 : 0));
  return bytes;
}

double visits(const workload::Experts& experts) {
  return experts.top_k * experts.imbalance;
}

// A visit keeps the token as its expert read it, its widths, and, where the weighted sum comes
// after them, what its expert made of it. Operands of products in 8 bits are kept as such.
PerToken expert_bytes(const SoftwareStack& stack, const RankWork& work, double element,
                      double operand) {
  const workload::ModelShape& model = work.model;
  const workload::Experts& experts = model.experts;
  const double before = mlp_matrices(model) - 1;  // widths before the activation function
  const double output = stack.traits.weighs_before_output ? 0 : element;
  const double sent = keeps_input(model, model.adapters.fc1) ? operand : 0;
  const double after = keeps_input(model, model.adapters.fc2) ? operand : 0;
  const double width = visits(experts) * dispatched_width(model);
  return {.whole = width * output,
          .shared =
              (visits(experts) + experts.shared) * experts.ffn_hidden * (element * before + after),
          .gathered = width * sent};
}

// All of a tensor rank's are its own.
PerToken mixer_bytes(const SoftwareStack& stack, const RankWork& work, double element,
                     Mixer mixer) {
  if (has_attention(mixer)) return attention_bytes(stack, work, element);
  if (mixer == Mixer::kNone) return {};
  const double h = work.model.hidden;
  return {.whole = 2 * element * h + (stack.traits.has_dropout ? h : 0),
          .shared = state_space_bytes(work, element) * work.tp};
}

PerToken mlp_bytes(const SoftwareStack& stack, const RankWork& work, double element, double operand,
                   BlockMlp kind) {
  if (kind == BlockMlp::kNone) return {};
  const workload::ModelShape& model = work.model;
  const double h = model.hidden;
  // Widths before the activation function, and after.
  const double inner = mlp_matrices(model) - (keeps_input(model, model.adapters.fc2) ? 0 : 1);
  PerToken bytes;
  bytes.whole = (keeps_input(model, model.adapters.fc1) ? 2 : 1) * element * h +
                (stack.traits.has_dropout ? h : 0);
  if (kind == BlockMlp::kPlain) {
    bytes.shared = element * inner * model.ffn_hidden;
    return bytes;
  }
  return bytes + expert_bytes(stack, work, element, operand);
}

// The outputs of the activation functions of experts.
double activation_bytes(const workload::ModelShape& model, double operand) {
  if (!keeps_input(model, model.adapters.fc2)) return 0;
  const workload::Experts& experts = model.experts;
  return operand * experts.ffn_hidden * (visits(experts) + experts.shared);
}

// Bytes that Recompute::kPointwise makes again: the outputs of norms and activation functions, and
// heads from short vectors; the context stays.
PerToken pointwise_bytes(const RankWork& work, double element, double operand, BlockKind kind) {
  const workload::ModelShape& model = work.model;
  const workload::AttentionShape shape = attention_shape(model);
  const workload::Adapters& adapters = model.adapters;
  const int norms = kind.parts() -
                    (has_attention(kind.mixer) && !keeps_input(model, adapters.qkv) ? 1 : 0) -
                    (keeps_input(model, adapters.fc1) ? 0 : 1);
  PerToken bytes{.whole = norms * element * model.hidden};
  bytes.shared = activation_bytes(model, operand);
  if (has_latent_attention(model) && has_attention(kind.mixer))
    bytes.shared += element * shape.heads * (2.0 * shape.key_dim + shape.value_dim);
  return bytes;
}

}  // namespace

BlockMemory gpu_block_memory(const SoftwareStack& stack, const RankWork& work, Recompute recompute,
                             Precision precision, BlockKind kind) {
  const double element = bytes_per_element(precision);
  const PerToken attention = mixer_bytes(stack, work, element, kind.mixer);
  // Stacks that weigh before the output are those that keep operands in 8 bits.
  const bool keeps_operands = stack.traits.weighs_before_output && is_eight_bits_or_less(precision);
  const double operand = keeps_operands ? 1 : element;
  PerToken mlp = mlp_bytes(stack, work, element, operand, kind.mlp);
  // Both hidden states, their norms and the final one.
  if (kind.predicts) mlp.whole += 5 * element * work.model.hidden;
  const double tokens = work.tokens();
  // The ranks of an expert hold the same tokens already where they do not share them.
  const double own = work.sequence_parallel ? 1.0 / work.tp : 1;
  const double gathered = work.sequence_parallel ? own * work.etp : 1;
  const auto of_rank = [&](const PerToken& bytes) {
    return tokens * (bytes.whole * own + bytes.gathered * gathered +
                     (bytes.shared + bytes.scores) / work.tp);
  };
  BlockMemory memory;
  const PerToken block = attention + mlp;
  const double all = of_rank(block);
  // While the backward goes through it, about half of it has a gradient.
  memory.working = 1.5 * all;
  if (kind.mlp != BlockMlp::kExperts && needs_experts(recompute)) recompute = Recompute::kNone;
  switch (recompute) {
    case Recompute::kNone:
      memory.kept = all;
      break;
    case Recompute::kSelective:
      memory.kept = of_rank(block - PerToken{.scores = block.scores});
      break;
    case Recompute::kPointwise:
      memory.kept = of_rank(block - pointwise_bytes(work, element, operand, kind));
      break;
    case Recompute::kExperts: {
      // The activation functions of the experts are in both.
      const PerToken twice{.shared = activation_bytes(work.model, operand)};
      memory.kept = of_rank(block - pointwise_bytes(work, element, operand, kind) -
                            expert_bytes(stack, work, element, operand) + twice);
      break;
    }
    case Recompute::kFull:
      // Its input; tensor ranks that share the tokens keep a share of it.
      memory.kept = tokens * element * work.model.hidden / (work.sequence_parallel ? work.tp : 1);
      break;
  }
  return memory;
}

double gpu_logits_memory(const RankWork& work) {
  // In 16 bits, in fp32 for the loss, and their gradient.
  constexpr double kLogitBytes = 8;
  return kLogitBytes * work.tokens() * work.model.vocab / work.tp;
}

double expert_copies(const workload::Strategy& strategy) {
  return static_cast<double>(strategy.stage_ranks()) /
         (static_cast<double>(strategy.ep) * strategy.expert_tp());
}

Shards shards_of(const workload::Strategy& strategy) {
  const double replicas = static_cast<double>(strategy.dp) * strategy.cp;
  const double copies = expert_copies(strategy);
  const double most = strategy.shard_ranks > 0 ? strategy.shard_ranks : std::max(replicas, copies);
  return {.plain = std::min(replicas, most), .experts = std::min(copies, most)};
}

double updated_parameters(const workload::Strategy& strategy, const RankParameters& held) {
  const RankParameters trained = held.trained();
  if (strategy.zero == 0) return trained.total();
  const Shards shards = shards_of(strategy);
  return trained.plain / shards.plain + trained.experts / shards.experts;
}

bool shares_gradients(const workload::Strategy& strategy) {
  return strategy.zero == 3 || (strategy.zero == 2 && strategy.pp == 1);
}

GpuMemory gpu_state_memory(const SoftwareStack& stack, const RankParameters& parameters,
                           const workload::Strategy& strategy, Precision precision) {
  const StackTraits& traits = stack.traits;
  const bool is_mixed = bytes_per_element(precision) == 2;
  const double weight = is_mixed ? 2 : 4;
  const double gradient = is_mixed ? traits.held_gradient_bytes : 4;
  const double state = is_mixed ? traits.state_bytes : 8;
  const Shards shards = shards_of(strategy);
  const auto divided = [&](const RankParameters& some, double bytes, bool is_shared) {
    if (!is_shared) return bytes * some.total();
    return bytes * (some.plain / shards.plain + some.experts / shards.experts);
  };
  const RankParameters trained = parameters.trained();
  GpuMemory memory;
  memory.weights = divided(parameters, weight, strategy.zero == 3);
  memory.gradients = divided(trained, gradient, shares_gradients(strategy));
  const bool is_outside = strategy.offload == workload::Offload::kOptimizer ||
                          strategy.offload == workload::Offload::kBoth;
  if (!is_outside) memory.optimizer = divided(trained, state, strategy.zero >= 1);
  // The block that is computed and the one that is fetched meanwhile, and a gradient.
  if (strategy.zero == 3) memory.working += parameters.largest_block * (2 * weight + weight);
  memory.context = static_cast<double>(traits.context.value);
  return memory;
}

}  // namespace regatta::cost
