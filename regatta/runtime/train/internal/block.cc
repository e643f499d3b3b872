#include "regatta/runtime/train/internal/block.h"

#include <ATen/ops/add.h>
#include <fmt/core.h>

namespace regatta::train {
namespace {

// residual + bias + x weight^T, the inner dimension of the product cut over the group. Rank 0
// brings the residual stream and the bias into the sum, so that no pass over the result follows it.
Tensor row_parallel_forward(const Linear& linear, const Tensor& x, const Tensor& residual,
                            TpGroup& tp) {
  Tensor y;
  if (tp.rank() == 0) {
    y = at::add(residual, linear.bias);
    matmul_add(y, linear.weight, x);
  } else {
    y = matmul_forward(linear.weight, x);
  }
  tp.all_reduce(y);
  return y;
}

// Backward of a column-parallel linear layer: dx is summed over the group while the parameter
// gradients are computed.
Tensor column_parallel_backward(Linear& linear, const Tensor& dy, const Tensor& x, TpGroup& tp) {
  Tensor dx = matmul_backward(linear.weight, dy);
  auto reduction = tp.start_all_reduce(dx, comm::ReduceOp::kSum);
  add_weight_gradient(linear.weight_gradient, dy, x);
  add_bias_gradient(linear.bias_gradient, dy);
  tp.wait(reduction);
  return dx;
}

Tensor row_parallel_backward(Linear& linear, const Tensor& dy, const Tensor& x) {
  add_weight_gradient(linear.weight_gradient, dy, x);
  add_bias_gradient(linear.bias_gradient, dy);
  return matmul_backward(linear.weight, dy);
}

void attention_part(const Block& block, BlockContext& context, BlockCache& cache) {
  cache.norm1 = norm_forward(block.norm1, cache.x);
  cache.qkv = linear_forward(block.qkv, cache.norm1.y);
  AttentionOutput attention = attention_forward(cache.qkv, context.mask, context.attention);
  cache.probabilities = attention.probabilities;
  cache.context = attention.context;
  cache.middle = row_parallel_forward(block.proj, cache.context, cache.x, context.tp);
}

void mlp_part(const Block& block, BlockCache& cache) {
  cache.norm2 = norm_forward(block.norm2, cache.middle);
  cache.up = linear_forward(block.up, cache.norm2.y);
  cache.activated = gelu_forward(cache.up);
}

}  // namespace

Block make_block(const Parameters& parameters, int layer) {
  const std::string name = fmt::format("block{}.", layer);
  const Parameter& mlp_last = parameters[name + "norm2.bias"];
  const Parameter& last = parameters[name + "norm1.bias"];
  return {.layer = layer,
          .norm1 = norm_of(parameters, name + "norm1"),
          .norm2 = norm_of(parameters, name + "norm2"),
          .qkv = linear_of(parameters, name + "qkv"),
          .proj = linear_of(parameters, name + "proj"),
          .up = linear_of(parameters, name + "up"),
          .down = linear_of(parameters, name + "down"),
          .mlp_end = mlp_last.offset + mlp_last.count,
          .end = last.offset + last.count};
}

Tensor block_forward(const Block& block, const Tensor& x, BlockContext& context,
                     BlockCache& cache) {
  cache.x = x;
  attention_part(block, context, cache);
  mlp_part(block, cache);
  return row_parallel_forward(block.down, cache.activated, cache.middle, context.tp);
}

void block_recompute(const Block& block, BlockContext& context, BlockCache& cache) {
  attention_part(block, context, cache);
  mlp_part(block, cache);
}

Tensor block_backward(Block& block, const Tensor& dy, BlockContext& context, BlockCache& cache,
                      const GradientsReady& ready) {
  TpGroup& tp = context.tp;
  Tensor dactivated = row_parallel_backward(block.down, dy, cache.activated);
  cache.activated.reset();
  Tensor dup = gelu_backward(dactivated, cache.up);
  dactivated.reset();
  cache.up.reset();
  Tensor dnorm = column_parallel_backward(block.up, dup, cache.norm2.y, tp);
  dup.reset();
  Tensor dmiddle = norm_backward(block.norm2, dnorm, cache.middle, cache.norm2);
  dmiddle.add_(dy);
  cache.norm2 = {};
  cache.middle.reset();
  ready(block.mlp_end);

  Tensor dcontext = row_parallel_backward(block.proj, dmiddle, cache.context);
  cache.context.reset();
  Tensor dqkv = attention_backward(dcontext, cache.qkv, cache.probabilities, context.attention);
  cache.qkv.reset();
  cache.probabilities.reset();
  dnorm = column_parallel_backward(block.qkv, dqkv, cache.norm1.y, tp);
  Tensor dx = norm_backward(block.norm1, dnorm, cache.x, cache.norm1);
  dx.add_(dmiddle);
  cache = {};
  ready(block.end);
  return dx;
}

}  // namespace regatta::train
