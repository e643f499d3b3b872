// pipeline/pipeline_order.h: the order in which each stage of a pipeline works on the micro-batches
// of one step. F, I and W below are a forward pass, the gradient of its input and that of its
// weights; B is I and W in one pass.
#pragma once

#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::pipeline {

struct PipelineShape {
  workload::PipelineSchedule schedule = workload::PipelineSchedule::k1F1B;
  int stages = 1;          // p
  int micro_batches = 1;   // m, of one step; DualPipe: of both directions together
  int virtual_stages = 1;  // v, parts of the model that a stage holds; interleaved alone
  friend auto operator<=>(const PipelineShape&, const PipelineShape&) = default;
};

enum class PassKind : unsigned char {
  kForward,
  kBackward,  // both gradients in one pass
  kInputGradient,
  kWeightGradient,
};

// The work that a stage does without a pause.
struct Pass {
  PassKind kind = PassKind::kForward;
  int part = 0;  // of the model, among those that the stage holds
  int micro_batch = 0;
  // DualPipe: a forward that starts and ends together with the backward behind it.
  bool overlaps_next = false;
  friend auto operator<=>(const Pass&, const Pass&) = default;
};

// The passes of each stage, first to last.
using PipelineOrder = std::vector<std::vector<Pass>>;

// Parts of the model that a stage holds: v, or 2 for ZB-V and DualPipe.
int parts_of(const PipelineShape& shape);

// Micro-batches of the largest group that goes through one part before the next, interleaved:
// ceil(m / floor(m / p)), or m when it is below p.
int largest_group(const PipelineShape& shape);

// Forwards that a stage does before its first backward alternates with one, at most all: 1F1B and
// ZB-H1 p - 1 - s, interleaved 2 (p - 1 - s) + (v - 1) N with N the largest group.
int warmup_forwards(const PipelineShape& shape, int stage);

// Fails with kInvalidInput when a number is below 1, when v > 1 and the schedule is not
// interleaved, and for DualPipe unless p is even and m is even and at least 2 p.
Status check_shape(const PipelineShape& shape);

// 1F1B (Narayanan et al., SC'21, section 2.2.1): stage s runs p - 1 - s forwards ahead, then
//   alternates F and B.
// Interleaved (the same, section 2.2.2, and Megatron-LM's order): part k of stage s is the model's
//   part k p + s. Micro-batches go in groups of p through part 0, then part 1, and so on; stage s
//   runs 2 (p - 1 - s) + (v - 1) p forwards ahead. When p does not divide m there are floor(m / p)
//   groups as even as can be, larger ones first: a group of fewer than p makes stages wait (as in
//   Isaev et al., "Calculon", SC'23) or deadlock, and Megatron-LM refuses it. With N micro-batches
//   in the largest group, (v - 1) N takes the place of (v - 1) p.
// ZB-H1 (Qi et al., arXiv 2401.10241, section 2): 1F1B with the backward split; stage s is s weight
//   gradients behind, so that every stage holds the activations of p micro-batches.
// ZB-V (the same paper; more of its family: Qi et al., arXiv 2405.15362): stage s holds the parts s
//   and 2 p - 1 - s of the model; the order that leaves no bubble when F = I = W.
// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1, and its published program): every stage
//   holds part s, for the micro-batches 0..m/2-1, which enter at stage 0, and part p - 1 - s, for
//   the others, which enter at stage p - 1. A forward of one direction and a backward of the
//   other overlap, so that the messages inside a layer of one hide behind the work of the other.
// Cost: constant for each pass. `shape` must pass check_shape(), and 0 <= stage < p.
std::vector<Pass> stage_order(const PipelineShape& shape, int stage);

// The order of every stage. Fails as check_shape() does.
Result<PipelineOrder> pipeline_order(const PipelineShape& shape);

}  // namespace regatta::pipeline
