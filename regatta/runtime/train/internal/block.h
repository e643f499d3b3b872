// train/internal/block.h: one transformer block of a GPT decoder (pre-norm), forward and backward,
// tensor parallel over a group as in Shoeybi et al., "Megatron-LM", 2019: heads and ffn columns are
// cut, one all-reduce after attention and one after the MLP in each direction. There is no
// autograd: the backward pass is written out, so that the group reduces the gradient of the input
// while the weight gradient is computed, and the moment when each gradient is final is known.
#pragma once

#include <functional>

#include "regatta/runtime/train/internal/tp_group.h"
#include "regatta/runtime/train/ops.h"

namespace regatta::train {

struct Block {
  int layer = 0;  // of the full model
  NormLayer norm1, norm2;
  Linear qkv, proj, up, down;
  // Where this block's gradients lie in the flat array: the MLP's end before attention's.
  std::int64_t mlp_end = 0;
  std::int64_t end = 0;
};
Block make_block(const Parameters& parameters, int layer);

// The activations of one micro-batch for backward. With recomputation forward keeps only x.
struct BlockCache {
  Tensor x;
  NormOutput norm1;
  Tensor qkv, probabilities, context;
  Tensor middle;  // x after attention
  NormOutput norm2;
  Tensor up, activated;
};

struct BlockContext {
  TpGroup& tp;
  AttentionDims attention;
  Tensor mask;
};

// x, result: [tokens, hidden], whole on every rank of the group; identical bits on all of them.
Tensor block_forward(const Block& block, const Tensor& x, BlockContext& context, BlockCache& cache);

// Fills `cache` again from cache.x: the forward pass without its last product and all-reduce,
// whose result is not needed.
void block_recompute(const Block& block, BlockContext& context, BlockCache& cache);

// dy: [tokens, hidden], whole. Returns dx. Adds this micro-batch's parameter gradients, and calls
// `ready(end)` whenever all gradients of the flat array before `end` are complete for this block.
// Frees the tensors of the cache after their use.
using GradientsReady = std::function<void(std::int64_t end)>;
Tensor block_backward(Block& block, const Tensor& dy, BlockContext& context, BlockCache& cache,
                      const GradientsReady& ready);

}  // namespace regatta::train
