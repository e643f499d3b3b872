// cost/gpu_block.h: the time of a GPU for one micro-batch in one block, and in the embedding and
// the output layer, under a software stack. Operators: Narayanan et al., SC'21 (appendix);
// Korthikanti et al., 2022, section 3 (the operators between the products, which sequence
// parallelism divides).
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/cost/internal/gpu_matmul.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/blocks.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::cost {

// The part of a micro-batch and of a model that one rank computes.
struct RankWork {
  const workload::ModelShape& model;
  double samples = 1;              // of the micro-batch
  int tp = 1;                      // divides the products
  bool sequence_parallel = false;  // divides what lies between them, too
  int cp = 1;                      // divides the tokens
  int ep = 1;                      // divides the experts
  int etp = 1;                     // divides the products of an expert

  double tokens() const { return samples * model.seq / cp; }
};
RankWork rank_work(const workload::ModelShape& model, const workload::Strategy& strategy);

// The device's dense peak of products in the precision; 0: it has none.
FlopsPerSecond matrix_peak(const topo::DeviceType& device, workload::Precision precision);

// Whether the device has the precision, and its processors are known.
Status check_precision(const topo::DeviceType& device, workload::Precision precision);

// The engines of a device under a stack in one precision: of the products with weights, and of
// scores and context, which stay in 16 bits where the products have 8.
struct GpuEngines {
  MatrixEngine products;
  MatrixEngine scores;
  FlopsPerSecond fused_attention;  // that a fused kernel reaches with heads of 128
  double softmax_width = 20;       // DeviceEfficiency::softmax_width
  double row_start = 1;            // DeviceEfficiency::row_start
  // Bytes read and written per element to make the copies that narrow products read; 0: none.
  double cast_bytes = 0;
  BytesPerSecond host_link;  // to the server's memory, one way
};
GpuEngines gpu_engines(const topo::DeviceType& device, const SoftwareStack& stack,
                       workload::Precision precision);

// Time on the device by kind of operator.
struct ComputeTime {
  Seconds matmul;     // products of weights
  Seconds attention;  // scores, softmax, context; the scan of a state space
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
  ComputeTime backward;     // without recomputation
  Seconds weight_gradient;  // part of the backward that may wait
  // Parts of the forward: Recompute::kPointwise repeats the first, kExperts both.
  Seconds pointwise;
  Seconds experts;
};

// A block of a kind that the model has.
BlockTime gpu_block_time(const GpuEngines& engines, const SoftwareStack& stack,
                         const RankWork& work, workload::BlockKind kind = {});

// Embedding, final norm, logits and loss, forward and backward together: on the first and last
// stage; both are counted here, because they follow one another in a micro-batch of any stage
// count.
ComputeTime gpu_embedding_and_head_time(const GpuEngines& engines, const SoftwareStack& stack,
                                        const RankWork& work);

// Adam over so many parameters in mixed precision, with the norm of the gradients before it.
Seconds gpu_optimizer_time(const GpuEngines& engines, double parameters);

}  // namespace regatta::cost
