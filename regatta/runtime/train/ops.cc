#include "regatta/runtime/train/ops.h"

#include <array>
#include <cmath>
#include <limits>

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/sum.h>

#include "regatta/gpu/device/device.h"

namespace regatta::train {
namespace {

constexpr double kNormEpsilon = 1e-5;

// Part 0 (q), 1 (k) or 2 (v) of the projection as [batch * heads, seq, head_dim], without a copy.
Tensor heads_of(const Tensor& qkv, const AttentionDims& shape, int part) {
  const std::int64_t d = shape.head_dim;
  return qkv.as_strided({shape.batch * shape.heads, shape.seq, d},
                        {3 * d, shape.batch * shape.heads * 3 * d, 1},
                        qkv.storage_offset() + part * d);
}

Tensor heads_of_context(const Tensor& context, const AttentionDims& shape) {
  const std::int64_t d = shape.head_dim;
  return context.as_strided({shape.batch * shape.heads, shape.seq, d},
                            {d, shape.batch * shape.heads * d, 1}, context.storage_offset());
}

// The result of an operator, after the device has finished it at its own speed.
Tensor paced(Tensor result) {
  device::end_operator();
  return result;
}

double score_scale(const AttentionDims& shape) {
  return 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
}

}  // namespace

Linear linear_of(const Parameters& parameters, const std::string& name) {
  const Parameter& weight = parameters[name + ".weight"];
  const Parameter& bias = parameters[name + ".bias"];
  return {weight.value, bias.value, weight.gradient, bias.gradient};
}

Tensor linear_forward(const Linear& linear, const Tensor& x) {
  return paced(at::addmm(linear.bias, x, linear.weight.t()));
}

Tensor matmul_forward(const Tensor& weight, const Tensor& x) {
  return paced(at::mm(x, weight.t()));
}

Tensor matmul_backward(const Tensor& weight, const Tensor& dy) {
  return paced(at::mm(dy, weight));
}

void add_weight_gradient(Tensor& gradient, const Tensor& dy, const Tensor& x) {
  if (dy.scalar_type() == gradient.scalar_type()) {
    gradient.addmm_(dy.t(), x);
  } else {
    gradient.add_(at::mm(dy.t(), x));
  }
  device::end_operator();
}

void add_bias_gradient(Tensor& gradient, const Tensor& dy) {
  gradient.add_(at::sum(dy, {0}, false, at::kFloat));
  device::end_operator();
}

void matmul_add(Tensor& into, const Tensor& weight, const Tensor& x) {
  into.addmm_(x, weight.t());
  device::end_operator();
}

NormLayer norm_of(const Parameters& parameters, const std::string& name) {
  const Parameter& weight = parameters[name + ".weight"];
  const Parameter& bias = parameters[name + ".bias"];
  return {weight.value, bias.value, weight.gradient, bias.gradient};
}

NormOutput norm_forward(const NormLayer& norm, const Tensor& x) {
  auto [y, mean, rstd] =
      at::native_layer_norm(x, {x.size(1)}, norm.weight, norm.bias, kNormEpsilon);
  device::end_operator();
  return {y, mean, rstd};
}

Tensor norm_backward(NormLayer& norm, const Tensor& dy, const Tensor& x, const NormOutput& output) {
  auto [dx, dweight, dbias] =
      at::native_layer_norm_backward(dy, x, {x.size(1)}, output.mean, output.rstd, norm.weight,
                                     norm.bias, std::array<bool, 3>{true, true, true});
  norm.weight_gradient.add_(dweight);
  norm.bias_gradient.add_(dbias);
  return paced(dx);
}

Tensor gelu_forward(const Tensor& x) {
  return paced(at::gelu(x));
}

Tensor gelu_backward(const Tensor& dy, const Tensor& x) {
  return paced(at::gelu_backward(dy, x));
}

Tensor causal_mask(std::int64_t seq, at::ScalarType type) {
  return at::full({1, seq, seq}, -std::numeric_limits<double>::infinity(), at::kFloat)
      .triu_(1)
      .to(type);
}

AttentionOutput attention_forward(const Tensor& qkv, const Tensor& mask,
                                  const AttentionDims& shape) {
  const Tensor scores =
      paced(at::baddbmm(mask, heads_of(qkv, shape, 0), heads_of(qkv, shape, 1).transpose(1, 2), 1,
                        score_scale(shape)));
  AttentionOutput output;
  output.probabilities = paced(at::_softmax(scores, -1, false));
  output.context = at::empty({qkv.size(0), shape.heads * shape.head_dim}, qkv.options());
  Tensor context = heads_of_context(output.context, shape);
  at::bmm_out(context, output.probabilities, heads_of(qkv, shape, 2));
  device::end_operator();
  return output;
}

Tensor attention_backward(const Tensor& dcontext, const Tensor& qkv, const Tensor& probabilities,
                          const AttentionDims& shape) {
  const Tensor dout = heads_of_context(dcontext, shape);
  Tensor dqkv = at::empty_like(qkv);
  Tensor dq = heads_of(dqkv, shape, 0);
  Tensor dk = heads_of(dqkv, shape, 1);
  Tensor dv = heads_of(dqkv, shape, 2);
  at::bmm_out(dv, probabilities.transpose(1, 2), dout);
  device::end_operator();
  const Tensor dprobabilities = paced(at::bmm(dout, heads_of(qkv, shape, 2).transpose(1, 2)));
  const Tensor dscores =
      paced(at::_softmax_backward_data(dprobabilities, probabilities, -1, qkv.scalar_type()));
  const double scale = score_scale(shape);
  at::baddbmm_out(dq, dq, dscores, heads_of(qkv, shape, 1), 0, scale);
  device::end_operator();
  at::baddbmm_out(dk, dk, dscores.transpose(1, 2), heads_of(qkv, shape, 0), 0, scale);
  device::end_operator();
  return dqkv;
}

}  // namespace regatta::train
