#include "regatta/model/cost/compute.h"

#include <cmath>

#include "regatta/base/core/result.h"

namespace regatta::cost {
namespace {

// Sizes of one rank, as doubles for bytes and ints for shapes.
struct Sizes {
  int tokens;
  int hidden;
  int local_hidden;  // of q, k, v and the attention output of this rank
  int local_ffn;
  int local_vocab;
  int seq;
  int head_dim;
  int local_heads;  // times micro_batch: products of one batched call
  double element;   // bytes of one element in the compute precision
  double residual;  // bytes of one pass over [tokens, hidden]
  double scores;    // bytes of one pass over the attention scores
  double gelu;      // bytes of one pass over [tokens, local_ffn]
};

Sizes sizes_of(const RankShape& shape) {
  const workload::ModelShape& model = shape.model;
  Sizes s{};
  s.tokens = shape.micro_batch * model.seq;
  s.hidden = model.hidden;
  s.local_hidden = model.hidden / shape.tp;
  s.local_ffn = model.ffn_hidden / shape.tp;
  s.local_vocab = model.vocab / shape.tp;
  s.seq = model.seq;
  s.head_dim = model.hidden / model.heads;
  s.local_heads = shape.micro_batch * (model.heads / shape.tp);
  s.element = workload::bytes_per_element(shape.precision);
  s.residual = s.element * s.tokens * s.hidden;
  s.scores = s.element * s.local_heads * static_cast<double>(s.seq) * s.seq;
  s.gelu = s.element * s.tokens * s.local_ffn;
  return s;
}

Operator product(std::string_view name, int m, int n, int k) {
  return {.name = name, .batch = 1, .m = m, .n = n, .k = k, .bytes = 0, .launches = 0};
}

Operator batched(std::string_view name, int batch, int m, int n, int k) {
  return {.name = name, .batch = batch, .m = m, .n = n, .k = k, .bytes = 0, .launches = 0};
}

// Memory moved as an addition moves it; without a launch: within the operator that follows.
Operator pass(std::string_view name, double bytes, int launches = 1) {
  return {.name = name, .batch = 0, .m = 0, .n = 0, .k = 0, .bytes = bytes, .launches = launches};
}

// `op` over a tensor of which one pass is `bytes`.
Operator pointwise(std::string_view name, PointwiseOp op, double bytes, int launches = 1) {
  Operator one = pass(name, pointwise_bytes(op, bytes / 4, workload::Precision::kFp32), launches);
  one.op = op;
  return one;
}

Operator norm(const Sizes& s) {
  return pointwise("norm", PointwiseOp::kLayerNorm, s.residual);
}

// native_layer_norm_backward with both parameter gradients, and their two small sums.
Operator norm_backward(const Sizes& s) {
  return pointwise("norm gradients", PointwiseOp::kLayerNormBackward, s.residual, 3);
}

Operator residual_gradient(const Sizes& s) {
  return pointwise("residual", PointwiseOp::kAdd, s.residual);
}

// Sum over tokens of [tokens, width] and its addition to the gradient.
Operator bias_gradient(double bytes) {
  return pointwise("bias gradient", PointwiseOp::kBiasGradient, bytes, 2);
}

// dy^T x added to the fp32 gradient: within the product in fp32, in a pass of its own in bf16.
void add_weight_gradient(Operators& list, const Sizes& s, const Operator& product) {
  list.push_back(product);
  if (s.element < 4) list.push_back(pass("weight gradient", 10.0 * product.m * product.n));
}

Operators attention_forward(const Sizes& s, double local_residual) {
  return {
      norm(s),
      pass("qkv bias", 3 * local_residual, 0),
      product("qkv", s.tokens, 3 * s.local_hidden, s.hidden),
      batched("scores", s.local_heads, s.seq, s.seq, s.head_dim),
      pointwise("softmax", PointwiseOp::kSoftmax, s.scores),
      batched("context", s.local_heads, s.seq, s.head_dim, s.seq),
      pass("residual and bias", 2 * s.residual),
      product("projection", s.tokens, s.hidden, s.local_hidden),
  };
}

Operators mlp_forward_without_down(const Sizes& s) {
  return {
      norm(s),
      pass("up bias", s.gelu, 0),
      product("up", s.tokens, s.local_ffn, s.hidden),
      pointwise("gelu", PointwiseOp::kGelu, s.gelu),
  };
}

}  // namespace

BlockForward block_forward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  BlockForward block{attention_forward(s, s.residual / shape.tp), mlp_forward_without_down(s)};
  block.mlp.push_back(pass("residual and bias", 2 * s.residual));
  block.mlp.push_back(product("down", s.tokens, s.hidden, s.local_ffn));
  return block;
}

BlockForward block_recompute(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  return {attention_forward(s, s.residual / shape.tp), mlp_forward_without_down(s)};
}

BlockBackward block_backward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  const double local_residual = s.residual / shape.tp;
  BlockBackward block;
  add_weight_gradient(block.mlp, s, product("down weight", s.hidden, s.local_ffn, s.tokens));
  block.mlp.insert(block.mlp.end(), {bias_gradient(s.residual),
                                     product("down input", s.tokens, s.local_ffn, s.hidden),
                                     pointwise("gelu gradient", PointwiseOp::kGeluBackward, s.gelu),
                                     product("up input", s.tokens, s.hidden, s.local_ffn)});
  add_weight_gradient(block.mlp_overlapped, s,
                      product("up weight", s.local_ffn, s.hidden, s.tokens));
  block.mlp_overlapped.push_back(bias_gradient(s.gelu));
  block.attention = {norm_backward(s), residual_gradient(s)};
  add_weight_gradient(block.attention, s,
                      product("projection weight", s.hidden, s.local_hidden, s.tokens));
  block.attention.insert(
      block.attention.end(),
      {bias_gradient(s.residual), product("projection input", s.tokens, s.local_hidden, s.hidden),
       batched("values", s.local_heads, s.seq, s.head_dim, s.seq),
       batched("probabilities", s.local_heads, s.seq, s.seq, s.head_dim),
       pointwise("softmax gradient", PointwiseOp::kSoftmaxBackward, s.scores),
       batched("queries", s.local_heads, s.seq, s.head_dim, s.seq),
       batched("keys", s.local_heads, s.seq, s.head_dim, s.seq),
       product("qkv input", s.tokens, s.hidden, 3 * s.local_hidden)});
  add_weight_gradient(block.attention_overlapped, s,
                      product("qkv weight", 3 * s.local_hidden, s.hidden, s.tokens));
  block.attention_overlapped.push_back(bias_gradient(3 * local_residual));
  block.last = {norm_backward(s), residual_gradient(s)};
  return block;
}

Operators embedding_forward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  if (shape.tp == 1) return {pass("token rows", 2 * s.residual), pass("positions", 3 * s.residual)};
  return {pass("token rows", 6 * s.residual, 7), pass("positions", 3 * s.residual)};
}

Operators embedding_backward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  return {pass("positions", s.residual, 2), pass("token rows", 3 * s.residual, 8)};
}

Operators head_forward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  const double logits = 4.0 * s.tokens * s.local_vocab;  // the loss is taken in fp32
  // Exponentials and their sum cost what a softmax costs; maximum, shift and conversion are passes.
  Operator softmax = pointwise("loss", PointwiseOp::kSoftmax, logits);
  Operator shift = pass("loss", 6 * logits, 15);
  softmax.fp32 = shift.fp32 = true;
  return {norm(s), product("logits", s.tokens, s.local_vocab, s.hidden), shift, softmax};
}

HeadBackward head_backward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  const double logits = 4.0 * s.tokens * s.local_vocab;
  HeadBackward head;
  Operator gradient = pass("loss gradient", 3 * logits, 4);
  gradient.fp32 = true;
  head.input = {gradient, product("logits input", s.tokens, s.hidden, s.local_vocab)};
  add_weight_gradient(head.overlapped, s,
                      product("logits weight", s.local_vocab, s.hidden, s.tokens));
  head.last = {norm_backward(s)};
  return head;
}

Operators optimizer_step(long long parameters, workload::Precision precision) {
  const auto count = static_cast<double>(parameters);
  // The norm reads the gradients; Adam reads and writes gradient, weight and both moments.
  Operators list = {pointwise("norm", PointwiseOp::kBiasGradient, 4 * count),
                    pointwise("adam", PointwiseOp::kAdam, 4 * count)};
  if (precision == workload::Precision::kBf16) list.push_back(pass("bf16 copy", 6 * count));
  for (Operator& one : list)
    one.fp32 = true;
  return list;
}

FlopsPerSecond matmul_rate(const DeviceRates& rates, workload::Precision precision,
                           const Operator& product) {
  double weights = 0;
  double logarithms = 0;
  for (const MatmulRate& known : rates.matmul) {
    if (known.precision != precision) continue;
    const double dm = std::log2(static_cast<double>(known.m) / product.m);
    const double dn = std::log2(static_cast<double>(known.n) / product.n);
    const double dk = std::log2(static_cast<double>(known.k) / product.k);
    const double square = dm * dm + dn * dn + dk * dk;
    if (square == 0) return known.rate;
    const double weight = 1.0 / (square * square);
    weights += weight;
    logarithms += weight * std::log(known.rate.value);
  }
  REGATTA_CHECK(weights > 0);
  return {std::exp(logarithms / weights)};
}

namespace {

// A product is measured in a loop, where its operands stay in the caches; in training they come
// from memory, since a block touches more than a cache holds between two uses.
Seconds product_time(const DeviceRates& rates, workload::Precision precision,
                     const Operator& product) {
  const double m = product.m;
  const double n = product.n;
  const double k = product.k;
  const Flops work{2 * m * n * k};
  const double operands = workload::bytes_per_element(precision) * (m * k + k * n + m * n);
  return (work / matmul_rate(rates, precision, product) +
          Seconds{operands / rates.copy_bandwidth.value}) *
         product.batch;
}

}  // namespace

Seconds operators_time(const DeviceRates& rates, workload::Precision precision,
                       const Operators& operators) {
  Seconds total{};
  for (const Operator& one : operators) {
    total += rates.operator_overhead * one.launches;
    if (one.batch > 0) {
      total += product_time(rates, precision, one);
    } else {
      const auto kept = one.fp32 ? workload::Precision::kFp32 : precision;
      total += Seconds{one.bytes / pointwise_bandwidth(rates, one.op, kept).value};
    }
  }
  return total;
}

}  // namespace regatta::cost
