// train/ops.h: the operators that layers are made of, forward and backward, on tokens as rows:
// x is [tokens, features], and token n of a micro-batch of B samples is position n / B of sample
// n % B, which lets attention read its heads from the projection without copying.
// Backward functions add parameter gradients to their fp32 views and return the gradient of the
// input.
#pragma once

#include "regatta/runtime/train/internal/parameters.h"
#include "regatta/runtime/train/internal/tensor.h"

namespace regatta::train {

// y = x weight^T + bias; weight: [out, in].
struct Linear {
  Tensor weight, bias;
  Tensor weight_gradient, bias_gradient;
};
Linear linear_of(const Parameters& parameters, const std::string& name);

Tensor linear_forward(const Linear& linear, const Tensor& x);    // with the bias
Tensor matmul_forward(const Tensor& weight, const Tensor& x);    // without
Tensor matmul_backward(const Tensor& weight, const Tensor& dy);  // dy weight
// gradient [out, in] += dy^T x, summed in fp32 within one product.
void add_weight_gradient(Tensor& gradient, const Tensor& dy, const Tensor& x);
void add_bias_gradient(Tensor& gradient, const Tensor& dy);
// into += x weight^T
void matmul_add(Tensor& into, const Tensor& weight, const Tensor& x);

struct NormLayer {
  Tensor weight, bias;
  Tensor weight_gradient, bias_gradient;
};
NormLayer norm_of(const Parameters& parameters, const std::string& name);

struct NormOutput {
  Tensor y;
  Tensor mean, rstd;  // [tokens, 1]
};
NormOutput norm_forward(const NormLayer& norm, const Tensor& x);
Tensor norm_backward(NormLayer& norm, const Tensor& dy, const Tensor& x, const NormOutput& output);

Tensor gelu_forward(const Tensor& x);
Tensor gelu_backward(const Tensor& dy, const Tensor& x);

// The dimensions of one rank: `heads` are its own.
struct AttentionDims {
  std::int64_t seq = 0;
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
};
// [1, seq, seq]: 0 up to each position, minus infinity after it.
Tensor causal_mask(std::int64_t seq, at::ScalarType type);

struct AttentionOutput {
  Tensor probabilities;  // [batch * heads, seq, seq]
  Tensor context;        // [tokens, heads * head_dim]
};
// qkv: [tokens, heads * 3 * head_dim].
AttentionOutput attention_forward(const Tensor& qkv, const Tensor& mask,
                                  const AttentionDims& shape);
Tensor attention_backward(const Tensor& dcontext, const Tensor& qkv, const Tensor& probabilities,
                          const AttentionDims& shape);

}  // namespace regatta::train
