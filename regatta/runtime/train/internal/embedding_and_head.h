// train/internal/embedding_and_head.h: the two ends of the model: the embedding in front, the final
// norm, output layer and loss behind. The vocabulary is cut over the tensor-parallel group at both
// (Shoeybi et al., 2019).
#pragma once

#include "regatta/runtime/train/internal/tp_group.h"
#include "regatta/runtime/train/ops.h"

namespace regatta::train {

struct Embedding {
  Tensor token, position;  // [vocab / tp, hidden], [seq, hidden]
  Tensor token_gradient, position_gradient;
  std::int64_t vocab_first = 0;  // of this rank's rows
};
Embedding make_embedding(const Parameters& parameters, int tp_rank);

// tokens: [seq * batch] int64, position-major. Returns [seq * batch, hidden], whole.
Tensor embedding_forward(const Embedding& embedding, const Tensor& tokens, TpGroup& tp);
void embedding_backward(Embedding& embedding, const Tensor& dx, const Tensor& tokens);

struct Head {
  NormLayer norm;
  Tensor weight, weight_gradient;  // [vocab / tp, hidden]; the token table's when tied
  std::int64_t vocab_first = 0;
};
Head make_head(const Parameters& parameters, bool tied, int tp_rank);

struct HeadCache {
  Tensor x;
  NormOutput norm;
  Tensor exponentials;  // [tokens, vocab / tp] fp32: exp(logit - largest)
  Tensor sum;           // [tokens] of them, over the whole vocabulary
  Tensor local_target;  // [tokens, 1] index into this rank's rows, 0 where it is another rank's
  Tensor is_local;      // [tokens, 1] fp32: 1 where the target is this rank's
};

// The cross-entropy of `targets` [tokens], summed over the tokens; the same on every rank.
double head_forward(const Head& head, const Tensor& x, const Tensor& targets, TpGroup& tp,
                    HeadCache& cache);
// Gradient of `scale` times that sum with respect to x. Frees the cache.
Tensor head_backward(Head& head, double scale, TpGroup& tp, HeadCache& cache);

}  // namespace regatta::train
