#include "regatta/runtime/train/internal/embedding_and_head.h"

#include <utility>

#include <ATen/ops/amax.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/item.h>
#include <ATen/ops/log.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

namespace regatta::train {
namespace {

// Where `ids` lie in rows [first, first + count): 1 inside and 0 outside, as bool.
Tensor inside(const Tensor& ids, std::int64_t first, std::int64_t count) {
  return ids.ge(first).logical_and_(ids.lt(first + count));
}

}  // namespace

Embedding make_embedding(const Parameters& parameters, int tp_rank) {
  const Parameter& token = parameters["token.weight"];
  const Parameter& position = parameters["position.weight"];
  return {token.value, position.value, token.gradient, position.gradient,
          tp_rank * token.value.size(0)};
}

Tensor embedding_forward(const Embedding& embedding, const Tensor& tokens, TpGroup& tp) {
  const std::int64_t seq = embedding.position.size(0);
  const std::int64_t hidden = embedding.position.size(1);
  const std::int64_t rows = embedding.token.size(0);
  Tensor x;
  if (tp.size() == 1) {
    x = embedding.token.index_select(0, tokens);
  } else {
    const Tensor is_local = inside(tokens, embedding.vocab_first, rows);
    const Tensor local = tokens.sub(embedding.vocab_first).mul_(is_local);
    x = embedding.token.index_select(0, local).mul_(is_local.unsqueeze(1));
  }
  if (tp.rank() == 0) x.view({seq, -1, hidden}).add_(embedding.position.unsqueeze(1));
  tp.all_reduce(x);
  return x;
}

void embedding_backward(Embedding& embedding, const Tensor& dx, const Tensor& tokens) {
  const std::int64_t seq = embedding.position.size(0);
  const std::int64_t hidden = embedding.position.size(1);
  const std::int64_t rows = embedding.token.size(0);
  const Tensor dx_fp32 = dx.to(at::kFloat);
  embedding.position_gradient.add_(dx_fp32.view({seq, -1, hidden}).sum(1));
  const Tensor chosen = at::nonzero(inside(tokens, embedding.vocab_first, rows)).squeeze(1);
  embedding.token_gradient.index_add_(0, tokens.index_select(0, chosen).sub_(embedding.vocab_first),
                                      dx_fp32.index_select(0, chosen));
}

Head make_head(const Parameters& parameters, bool tied, int tp_rank) {
  const Parameter& weight = parameters[tied ? "token.weight" : "output.weight"];
  return {norm_of(parameters, "norm"), weight.value, weight.gradient,
          tp_rank * weight.value.size(0)};
}

double head_forward(const Head& head, const Tensor& x, const Tensor& targets, TpGroup& tp,
                    HeadCache& cache) {
  cache.x = x;
  cache.norm = norm_forward(head.norm, x);
  Tensor logits = matmul_forward(head.weight, cache.norm.y).to(at::kFloat);
  Tensor largest = at::amax(logits, {1});
  tp.all_reduce(largest, comm::ReduceOp::kMax);
  logits.sub_(largest.unsqueeze(1));
  const Tensor is_local = inside(targets, head.vocab_first, head.weight.size(0));
  cache.is_local = is_local.to(at::kFloat).unsqueeze(1);
  cache.local_target = targets.sub(head.vocab_first).mul_(is_local).unsqueeze(1);
  const Tensor target_logit =
      at::gather(logits, 1, cache.local_target).mul_(cache.is_local).squeeze(1);
  logits.exp_();
  cache.exponentials = logits;
  Tensor both = at::stack({at::sum(logits, {1}), target_logit});
  tp.all_reduce(both);
  cache.sum = both[0];
  return cache.sum.log().sub_(both[1]).sum(at::kDouble).item().toDouble();
}

Tensor head_backward(Head& head, double scale, TpGroup& tp, HeadCache& cache) {
  // d logit = scale (softmax - one_hot(target)), written over the exponentials.
  Tensor dlogits = std::move(cache.exponentials);
  dlogits.mul_(cache.sum.reciprocal().mul_(scale).unsqueeze(1));
  dlogits.scatter_add_(1, cache.local_target, cache.is_local.mul(-scale));
  dlogits = dlogits.to(head.weight.scalar_type());
  Tensor dnorm = matmul_backward(head.weight, dlogits);
  auto reduction = tp.start_all_reduce(dnorm, comm::ReduceOp::kSum);
  add_weight_gradient(head.weight_gradient, dlogits, cache.norm.y);
  tp.wait(reduction);
  Tensor dx = norm_backward(head.norm, dnorm, cache.x, cache.norm);
  cache = {};
  return dx;
}

}  // namespace regatta::train
