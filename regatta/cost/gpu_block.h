// cost/gpu_block.h: how long a GPU computes for one micro-batch in one block, and in the embedding
// and the output layer, under a software stack. Operators: Narayanan et al., SC'21 (appendix);
// Korthikanti et al., 2022, section 3 (what lies between the products, what sequence parallelism
// divides).
#pragma once

#include "regatta/core/units.h"
#include "regatta/cost/gpu_matmul.h"
#include "regatta/cost/stack.h"
#include "regatta/topo/cluster.h"
#include "regatta/workload/model.h"

namespace regatta::cost {

// The part of a micro-batch and of a model that one rank computes.
struct RankWork {
  const workload::ModelShape& model;
  double samples = 1;              // of the micro-batch
  int tp = 1;                      // divides the products
  bool sequence_parallel = false;  // divides what lies between them, too
};

// Time on the device by kind of operator.
struct ComputeTime {
  Seconds matmul;     // products of weights
  Seconds attention;  // scores, softmax, context
  Seconds passes;     // everything else: bound by memory

  Seconds total() const { return matmul + attention + passes; }
  ComputeTime& operator+=(const ComputeTime& other) {
    matmul += other.matmul;
    attention += other.attention;
    passes += other.passes;
    return *this;
  }
};

struct BlockTime {
  ComputeTime forward;
  ComputeTime backward;  // without recomputation
};

// A 16-bit engine of the device under the stack. Requires a GPU with processors and a 16-bit peak.
MatrixEngine matrix_engine(const topo::DeviceType& device, const Stack& stack);

// A block with a plain MLP.
BlockTime gpu_block_time(const MatrixEngine& engine, const Stack& stack, const RankWork& work);

// Embedding, final norm, logits and loss, forward and backward together: on the first and last
// stage; both are counted here, because they follow one another in a micro-batch of any stage
// count.
ComputeTime gpu_ends_time(const MatrixEngine& engine, const RankWork& work);

// Adam over so many parameters in mixed precision, with the norm of the gradients before it.
Seconds gpu_optimizer_time(const MatrixEngine& engine, double parameters);

}  // namespace regatta::cost
