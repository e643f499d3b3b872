// cost/compute.h: the computation of one training rank as a list of operators, and its time.
// Operators: Narayanan et al., SC'21 (appendix): a block is 24 B s h^2 + 4 B s^2 h operations
// forward and twice that backward; tensor parallelism splits every large product `tp` ways.
// The lists follow regatta/runtime/train/README.md, operator by operator.
#pragma once

#include <string_view>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/workload/model.h"

namespace regatta::cost {

// One operator of one rank: `batch` products C[m,n] = A[m,k] B[k,n] (batch > 0), or a pass over
// `bytes` of memory (batch == 0) at the rate of `op`. It is launched `launches` times; the rates of
// products contain their launch.
struct Operator {
  std::string_view name;  // a literal
  int batch = 0;
  int m = 0;
  int n = 0;
  int k = 0;
  double bytes = 0;  // read + written, as pointwise_bytes() counts for `op`
  int launches = 1;
  PointwiseOp op = PointwiseOp::kAdd;
  bool fp32 = false;  // in fp32 whatever the compute precision
};

// The numbers that shapes depend on: hidden sizes are divided by tp, tokens are micro_batch * seq.
struct RankShape {
  workload::ModelShape model;
  workload::Precision precision = workload::Precision::kFp32;
  int tp = 1;
  int micro_batch = 1;
};

using Operators = std::vector<Operator>;

// A block, cut where tensor-parallel all-reduces of [tokens, hidden] stand.
struct BlockForward {
  Operators attention;  // an all-reduce follows
  Operators mlp;        // an all-reduce follows
};
struct BlockBackward {
  Operators mlp;             // ends with the gradient of the MLP's input, then an all-reduce
  Operators mlp_overlapped;  // runs during it
  Operators attention;       // the same for attention
  Operators attention_overlapped;
  Operators last;
};
BlockForward block_forward(const RankShape& shape);
// The forward pass again, without its last product and all-reduce, which the backward does not use.
BlockForward block_recompute(const RankShape& shape);
BlockBackward block_backward(const RankShape& shape);

Operators embedding_forward(const RankShape& shape);  // an all-reduce of [tokens, hidden] follows
Operators embedding_backward(const RankShape& shape);
Operators head_forward(const RankShape& shape);  // final norm, logits, loss

struct HeadBackward {
  Operators input;       // an all-reduce of [tokens, hidden] follows
  Operators overlapped;  // runs during it
  Operators last;
};
HeadBackward head_backward(const RankShape& shape);

// Gradient clipping and Adam over `parameters` of one rank.
Operators optimizer_step(long long parameters, workload::Precision precision);

// Rate of one product, interpolated between the measured shapes: the mean of the logarithm of the
// rates, weighted by 1 / distance^4 in (log m, log n, log k); exact on a measured shape, never
// outside the range of the measured rates (Shepard, ACM 1968). Requires at least one rate of that
// precision.
FlopsPerSecond matmul_rate(const DeviceRates& rates, workload::Precision precision,
                           const Operator& product);

// Sum of the operators: products at their rate, and their operands once at the copy bandwidth;
// passes at the bandwidth of their operator; launches at the operator overhead each.
Seconds operators_time(const DeviceRates& rates, workload::Precision precision,
                       const Operators& operators);

}  // namespace regatta::cost
