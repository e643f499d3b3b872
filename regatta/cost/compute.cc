#include "regatta/cost/compute.h"

#include <cmath>

#include "regatta/core/check.h"

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
  return {.name = name, .batch = 1, .m = m, .n = n, .k = k, .bytes = 0, .launches = 1};
}

Operator batched(std::string_view name, int batch, int m, int n, int k) {
  return {.name = name, .batch = batch, .m = m, .n = n, .k = k, .bytes = 0, .launches = batch};
}

Operator pass(std::string_view name, double bytes, int launches = 1) {
  return {.name = name, .batch = 0, .m = 0, .n = 0, .k = 0, .bytes = bytes, .launches = launches};
}

}  // namespace

Operators block_forward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  const double qkv = 3 * s.residual / shape.tp;
  return {
      pass("norm", 2 * s.residual),
      product("qkv", s.tokens, 3 * s.local_hidden, s.hidden),
      pass("split heads", 2 * qkv, 3),
      batched("scores", s.local_heads, s.seq, s.seq, s.head_dim),
      pass("scale, mask, softmax", 6 * s.scores, 3),
      batched("context", s.local_heads, s.seq, s.head_dim, s.seq),
      pass("merge heads", 2 * qkv / 3),
      product("projection", s.tokens, s.hidden, s.local_hidden),
      pass("residual", 3 * s.residual, 2),
      pass("norm", 2 * s.residual),
      product("up", s.tokens, s.local_ffn, s.hidden),
      pass("gelu", 2 * s.gelu),
      product("down", s.tokens, s.hidden, s.local_ffn),
      pass("residual", 3 * s.residual, 2),
  };
}

Operators block_backward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  const double qkv = 3 * s.residual / shape.tp;
  return {
      product("down input", s.tokens, s.local_ffn, s.hidden),
      product("down weight", s.hidden, s.local_ffn, s.tokens),
      pass("gelu", 3 * s.gelu),
      product("up input", s.tokens, s.hidden, s.local_ffn),
      product("up weight", s.local_ffn, s.hidden, s.tokens),
      pass("norm and biases", 6 * s.residual + s.gelu, 4),
      pass("residual", 3 * s.residual),
      product("projection input", s.tokens, s.local_hidden, s.hidden),
      product("projection weight", s.hidden, s.local_hidden, s.tokens),
      pass("split heads", 2 * qkv / 3),
      batched("scores of context", s.local_heads, s.seq, s.seq, s.head_dim),
      batched("values", s.local_heads, s.seq, s.head_dim, s.seq),
      pass("softmax", 5 * s.scores, 2),
      batched("queries", s.local_heads, s.seq, s.head_dim, s.seq),
      batched("keys", s.local_heads, s.seq, s.head_dim, s.seq),
      pass("merge heads", 2 * qkv, 3),
      product("qkv input", s.tokens, s.hidden, 3 * s.local_hidden),
      product("qkv weight", 3 * s.local_hidden, s.hidden, s.tokens),
      pass("norm and biases", 6 * s.residual + qkv, 4),
      pass("residual", 3 * s.residual),
  };
}

Operators embedding_forward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  return {pass("token rows", 2 * s.residual, shape.tp > 1 ? 3 : 1),
          pass("positions", 3 * s.residual)};
}

Operators embedding_backward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  return {pass("token rows", 3 * s.residual, shape.tp > 1 ? 3 : 1),
          pass("positions", 2 * s.residual)};
}

Operators head_forward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  const double logits = 4.0 * s.tokens * s.local_vocab;  // the loss is taken in fp32
  return {pass("norm", 2 * s.residual), product("logits", s.tokens, s.local_vocab, s.hidden),
          pass("loss", 5 * logits, 5)};
}

Operators head_backward(const RankShape& shape) {
  const Sizes s = sizes_of(shape);
  const double logits = 4.0 * s.tokens * s.local_vocab;
  return {pass("loss", 2 * logits, 2), product("logits input", s.tokens, s.hidden, s.local_vocab),
          product("logits weight", s.local_vocab, s.hidden, s.tokens),
          pass("norm", 6 * s.residual, 3)};
}

Operators optimizer_step(long long parameters, workload::Precision precision) {
  const auto count = static_cast<double>(parameters);
  // Norm: gradients read. Adam: gradient, two moments and weight read, the last three written.
  double bytes = (1 + 4 + 3) * 4.0 * count;
  if (precision == workload::Precision::kBf16) bytes += 2.0 * count;  // the bf16 copy written
  return {pass("norm, clip, adam", bytes, 12)};
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

Seconds operators_time(const DeviceRates& rates, workload::Precision precision,
                       const Operators& operators) {
  Seconds total{};
  for (const Operator& one : operators) {
    total += rates.operator_overhead * one.launches;
    if (one.batch > 0) {
      const Flops work{2.0 * one.batch * one.m * one.n * one.k};
      total += work / matmul_rate(rates, precision, one);
    } else {
      total += Seconds{one.bytes / rates.pointwise_bandwidth.value};
    }
  }
  return total;
}

Flops operators_flops(const Operators& operators) {
  Flops total{};
  for (const Operator& one : operators)
    total += Flops{2.0 * one.batch * one.m * one.n * one.k};
  return total;
}

}  // namespace regatta::cost
